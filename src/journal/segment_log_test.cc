#include "journal/segment_log.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "journal/survey.h"
#include "journal/test_support.h"
#include "os/real_directory.h"
#include "os/temporary_directory.h"

namespace stanchion::journal {
namespace {

using Strings = std::vector<std::string>;

std::string first_segment() {
  return "j/" + segment_name(Position(1));
}

// Appends records of 100 bytes until `count` segments exist.
void fill_segments(LogOnSimDisk& on, std::size_t count) {
  const auto segments = [&] {
    const auto names = on.directory->list();
    return static_cast<std::size_t>(std::ranges::count_if(
        *names, [](const std::string& name) { return parse_segment_name(name).has_value(); }));
  };
  while (segments() < count) ASSERT_TRUE(on.append(std::string(100, 'r')));
}

void flip(os::SimDisk& disk, const std::string& path, std::size_t offset) {
  std::string bytes = *disk.content(path);
  bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 0x10);
  disk.put(path, bytes);
}

TEST(SegmentLog, RecordsComeBackInOrderAfterACrash) {
  LogOnSimDisk on;
  on.open();
  EXPECT_EQ(on.log->next_position(), Position(1));
  EXPECT_EQ(*on.log->append_batch(std::vector<std::string_view>{"a", "b"}), Position(2));
  EXPECT_EQ(*on.append(""), Position(3));
  on.crash();
  EXPECT_EQ(on.log->next_position(), Position(4));
  EXPECT_EQ(replay_all(*on.log), (Strings{"a", "b", ""}));
}

TEST(SegmentLog, AFoundedLogIsEmptyAndGoesOnAtItsPosition) {
  LogOnSimDisk on;
  SeededEntropy entropy(2);
  on.directory = std::move(*on.disk.root()->open_directory("j"));
  ASSERT_TRUE(SegmentLog::found(*on.directory, kTestShard, Position(77), entropy));
  on.crash();
  EXPECT_EQ(on.log->first_position(), Position(77));
  EXPECT_EQ(on.log->next_position(), Position(77));
  EXPECT_EQ(replay_all(*on.log), Strings{});
  EXPECT_FALSE(on.log->replay(Position(76), {})) << "what came before is not here";
  EXPECT_EQ(*on.append("a"), Position(77));
  on.crash();
  EXPECT_EQ(on.log->first_position(), Position(77));
  EXPECT_EQ(replay_all(*on.log), Strings{"a"});
}

TEST(SegmentLog, ALogIsFoundedOnlyWhereThereIsNone) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("a"));
  SeededEntropy entropy(2);
  EXPECT_FALSE(SegmentLog::found(*on.directory, kTestShard, Position(77), entropy));
  on.crash();
  EXPECT_EQ(replay_all(*on.log), Strings{"a"});
}

TEST(SegmentLog, PositionsGoOnInANewSegmentAfterEachOpening) {
  LogOnSimDisk on;
  for (int i = 0; i < 5; ++i) {
    on.open();
    ASSERT_TRUE(on.append(std::to_string(i)));
    on.disk.restart_process();
  }
  on.open();
  EXPECT_EQ(replay_all(*on.log), (Strings{"0", "1", "2", "3", "4"}));
}

TEST(SegmentLog, FullSegmentsAreSealedToTheirExactLength) {
  LogOnSimDisk on;
  on.open();
  fill_segments(on, 3);
  const std::string bytes = *on.disk.content(first_segment());
  EXPECT_LT(bytes.size(), kSmallSegments.segment_size);
  const auto report = survey(*on.directory);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->usable());
  ASSERT_EQ(report->segments.size(), 3u);
  EXPECT_EQ(report->segments[0].used, bytes.size());
  EXPECT_EQ(report->segments[0].next, report->segments[1].first);
  on.crash();
  EXPECT_EQ(replay_all(*on.log).size(), on.log->next_position().value() - 1);
}

TEST(SegmentLog, ReplayBeginsWhereItIsAskedToAndRefusesWhatIsNotThere) {
  LogOnSimDisk on;
  on.open();
  for (const char* record : {"a", "b", "c"}) ASSERT_TRUE(on.append(record));
  on.crash();
  Strings seen;
  ASSERT_TRUE(on.log->replay(Position(3), [&](Position, std::string_view record) -> Status {
    seen.emplace_back(record);
    return {};
  }));
  EXPECT_EQ(seen, Strings{"c"});
  const RecordVisitor ignore = [](Position, std::string_view) { return Status(); };
  EXPECT_TRUE(on.log->replay(Position(4), ignore));
  EXPECT_FALSE(on.log->replay(Position(5), ignore)) << "a checkpoint ahead of the journal";
  EXPECT_FALSE(on.log->replay(Position(0), ignore));
}

TEST(SegmentLog, AFailureOfTheVisitorEndsTheReplay) {
  LogOnSimDisk on;
  on.open();
  for (const char* record : {"a", "b"}) ASSERT_TRUE(on.append(record));
  on.crash();
  int calls = 0;
  const Status status = on.log->replay(Position(1), [&](Position, std::string_view) -> Status {
    ++calls;
    return fail("enough");
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_EQ(calls, 1);
}

TEST(SegmentLog, TrimRemovesWholeSegmentsButNeverTheLast) {
  LogOnSimDisk on;
  on.open();
  fill_segments(on, 4);
  const Position next = on.log->next_position();
  const auto before = survey(*on.directory);
  ASSERT_TRUE(trim_before(*on.log, Position(before->segments[2].first.value() - 1)));
  EXPECT_EQ(on.log->first_position(), before->segments[1].first);
  ASSERT_TRUE(trim_before(*on.log, next));
  EXPECT_EQ(on.log->first_position(), before->segments[3].first);
  on.crash();
  EXPECT_EQ(on.log->next_position(), next);
}

TEST(SegmentLog, ThePositionSurvivesWhenNothingButAnEmptySegmentIsLeft) {
  LogOnSimDisk on;
  const SegmentHeader header{.first = Position(900), .salt = Salt(3)};
  on.disk.put("j/" + segment_name(Position(900)),
              encode_segment_header(header) + std::string(1000, '\0'));
  on.open();
  EXPECT_EQ(on.log->next_position(), Position(900));
  EXPECT_EQ(*on.append("x"), Position(900));
  on.crash();
  EXPECT_EQ(replay_all(*on.log), Strings{"x"});
}

TEST(SegmentLog, TornTailIsCutAtTheLastWholeFrame) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("whole"));
  ASSERT_TRUE(on.append(std::string(300, 't')));
  const std::string bytes = *on.disk.content(first_segment());
  const std::string note = *on.disk.content("j/end");
  const std::size_t second = kSegmentHeaderSize + frame_size(6);
  for (std::size_t kept = 8; kept < frame_size(302); kept += 8) {
    std::string torn = bytes.substr(0, second + kept);
    torn.resize(bytes.size(), '\0');
    torn[second + kept] = '!';
    on.disk.put(first_segment(), torn);
    on.disk.put("j/end", note);
    on.open();
    EXPECT_EQ(replay_all(*on.log), Strings{"whole"}) << kept;
    EXPECT_EQ(on.log->recovery().torn_bytes, bytes.size() - second);
    EXPECT_EQ(on.disk.content(first_segment())->size(), second);
  }
  EXPECT_EQ(*on.append("next"), Position(2));
  on.crash();
  EXPECT_EQ(replay_all(*on.log), (Strings{"whole", "next"}));
}

TEST(SegmentLog, DamageBeforeAWholeFrameIsRefusedWithFileAndOffset) {
  LogOnSimDisk on;
  on.open();
  for (const char* record : {"first", "second", "third"}) ASSERT_TRUE(on.append(record));
  const std::size_t second = kSegmentHeaderSize + frame_size(6);
  for (std::size_t i = 0; i < kFrameHeaderSize + 7; ++i) {
    flip(on.disk, first_segment(), second + i);
    const std::string before = *on.disk.content(first_segment());
    const std::string message = on.refusal();
    EXPECT_NE(message.find("sim/" + first_segment()), std::string::npos) << message;
    EXPECT_NE(message.find("at offset " + std::to_string(second)), std::string::npos) << message;
    EXPECT_EQ(*on.disk.content(first_segment()), before);
    flip(on.disk, first_segment(), second + i);
  }
  EXPECT_EQ(on.refusal(), "");
}

TEST(SegmentLog, DamageBeforeATornFrameIsRefusedToo) {
  LogOnSimDisk on;
  on.open();
  for (const char* record : {"first", "second"}) ASSERT_TRUE(on.append(record));
  const std::size_t second = kSegmentHeaderSize + frame_size(6);
  flip(on.disk, first_segment(), kSegmentHeaderSize + kFrameHeaderSize);
  flip(on.disk, first_segment(), second + kFrameHeaderSize);
  EXPECT_NE(on.refusal().find("a later one begins at offset " + std::to_string(second)),
            std::string::npos);
}

TEST(SegmentLog, DamageInAnOlderSegmentIsRefusedByReplay) {
  LogOnSimDisk on;
  on.open();
  fill_segments(on, 2);
  const std::size_t last_byte = on.disk.content(first_segment())->size() - 8;
  flip(on.disk, first_segment(), last_byte);
  on.open();
  const Status status =
      on.log->replay(Position(1), [](Position, std::string_view) { return Status(); });
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("this is not the last segment"), std::string::npos)
      << status.error().message;
  const auto report = survey(*on.directory);
  EXPECT_FALSE(report->usable());
  EXPECT_EQ(report->segments[0].ending, Ending::kDamaged);
  EXPECT_GT(report->segments[0].problem_offset, 0u);
}

TEST(SegmentLog, AMissingSegmentIsRefused) {
  LogOnSimDisk on;
  on.open();
  fill_segments(on, 3);
  const auto before = survey(*on.directory);
  ASSERT_TRUE(on.directory->remove(before->segments[1].name));
  on.open();
  const Status status =
      on.log->replay(Position(1), [](Position, std::string_view) { return Status(); });
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("but the next segment begins at"), std::string::npos);
  std::uint64_t shown = 0;
  const auto after = survey(*on.directory, [&](Position, std::string_view) {
    ++shown;
    return Status();
  });
  EXPECT_EQ(after->problems.size(), 1u);
  EXPECT_EQ(shown, before->segments[0].next.value() - 1) << "nothing is shown behind the gap";
}

TEST(SegmentLog, SegmentsOfAnotherShardOrANewerReleaseAreRefused) {
  LogOnSimDisk on;
  SegmentHeader header{.shard = ShardIndex(1), .shard_count = 2, .first = Position(1)};
  on.disk.put(first_segment(), encode_segment_header(header));
  EXPECT_NE(on.refusal().find("belongs to shard 1 of 2, this is shard 0 of 1"), std::string::npos);
  header = {.version = kFormatVersion + 1, .first = Position(1)};
  on.disk.put(first_segment(), encode_segment_header(header));
  EXPECT_NE(on.refusal().find("written by a newer release"), std::string::npos);
  header = {.first = Position(2)};
  on.disk.put(first_segment(), encode_segment_header(header));
  EXPECT_NE(on.refusal().find("its name says otherwise"), std::string::npos);
}

// A sparse file would be read for minutes before anything is said.
TEST(SegmentLog, AFileTooLargeForASegmentIsRefusedWithoutReadingIt) {
  const os::TemporaryDirectory scratch;
  const auto directory = os::open_existing_directory(scratch.path());
  ASSERT_TRUE(directory);
  SeededEntropy entropy(1);
  ASSERT_TRUE(SegmentLog::found(**directory, kTestShard, Position(1), entropy));
  const auto file = (*directory)->open_file(segment_name(Position(1)), os::OpenMode::kReadWrite);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->truncate(kSegmentSizeMax + 1));
  const auto opened =
      SegmentLog::open(**directory, kTestShard, kSmallSegments, entropy, from_millis(0));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("a segment has at most"), std::string::npos)
      << opened.error().message;
  const auto found = survey(**directory);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->usable());
}

TEST(SegmentLog, ABadHeaderIsForgivenOnlyInAnEmptyLastSegment) {
  LogOnSimDisk on;
  for (const std::string& interrupted :
       {std::string(), std::string(10, '\0'), std::string(4096, '\0'),
        encode_segment_header({.first = Position(1)}).substr(0, 20) + std::string(100, '\0')}) {
    on.disk.put(first_segment(), interrupted);
    on.open();
    EXPECT_EQ(on.log->next_position(), Position(1));
  }
  ASSERT_TRUE(on.append("x"));
  flip(on.disk, first_segment(), 3);
  EXPECT_NE(on.refusal().find("its header is damaged"), std::string::npos);
  on.disk.put(first_segment(), std::string(100, '\0'));
  on.disk.put("j/" + segment_name(Position(2)), encode_segment_header({.first = Position(2)}));
  EXPECT_NE(on.refusal().find("its header is damaged"), std::string::npos);
}

TEST(SegmentLog, AfterAFailedSyncNothingIsAcknowledgedAndNothingIsTriedAgain) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("a"));
  on.disk.fail_sync(1);
  EXPECT_FALSE(on.append("b"));
  const std::uint64_t operations = on.disk.operations();
  const auto again = on.append("c");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("cannot sync"), std::string::npos);
  EXPECT_FALSE(on.log->prepare(on.now));
  EXPECT_FALSE(trim_before(*on.log, Position(2)));
  EXPECT_FALSE(on.log->close());
  EXPECT_EQ(on.disk.operations(), operations);
}

TEST(SegmentLog, AFrameThatRecoveryFoundIsOnDiskEvenIfItsSyncHadFailed) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("a"));
  on.disk.fail_sync(1);
  EXPECT_FALSE(on.append(std::string(400, 'b')));
  on.disk.restart_process();
  on.open();
  EXPECT_EQ(on.log->next_position(), Position(3)) << "still in the kernel's memory";
  on.crash();
  EXPECT_EQ(on.log->next_position(), Position(3)) << "what was replayed must not vanish";
}

TEST(SegmentLog, AFailedWriteStopsTheLog) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("a"));
  on.disk.fail_write(1);
  EXPECT_FALSE(on.append("b"));
  EXPECT_FALSE(on.append("c"));
  on.crash();
  EXPECT_EQ(replay_all(*on.log), Strings{"a"});
}

TEST(SegmentLog, ClosingSealsAndEnds) {
  LogOnSimDisk on;
  on.open();
  ASSERT_TRUE(on.append("a"));
  ASSERT_TRUE(on.log->close());
  EXPECT_EQ(on.disk.content(first_segment())->size(), kSegmentHeaderSize + frame_size(2));
  EXPECT_FALSE(on.append("b"));
}

}  // namespace
}  // namespace stanchion::journal
