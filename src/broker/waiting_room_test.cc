#include "broker/waiting_room.h"

#include <gtest/gtest.h>

#include <set>

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

TEST_F(WaitingRoomTest, AReceiveThatWaitsForRoomIsCancelled) {
  wait_for_room(job(1));
  wait_for_room(job(2, DeleteMessage{}));
  room_.cancel(Ticket(1));
  room_.cancel(Ticket(2));
  ASSERT_EQ(room_.size(), 1U);
  wait_for_room(job(3));
  EXPECT_EQ(room_.take_those_for_room().front().ticket, Ticket(2));
  wait_for_room(job(4));
  room_.cancel(Ticket(4));
  EXPECT_FALSE(room_.anyone_waits_for_room());
  EXPECT_EQ(room_.size(), 0U);
}

SendMessage send_to(const std::string& queue) {
  return {{"000000000000", "us-east-1", queue}, "me", {}};
}

TEST_F(WaitingRoomTest, LinesTakeTurnsAndEachKeepsItsOrder) {
  for (const std::uint64_t ticket : {1, 2, 3}) wait_for_room(job(ticket, send_to("large")));
  wait_for_room(job(4, send_to("small")));
  wait_for_room(job(5, DeleteMessage{}));
  room_.ask_again();
  std::size_t looks = 100;
  std::vector<std::uint64_t> tickets;
  while (auto next = room_.take_next([](const Job&) { return true; }, looks))
    tickets.push_back(next->ticket.value());
  EXPECT_EQ(tickets, (std::vector<std::uint64_t>{5, 1, 4, 2, 3}));
  EXPECT_EQ(looks, 95U);
  EXPECT_EQ(room_.size(), 0U);
  EXPECT_FALSE(room_.anyone_waits_for_room());
}

TEST_F(WaitingRoomTest, ALineIsAskedOnceHoweverManyStandInIt) {
  for (const std::uint64_t count : {10, 100, 1'000}) {
    for (std::uint64_t ticket = 0; ticket < count; ++ticket)
      wait_for_room(job(ticket, send_to("large")));
    wait_for_room(job(count, send_to("small")));
    room_.ask_again();
    int asked = 0;
    const auto is_small = [&](const Job& first) {
      ++asked;
      return std::get<SendMessage>(first.request).queue.name == "small";
    };
    std::size_t looks = 100;
    const auto next = room_.take_next(is_small, looks);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->ticket, Ticket(count));
    EXPECT_FALSE(room_.take_next(is_small, looks));
    EXPECT_FALSE(room_.is_asking());
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(room_.size(), count);
    EXPECT_EQ(room_.take_those_for_room().size(), count);
  }
}

TEST_F(WaitingRoomTest, AfterSoManyLooksTheOthersAreAskedLater) {
  for (std::uint64_t queue = 0; queue < 10; ++queue)
    wait_for_room(job(queue, send_to("queue-" + std::to_string(queue))));
  room_.ask_again();
  const auto is_last = [](const Job& first) { return first.ticket == Ticket(9); };
  std::size_t looks = 6;
  EXPECT_FALSE(room_.take_next(is_last, looks));
  EXPECT_EQ(looks, 0U);
  EXPECT_TRUE(room_.is_asking());
  looks = 6;
  EXPECT_TRUE(room_.take_next(is_last, looks)) << "it begins where it ended";
  looks = 100;
  EXPECT_FALSE(room_.take_next(is_last, looks));
  EXPECT_FALSE(room_.is_asking());
  EXPECT_EQ(looks, 91U);
}

TEST_F(WaitingRoomTest, SendsThatAreOverdueLeaveTheirLines) {
  wait_for_room(job(1, send_to("large")));
  wait_for_room(job(2, send_to("large")), kStart + 1s);
  wait_for_room(job(3, send_to("small")));
  const auto overdue = room_.take_overdue(kStart + limits::kRoomWaitMax);
  ASSERT_EQ(overdue.for_room.size(), 2U);
  EXPECT_EQ(room_.size(), 1U);
  EXPECT_EQ(room_.next_deadline(), kStart + 1s + limits::kRoomWaitMax);
  room_.ask_again();
  std::size_t looks = 100;
  EXPECT_EQ(room_.take_next([](const Job&) { return true; }, looks)->ticket, Ticket(2));
}

TEST_F(WaitingRoomTest, NoLineIsPassedOverWhenOthersAreOverdue) {
  // They are asked in the order of their names, and the first 60 came first.
  for (std::uint64_t queue = 100; queue < 400; ++queue)
    wait_for_room(job(queue, send_to("queue-" + std::to_string(queue))),
                  queue < 160 ? kStart : kStart + 1s);
  room_.ask_again();
  std::size_t looks = 256;
  EXPECT_FALSE(room_.take_next([](const Job&) { return false; }, looks));
  EXPECT_TRUE(room_.is_asking());
  EXPECT_EQ(room_.take_overdue(kStart + limits::kRoomWaitMax).for_room.size(), 60U);
  EXPECT_TRUE(room_.is_asking());
  std::set<std::uint64_t> asked;
  looks = 256;
  EXPECT_FALSE(room_.take_next(
      [&](const Job& first) {
        asked.insert(first.ticket.value());
        return false;
      },
      looks));
  EXPECT_FALSE(room_.is_asking());
  for (std::uint64_t queue = 356; queue < 400; ++queue) EXPECT_TRUE(asked.contains(queue)) << queue;
}

}  // namespace
}  // namespace stanchion::broker
