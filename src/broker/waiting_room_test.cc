#include "broker/waiting_room.h"

#include <gtest/gtest.h>

#include "model/limits.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class WaitingRoomTest : public testing::Test {
 protected:
  static Job job(std::uint64_t ticket, Request request = ReceiveMessage{}) {
    return {std::move(request), {}, Ticket(ticket), SteadyInstant(), [](Reply) {}, nullptr};
  }
  void wait_for_read(QueueId queue, Job waiting, SteadyInstant now = kStart) {
    ASSERT_TRUE(room_.may_wait(waiting, now));
    room_.wait_for_read(queue, std::move(waiting));
  }
  void wait_for_room(Job waiting, SteadyInstant now = kStart) {
    ASSERT_TRUE(room_.may_wait(waiting, now));
    room_.wait_for_room(std::move(waiting));
  }

  static constexpr SteadyInstant kStart{1'000s};
  WaitingRoom room_;
};

TEST_F(WaitingRoomTest, GivesBackWhatWaitsInItsOrder) {
  for (const std::uint64_t ticket : {1, 2, 3}) wait_for_read(QueueId(7), job(ticket));
  wait_for_read(QueueId(8), job(4));
  EXPECT_TRUE(room_.anyone_waits_for(QueueId(7)));
  const auto taken = room_.take_those_for(QueueId(7));
  ASSERT_EQ(taken.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(taken[i].ticket, Ticket(i + 1));
  EXPECT_FALSE(room_.anyone_waits_for(QueueId(7)));
  EXPECT_TRUE(room_.take_those_for(QueueId(7)).empty());
  EXPECT_EQ(room_.size(), 1U);
}

TEST_F(WaitingRoomTest, NobodyWaitsLongerThanTheBoundHoweverOftenItIsTriedAgain) {
  wait_for_room(job(1));
  for (auto& again : room_.take_those_for_room()) wait_for_room(std::move(again), kStart + 4s);
  EXPECT_TRUE(room_.take_overdue(kStart + limits::kRoomWaitMax - 1ms).for_room.empty());
  EXPECT_EQ(room_.next_deadline(), kStart + limits::kRoomWaitMax);
  auto overdue = room_.take_overdue(kStart + limits::kRoomWaitMax);
  ASSERT_EQ(overdue.for_room.size(), 1U);
  EXPECT_FALSE(room_.may_wait(overdue.for_room.front(), kStart + limits::kRoomWaitMax));
  EXPECT_EQ(room_.size(), 0U);
}

TEST_F(WaitingRoomTest, TakesTheOverdueOutOfBothLinesAndLeavesTheOthers) {
  wait_for_room(job(1));
  wait_for_room(job(2), kStart + 1s);
  wait_for_read(QueueId(7), job(3));
  wait_for_read(QueueId(8), job(4), kStart + 2s);
  const auto overdue = room_.take_overdue(kStart + limits::kRoomWaitMax);
  ASSERT_EQ(overdue.for_room.size(), 1U);
  EXPECT_EQ(overdue.for_room.front().ticket, Ticket(1));
  ASSERT_EQ(overdue.for_read.size(), 1U);
  EXPECT_EQ(overdue.for_read.front().ticket, Ticket(3));
  EXPECT_FALSE(room_.anyone_waits_for(QueueId(7)));
  EXPECT_TRUE(room_.anyone_waits_for(QueueId(8)));
  EXPECT_EQ(room_.next_deadline(), kStart + 1s + limits::kRoomWaitMax);
}

TEST_F(WaitingRoomTest, OnlyAReceiveIsCancelled) {
  wait_for_read(QueueId(7), job(1));
  wait_for_read(QueueId(7), job(2, SetQueueAttributes{}));
  room_.cancel(Ticket(1));
  room_.cancel(Ticket(2));
  ASSERT_EQ(room_.size(), 1U);
  EXPECT_EQ(room_.take_those_for(QueueId(7)).front().ticket, Ticket(2));
}

}  // namespace
}  // namespace stanchion::broker
