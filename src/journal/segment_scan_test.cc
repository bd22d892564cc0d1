#include "journal/segment_scan.h"

#include <gtest/gtest.h>

#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

constexpr Salt kSalt(0x5A17);
constexpr SegmentHeader kHeader{.first = Position(10), .salt = kSalt};

std::string frame(Position first, std::string_view record, Salt salt = kSalt) {
  FrameBuilder builder;
  builder.add(record);
  return std::string(builder.stamp(first, salt));
}

// Judges a segment whose frames end right after its header, where `rest` begins.
Tail judge(const std::string& rest, bool last_segment) {
  os::SimDisk disk;
  disk.put("f", encode_segment_header(kHeader) + rest);
  const auto root = disk.root();
  const auto file = std::move(*root->open_file("f", os::OpenMode::kReadOnly));
  auto reader = SegmentReader::open(*file);
  return *judge_tail(*reader, kSegmentHeaderSize, kSalt, last_segment);
}

TEST(TornTail, NothingAndZerosAreACleanEndInAnySegment) {
  for (const bool last : {true, false}) {
    EXPECT_EQ(judge("", last).ending, Ending::kClean);
    EXPECT_EQ(judge(std::string(100'000, '\0'), last).ending, Ending::kClean);
  }
}

TEST(TornTail, GarbageIsATornCommitInTheLastSegmentAndDamageElsewhere) {
  for (const std::size_t garbage_at : {0, 7, 4095, 4096, 99'999}) {
    std::string rest(100'000, '\0');
    rest[garbage_at] = 'x';
    EXPECT_EQ(judge(rest, true).ending, Ending::kTorn) << garbage_at;
    EXPECT_EQ(judge(rest, false).ending, Ending::kDamaged) << garbage_at;
  }
}

TEST(TornTail, AFrameAnywhereBehindProvesDamage) {
  const std::string later = frame(Position(11), "later");
  for (std::size_t at = 8; at < 3 * 4096; at += 8) {
    const Tail tail = judge(std::string(at, 'x') + later, true);
    EXPECT_EQ(tail.ending, Ending::kDamaged) << at;
    EXPECT_EQ(tail.frame_found_at, kSegmentHeaderSize + at);
  }
}

TEST(TornTail, TheHeaderOfALaterFrameIsProofEnough) {
  std::string later = frame(Position(11), "later").substr(0, kFrameHeaderSize);
  EXPECT_EQ(judge(std::string(64, 'x') + later, true).ending, Ending::kDamaged);
  later.pop_back();
  EXPECT_EQ(judge(std::string(64, 'x') + later, true).ending, Ending::kTorn);
}

TEST(TornTail, WhatAUserSentCannotPassForAFrame) {
  // The bytes of a frame of another segment, as they would look inside a record.
  const std::string imitation = frame(Position(11), "later", Salt(1));
  EXPECT_EQ(judge(std::string(64, 'x') + imitation, true).ending, Ending::kTorn);
}

TEST(TornTail, TheTornFramesOwnHeaderIsNotALaterFrame) {
  std::string torn = frame(Position(10), std::string(2000, 'r'));
  const std::size_t whole = torn.size();
  torn.resize(1024);
  EXPECT_EQ(judge(torn + std::string(whole - 1024, '\0'), true).ending, Ending::kTorn);
  EXPECT_EQ(judge(torn + std::string(5000, '\0'), true).ending, Ending::kTorn);
}

TEST(TornTail, AFrameForWhichTheFileHasNoRoomWasCutByNoCrash) {
  const std::string whole = frame(Position(10), std::string(2000, 'r'));
  for (std::size_t size = 8; size < whole.size() - 8; size += 8) {
    const Tail tail = judge(whole.substr(0, size), true);
    EXPECT_EQ(tail.ending, Ending::kDamaged) << size;
    EXPECT_TRUE(tail.cut) << size;
    EXPECT_EQ(tail.frame_found_at, 0u) << size;
  }
}

SegmentScan scan(const std::string& frames) {
  os::SimDisk disk;
  disk.put("f", encode_segment_header(kHeader) + frames);
  const auto root = disk.root();
  const auto file = std::move(*root->open_file("f", os::OpenMode::kReadOnly));
  auto reader = SegmentReader::open(*file);
  return *scan_segment(*reader, kHeader, true, {});
}

TEST(SegmentScan, ReadsFramesLargerThanItsWindow) {
  const std::string large = frame(Position(11), std::string(limits::kRecordSizeMax, 'r'));
  const SegmentScan found = scan(frame(Position(10), "a") + large + frame(Position(12), "b"));
  EXPECT_EQ(found.ending, Ending::kClean);
  EXPECT_EQ(found.frames, 3u);
  EXPECT_EQ(found.next, Position(13));
}

// What `inspect` sees of a running server: commits that arrive while it reads.
TEST(SegmentScan, FramesThatAreWrittenMeanwhileAreNotDamage) {
  const std::string first = frame(Position(10), "a");
  const std::string second = frame(Position(11), std::string(400'000, 'r'));
  const std::string third = frame(Position(12), "b");
  os::SimDisk disk;
  disk.put("f", encode_segment_header(kHeader) + first + std::string(1'000'000, '\0'));
  const auto root = disk.root();
  const auto writer = std::move(*root->open_file("f", os::OpenMode::kReadWrite));
  const auto file = std::move(*root->open_file("f", os::OpenMode::kReadOnly));
  auto reader = SegmentReader::open(*file);
  std::size_t visited = 0;
  const auto found =
      scan_segment(*reader, kHeader, true, [&](Position position, std::string_view) -> Status {
        ++visited;
        if (position != Position(10)) return {};
        return writer->write_at(kSegmentHeaderSize + first.size(), second + third);
      });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ending, Ending::kClean) << found->problem;
  EXPECT_EQ(found->next, Position(13));
  EXPECT_EQ(visited, 3u);
}

TEST(SegmentScan, AWholeFrameWithTheWrongPositionIsDamage) {
  const SegmentScan found = scan(frame(Position(10), "a") + frame(Position(12), "b"));
  EXPECT_EQ(found.ending, Ending::kDamaged);
  EXPECT_EQ(found.problem, "the frame begins at position 12 instead of 11");
  EXPECT_EQ(found.next, Position(11));
}

}  // namespace
}  // namespace stanchion::journal
