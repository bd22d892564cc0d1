// What a journal must notice about its own end.
#include "journal/end_note.h"

#include <gtest/gtest.h>

#include "journal/survey.h"
#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

const std::string kFirst = "j/" + segment_name(Position(1));

// A journal that was closed, with one record in each of two segments.
struct Closed : LogOnSimDisk {
  Closed() {
    open();
    EXPECT_TRUE(append("one"));
    EXPECT_TRUE(log->close());
    open();
    EXPECT_TRUE(append("two"));
    EXPECT_TRUE(log->close());
    log.reset();
  }

  // The refusal, after checking that a survey reports the same.
  std::string refused() {
    const std::string said = refusal();
    const auto found = survey(*directory);
    EXPECT_TRUE(found);
    EXPECT_EQ(found->usable(), said.empty()) << said;
    return said;
  }

  const std::string second = "j/" + segment_name(Position(2));
};

TEST(EndNote, IsWrittenAsTheDocumentationShows) {
  os::SimDisk disk;
  const auto root = disk.root();
  ASSERT_TRUE(write_end_note(*root, {Position(7)}));
  EXPECT_EQ(disk.content("end")->size(), 80u);
  EXPECT_TRUE(disk.content("end")->starts_with("running 7 ")) << *disk.content("end");
  EXPECT_EQ(*read_end_note(*root), (EndNote{Position(7), std::nullopt}));
  ASSERT_TRUE(write_end_note(*root, {Position(7), Position(12)}));
  EXPECT_TRUE(disk.content("end")->starts_with("stopped 7 12 ")) << *disk.content("end");
  EXPECT_EQ(*read_end_note(*root), (EndNote{Position(7), Position(12)}));
}

TEST(EndNote, OneThatWasTornSaysNothing) {
  os::SimDisk disk;
  const auto root = disk.root();
  ASSERT_TRUE(write_end_note(*root, {Position(7), Position(12)}));
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
