// What a journal must notice about its own end.
#include "journal/end_note.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "journal/survey.h"
#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

const std::string kFirst = "j/" + segment_name(Position(1));

struct Watched : LogOnSimDisk {
  // The refusal, after checking that a survey reports the same.
  std::string refused() {
    const std::string said = refusal();
    const auto found = survey(*directory);
    EXPECT_TRUE(found);
    EXPECT_EQ(found->usable(), said.empty()) << said;
    return said;
  }
};

// A journal that was closed, with one record in each of two segments.
struct Closed : Watched {
  Closed() {
    open();
    EXPECT_TRUE(append("one"));
    EXPECT_TRUE(log->close());
    open();
    EXPECT_TRUE(append("two"));
    EXPECT_TRUE(log->close());
    log.reset();
  }

  const std::string second = "j/" + segment_name(Position(2));
};

std::size_t words_in(std::string_view note) {
  const std::string_view line = note.substr(0, note.find('\n'));
  return static_cast<std::size_t>(std::ranges::count(line, ' ')) + 1;
}

TEST(EndNote, IsWrittenAsTheDocumentationShows) {
  os::SimDisk disk;
  const auto root = disk.root();
  const EndNote running{.last_segment = Position(7), .size = 4096};
  ASSERT_TRUE(write_end_note(*root, running));
  EXPECT_EQ(disk.content("end")->size(), 80u);
  EXPECT_TRUE(disk.content("end")->starts_with("running 7 4096 ")) << *disk.content("end");
  EXPECT_EQ(*read_end_note(*root), running);
  const EndNote stopped{.last_segment = Position(7), .next = Position(12)};
  ASSERT_TRUE(write_end_note(*root, stopped));
  EXPECT_TRUE(disk.content("end")->starts_with("stopped 7 12 ")) << *disk.content("end");
  EXPECT_EQ(*read_end_note(*root), stopped);
  // Without a size, as earlier releases wrote it.
  const EndNote unsized{.last_segment = Position(7)};
  ASSERT_TRUE(write_end_note(*root, unsized));
  EXPECT_EQ(words_in(*disk.content("end")), 3u) << *disk.content("end");
  EXPECT_EQ(*read_end_note(*root), unsized);
}

TEST(EndNote, HasRoomForTheLargestNumbers) {
  os::SimDisk disk;
  const auto root = disk.root();
  const Position last(std::numeric_limits<std::uint64_t>::max());
  const EndNote note{.last_segment = last, .next = last};
  ASSERT_TRUE(write_end_note(*root, note));
  EXPECT_EQ(disk.content("end")->size(), 80u);
  EXPECT_EQ(*read_end_note(*root), note);
}

TEST(EndNote, OneThatWasTornSaysNothing) {
  os::SimDisk disk;
  const auto root = disk.root();
  ASSERT_TRUE(write_end_note(*root, {.last_segment = Position(7), .next = Position(12)}));
  const std::string whole = *disk.content("end");
  for (std::size_t size = 0; size < whole.find('\n'); ++size) {
    disk.put("end", whole.substr(0, size));
    EXPECT_EQ(*read_end_note(*root), std::nullopt) << size;
  }
  for (std::size_t at = 0; at < whole.find('\n'); ++at) {
    std::string changed = whole;
    changed[at] ^= 1;
    disk.put("end", changed);
    EXPECT_EQ(*read_end_note(*root), std::nullopt) << at;
  }
}

TEST(EndNote, AJournalThatWasClosedOpensAgain) {
  Closed on;
  EXPECT_EQ(on.refused(), "");
  on.open();
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"one", "two"}));
}

TEST(EndNote, ASegmentThatWasCutAfterACleanStopIsRefused) {
  Closed on;
  const std::string whole = *on.disk.content(on.second);
  for (std::size_t size = 0; size < whole.size(); size += 8) {
    on.disk.put(on.second, whole.substr(0, size));
    EXPECT_NE(on.refused(), "") << size;
    EXPECT_EQ(on.disk.content(on.second)->size(), size) << "nothing was changed";
  }
}

TEST(EndNote, ASegmentThatWasZeroedAfterACleanStopIsRefused) {
  Closed on;
  const std::string whole = *on.disk.content(on.second);
  for (const std::size_t from : {std::size_t{0}, kSegmentHeaderSize}) {
    std::string zeroed = whole;
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(from), zeroed.end(), '\0');
    on.disk.put(on.second, zeroed);
    const std::string said = on.refused();
    EXPECT_NE(said.find("before position 3"), std::string::npos) << said;
    EXPECT_NE(said.find(segment_name(Position(2))), std::string::npos) << said;
  }
}

TEST(EndNote, ALastSegmentThatIsGoneIsRefused) {
  Closed on;
  ASSERT_TRUE(on.directory->remove(segment_name(Position(2))));
  EXPECT_NE(on.refused().find(segment_name(Position(2)) + " is missing"), std::string::npos);
}

TEST(EndNote, ALastSegmentThatIsGoneAfterACrashIsRefusedToo) {
  for (const bool only : {true, false}) {
    LogOnSimDisk on;
    on.open();
    ASSERT_TRUE(on.append("one"));
    if (!only) {
      on.crash();
      ASSERT_TRUE(on.append("two"));
    }
    on.crash();
    const std::string gone = segment_name(only ? Position(1) : Position(2));
    on.log.reset();
    ASSERT_TRUE(on.directory->remove(gone));
    ASSERT_TRUE(on.directory->sync());
    const std::string said = on.refusal();
    EXPECT_NE(said.find(gone + " is missing"), std::string::npos) << said;
  }
}

// Wherever the cut is: in a frame, behind one, or in the space that no frame has used yet.
TEST(EndNote, ASegmentInUseThatWasCutAfterACrashIsRefused) {
  Watched on;
  on.open();
  for (const char* record : {"one", "two", "three"}) ASSERT_TRUE(on.append(record));
  on.disk.crash(std::nullopt);
  const std::string whole = *on.disk.content(kFirst);
  const std::string note = *on.disk.content("j/end");
  ASSERT_EQ(whole.size(), kSmallSegments.segment_size);
  for (std::size_t size = 0; size < whole.size(); size += 4) {
    on.disk.put(kFirst, whole.substr(0, size));
    EXPECT_NE(on.refused().find(segment_name(Position(1))), std::string::npos) << size;
    EXPECT_EQ(on.disk.content(kFirst)->size(), size) << "nothing was changed";
    EXPECT_EQ(*on.disk.content("j/end"), note) << "nothing was changed";
  }
  const std::size_t one_frame = kSegmentHeaderSize + frame_size(4);
  on.disk.put(kFirst, whole.substr(0, one_frame));
  EXPECT_NE(on.refused().find("was cut: it has " + std::to_string(one_frame) + " bytes"),
            std::string::npos);
  on.disk.put(kFirst, whole);
  EXPECT_EQ(on.refused(), "");
}

// Torn: the file is as long as it was, and a part of the last commit is not what was written.
TEST(EndNote, ASegmentInUseThatWasTornByACrashIsAccepted) {
  const std::size_t first_frame = kSegmentHeaderSize + frame_size(4);
  for (std::size_t kept = 0; kept <= frame_size(302); kept += 8) {
    LogOnSimDisk on;
    on.open();
    ASSERT_TRUE(on.append("one"));
    ASSERT_TRUE(on.append(std::string(300, 't')));
    on.disk.crash(std::nullopt);
    std::string torn = on.disk.content(kFirst)->substr(0, first_frame + kept);
    torn.resize(kSmallSegments.segment_size, '\0');
    on.disk.put(kFirst, torn);
    on.open();
    EXPECT_EQ(replay_all(*on.log).size(), kept < frame_size(302) ? 1u : 2u) << kept;
    on.crash();
    ASSERT_TRUE(on.append("next"));
  }
}

TEST(EndNote, ASegmentThatWasCutAfterAStartWithoutAnyAppendIsRefused) {
  Watched on;
  on.open();
  for (const char* record : {"one", "two"}) ASSERT_TRUE(on.append(record));
  on.crash();
  on.crash();
  const std::string whole = *on.disk.content(kFirst);
  on.disk.put(kFirst, whole.substr(0, kSegmentHeaderSize + frame_size(4)));
  EXPECT_NE(on.refused().find("before position 3"), std::string::npos);
}

TEST(EndNote, ASegmentInUseWithoutANotedSizeIsTakenAsItIs) {
  LogOnSimDisk on;
  on.open();
  for (const char* record : {"one", "two"}) ASSERT_TRUE(on.append(record));
  ASSERT_TRUE(write_end_note(*on.directory, {.last_segment = Position(1)}));
  const std::string whole = *on.disk.content(kFirst);
  on.disk.put(kFirst, whole.substr(0, kSegmentHeaderSize + frame_size(4)));
  on.open();
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"one"}));
}

// Appends until the third segment has begun, with a clean stop in between. Returns how many records
// were acknowledged.
std::uint64_t fill_and_close(LogOnSimDisk& on) {
  std::uint64_t acknowledged = 0;
  for (int run = 0; run < 2; ++run) {
    auto opened = on.try_open();
    if (!opened) return acknowledged;
    on.log = std::move(*opened);
    for (int i = 0; i < 12; ++i) {
      if (!on.append(std::string(400, 'r'))) return acknowledged;
      ++acknowledged;
      if (!on.log->prepare(on.now)) return acknowledged;
    }
    if (!on.log->close()) return acknowledged;
  }
  return acknowledged;
}

TEST(EndNote, NoCrashMakesAGoodJournalLookCut) {
  LogOnSimDisk whole;
  const std::uint64_t before = whole.disk.operations();
  ASSERT_EQ(fill_and_close(whole), 24u);
  const std::uint64_t operations = whole.disk.operations() - before;
  ASSERT_GT(operations, 60u);
  // With each seed other parts of what was not synced survive.
  constexpr std::uint64_t kSeeds = 8;
  for (std::uint64_t n = 0; n <= operations; ++n) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      Watched on;
      on.disk.power_off_after(n);
      const std::uint64_t acknowledged = fill_and_close(on);
      on.disk.crash(seed == 0 ? std::nullopt : std::optional(seed));
      // The recovery is interrupted, too.
      on.disk.power_off_after(n % 13);
      static_cast<void>(on.refusal());
      on.disk.crash(seed == 0 ? std::nullopt : std::optional(seed));
      ASSERT_EQ(on.refused(), "") << "power off after " << n << ", seed " << seed;
      on.open();
      EXPECT_GE(replay_all(*on.log).size(), acknowledged);
    }
  }
}

TEST(EndNote, ASurveyIsNotMisledByANoteThatAServerChangesMeanwhile) {
  Closed on;
  on.open();
  ASSERT_TRUE(on.append("three"));
  const std::string third = "j/" + segment_name(Position(3));
  bool sealed = false;
  const auto found = survey(*on.directory, [&](Position, std::string_view) -> Status {
    // The survey has read the note, and not yet the segment in use, which is sealed now.
    if (std::exchange(sealed, true)) return {};
    while (on.disk.content(third)->size() == kSmallSegments.segment_size)
      EXPECT_TRUE(on.append(std::string(400, 'r')));
    return {};
  });
  ASSERT_TRUE(found);
  EXPECT_TRUE(sealed);
  ASSERT_EQ(found->segments.size(), 3u);
  EXPECT_LT(found->segments.back().file_size, kSmallSegments.segment_size);
  EXPECT_TRUE(found->usable());
}

TEST(EndNote, AnOlderEndOfTheSameJournalIsRefused) {
  Closed on;
  const std::string note = *on.disk.content("j/end");
  const std::string second = *on.disk.content(on.second);
  on.open();
  ASSERT_TRUE(on.append("three"));
  ASSERT_TRUE(on.log->close());
  on.log.reset();
  on.disk.put("j/end", note);
  EXPECT_NE(on.refused(), "") << "the note is older than the segments";
}

TEST(EndNote, AfterACrashTheStopBeforeItIsForgotten) {
  Closed on;
  on.open();
  ASSERT_TRUE(on.append("three"));
  on.crash();
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"one", "two", "three"}));
}

TEST(EndNote, AJournalWithoutANoteIsTakenAsItIs) {
  Closed on;
  ASSERT_TRUE(on.directory->remove(kEndNoteName));
  on.open();
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(on.disk.content("j/end"));
}

TEST(EndNote, AFullDiskThatTakesNoNoteStopsNoStart) {
  Closed on;
  ASSERT_TRUE(on.directory->remove(kEndNoteName));
  on.disk.set_capacity(0);
  on.open();
  EXPECT_FALSE(on.disk.content("j/end"));
  EXPECT_EQ(replay_all(*on.log), (std::vector<std::string>{"one", "two"}));
}

TEST(EndNote, ASegmentOfAnotherDirectoryIsRefused) {
  const auto open_as = [](LogOnSimDisk& on, std::uint32_t id) {
    SeededEntropy entropy(1);
    auto root = on.disk.root();
    auto directory = root->open_directory("j");
    return SegmentLog::open(**directory, {ShardIndex(0), 1, id}, kSmallSegments, entropy, on.now)
        .has_value();
  };
  LogOnSimDisk on;
  SeededEntropy entropy(1);
  auto root = on.disk.root();
  on.directory = std::move(*root->open_directory("j"));
  on.log = std::move(
      *SegmentLog::open(*on.directory, {ShardIndex(0), 1, 77}, kSmallSegments, entropy, on.now));
  ASSERT_TRUE(on.append("one"));
  ASSERT_TRUE(on.log->close());
  on.log.reset();
  EXPECT_TRUE(open_as(on, 77));
  EXPECT_FALSE(open_as(on, 78));
  EXPECT_TRUE(open_as(on, 0)) << "who has no id asks for none";
  const auto found = survey(*on.directory, {}, ShardOf{ShardIndex(0), 1, 78});
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->usable());
}

}  // namespace
}  // namespace stanchion::journal
