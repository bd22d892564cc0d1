// A full disk, seen through SegmentLog: nothing acknowledged is lost, and the reported room is
// real.
#include "journal/segment_space.h"

#include <gtest/gtest.h>

#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

// Everything that an open log with an empty segment in use takes.
constexpr std::uint64_t kNote = 80;  // See end_note.h.
constexpr std::uint64_t kTaken = kSmallSegments.segment_size + kSmallSegments.reserve_size + kNote;

const std::string kRecord(100, 'r');

// Appends as long as the log is in `room`, and returns how many records went in.
std::size_t append_while(LogOnSimDisk& on, Room room) {
  std::size_t count = 0;
  while (on.log->room() == room && count < 1000) {
    EXPECT_TRUE(on.append(kRecord));
    EXPECT_TRUE(on.log->prepare(on.now));
    ++count;
  }
  return count;
}

TEST(SegmentSpace, TheNextSegmentAndTheReserveAreTakenWhenTheLogIsOpened) {
  LogOnSimDisk on;
  on.open();
  EXPECT_EQ(on.disk.used(), kTaken);
  EXPECT_EQ(on.log->room(), Room::kPlenty);
}

TEST(SegmentSpace, TheNextSegmentIsThereBeforeTheCurrentOneIsFull) {
  LogOnSimDisk on;
  on.open();
  while (!on.disk.content("j/next") || on.log->next_position() == Position(1)) {
    ASSERT_TRUE(on.append(kRecord));
    ASSERT_TRUE(on.log->prepare(on.now));
    ASSERT_LT(on.log->next_position().value() * kRecord.size(), kSmallSegments.segment_size);
  }
}

TEST(SegmentSpace, AFullDiskGoesThroughReserveOnlyToNoneAndLosesNothing) {
  LogOnSimDisk on;
  on.disk.set_capacity(kTaken);
  on.open();
  const std::size_t in_plenty = append_while(on, Room::kPlenty);
  EXPECT_GT(in_plenty, 10u);
  EXPECT_EQ(on.log->room(), Room::kReserveOnly);
  EXPECT_FALSE(on.disk.content("j/reserve"));
  const std::size_t in_reserve = append_while(on, Room::kReserveOnly);
  EXPECT_GE(in_reserve * kRecord.size(), 1000u) << "the reserve is there to be used";
  EXPECT_EQ(on.log->room(), Room::kNone);
  EXPECT_FALSE(on.log->failure());
  on.crash();
  EXPECT_EQ(replay_all(*on.log).size(), in_plenty + in_reserve);
}

TEST(SegmentSpace, WhileThereIsRoomTheLargestAppendFits) {
  for (std::size_t before = 0; before < 60; ++before) {
    LogOnSimDisk on;
    on.disk.set_capacity(kTaken);
    on.open();
    for (std::size_t i = 0; i < before && on.log->room() != Room::kNone; ++i) {
      ASSERT_TRUE(on.append(kRecord));
      ASSERT_TRUE(on.log->prepare(on.now));
    }
    if (on.log->room() == Room::kNone) return;
    const std::size_t largest = kSmallSegments.append_size_max - kFrameHeaderSize - 2;
    EXPECT_TRUE(on.append(std::string(largest, 'l'))) << before;
  }
}

TEST(SegmentSpace, PendingBytesCountAgainstTheRoom) {
  LogOnSimDisk on;
  on.open();
  const std::uint64_t free = kSmallSegments.segment_size - kSegmentHeaderSize;
  EXPECT_EQ(on.log->room(free - kSmallSegments.append_size_max), Room::kPlenty);
  EXPECT_EQ(on.log->room(free - kSmallSegments.append_size_max + 1), Room::kBusy);
}

TEST(SegmentSpace, PlentyReturnsWithTheSpaceAndTheReserveIsMadeAgain) {
  LogOnSimDisk on;
  on.disk.set_capacity(kTaken);
  on.open();
  append_while(on, Room::kPlenty);
  append_while(on, Room::kReserveOnly);
  on.disk.set_capacity(10 * kTaken);
  ASSERT_TRUE(on.log->prepare(on.now));
  EXPECT_EQ(on.log->room(), Room::kNone) << "a full disk is not asked again at once";
  on.now += kSpaceRetryInterval;
  ASSERT_TRUE(on.log->prepare(on.now));
  EXPECT_EQ(on.log->room(), Room::kPlenty);
  EXPECT_TRUE(on.disk.content("j/reserve"));
  ASSERT_TRUE(on.append(kRecord));
}

TEST(SegmentSpace, TrimmingGivesTheSpaceBackWithoutWaiting) {
  LogOnSimDisk on;
  on.disk.set_capacity(kTaken + kSmallSegments.segment_size);
  on.open();
  append_while(on, Room::kPlenty);
  append_while(on, Room::kReserveOnly);
  ASSERT_TRUE(trim_before(*on.log, on.log->next_position()));
  ASSERT_TRUE(on.log->prepare(on.now));
  EXPECT_EQ(on.log->room(), Room::kPlenty);
}

TEST(SegmentSpace, AClockSetBackDoesNotPutTheNextTryOff) {
  LogOnSimDisk on;
  on.disk.set_capacity(kTaken);
  on.open();
  append_while(on, Room::kPlenty);
  on.disk.set_capacity(10 * kTaken);
  on.now -= std::chrono::hours(1);
  ASSERT_TRUE(on.log->prepare(on.now));
  EXPECT_EQ(on.log->room(), Room::kPlenty);
}

TEST(SegmentSpace, OpeningOnAFullDiskStillLetsTheOperatorDrain) {
  LogOnSimDisk on;
  on.disk.set_capacity(kTaken);
  on.open();
  append_while(on, Room::kPlenty);
  on.disk.set_capacity(0);  // Another program takes whatever space is freed.
  on.disk.restart_process();
  on.open();
  EXPECT_EQ(on.log->room(), Room::kReserveOnly);
  EXPECT_TRUE(on.append(kRecord));
  on.disk.restart_process();
  on.open();
  EXPECT_EQ(on.log->room(), Room::kNone);
}

TEST(SegmentSpace, HalfAReserveIsTakenIfThatIsAllThereIs) {
  LogOnSimDisk on;
  on.disk.set_capacity(kNote + kSmallSegments.segment_size + kSmallSegments.reserve_size / 2);
  on.open();
  EXPECT_EQ(on.disk.content("j/reserve")->size(), kSmallSegments.reserve_size / 2);
  EXPECT_EQ(on.log->room(), Room::kPlenty);
}

TEST(SegmentSpace, WhatIsToBeLeftFreeIsNotTakenButForDraining) {
  SegmentOptions options = kSmallSegments;
  options.leave_free = 4 * options.reserve_size;
  LogOnSimDisk on(options);
  on.disk.set_capacity(kTaken + options.leave_free);
  on.open();
  append_while(on, Room::kPlenty);
  EXPECT_EQ(on.log->room(), Room::kReserveOnly);
  EXPECT_EQ(on.disk.used(), kTaken) << "the disk has space, but not for sends";
  append_while(on, Room::kReserveOnly);
  EXPECT_EQ(on.log->room(), Room::kNone);
  for (int i = 0; i < 10; ++i) {
    on.now += kSpaceRetryInterval;
    ASSERT_TRUE(on.log->prepare(on.now));
    append_while(on, Room::kReserveOnly);
  }
  EXPECT_EQ(on.log->room(), Room::kNone);
  const std::uint64_t left = kTaken + options.leave_free - on.disk.used();
  EXPECT_GE(left, options.leave_free / 2) << "what a checkpoint needs is there still";
  EXPECT_LT(left, options.leave_free) << "the other half went to records of draining";
  // The checkpoint is made: the segments before the last one may go, and draining goes on.
  ASSERT_TRUE(trim_before(*on.log, on.log->next_position()));
  ASSERT_TRUE(on.log->prepare(on.now));
  EXPECT_NE(on.log->room(), Room::kNone);
}

TEST(SegmentSpace, ASegmentHardlyLargerThanAnAppendLeavesRoomWhileTheDiskHasSpace) {
  SegmentOptions options = kSmallSegments;
  options.segment_size = options.reserve_size = kSegmentHeaderSize + options.append_size_max + 100;
  LogOnSimDisk on(options);
  on.open();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(on.log->room(), Room::kPlenty) << i;
    ASSERT_TRUE(on.append(kRecord));
    ASSERT_TRUE(on.log->prepare(on.now));
  }
}

TEST(SegmentSpace, WhatACrashLeftOfAnAllocationIsRemoved) {
  LogOnSimDisk on;
  on.disk.put("j/allocating", std::string(4096, '\0'));
  on.disk.put("j/next", std::string(10, '\0'));
  on.open();
  EXPECT_FALSE(on.disk.content("j/allocating"));
  EXPECT_EQ(on.disk.content("j/next")->size(), kSmallSegments.segment_size);
}

}  // namespace
}  // namespace stanchion::journal
