// What many requests that wait for memory, and much that is discarded, do to the others: little.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/keeper_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class RoomTest : public KeeperTest {
 protected:
  // Its number is noted when it is accepted.
  void send_numbered(int number) {
    SendMessage request{kOrders, "me", {}};
    request.message.body = std::string(100, 'x');
    shard->submit(request, {}, Ticket(next_ticket++), [this, number](const Reply& reply) {
      ASSERT_TRUE(reply) << reply.error().message;
      accepted.push_back(number);
    });
  }

  std::vector<int> accepted;
};

TEST_F(RoomTest, SendsThatWaitForMemoryGoOnInTheOrderInWhichTheyCame) {
  constexpr int kMany = 1'000;
  start(2'000);
  send(kOrders, std::string(4'000, 'x'));
  for (int i = 0; i < kMany; ++i) send_numbered(i);
  loop.run();
  EXPECT_EQ(shard->requests_waiting(), static_cast<std::size_t>(kMany));
  // There is room for a few at a time.
  for (int i = 0; i < kMany && shard->requests_waiting() > 0; ++i) {
    const std::size_t before = shard->requests_waiting();
    settle();
    EXPECT_LT(shard->requests_waiting(), before);
  }
  ASSERT_EQ(accepted.size(), static_cast<std::size_t>(kMany));
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(accepted[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(peers.failures.empty());
}

TEST_F(RoomTest, AllThatWaitGoOnWhenThereIsRoomForAllOfThem) {
  constexpr int kMany = 1'000;  // More than are looked at in one event.
  start(1'000'000);
  send(kOrders, std::string(900'000, 'x'));
  send(kOrders, std::string(900'000, 'x'));
  for (int i = 0; i < kMany; ++i) send_numbered(i);
  loop.run();
  ASSERT_EQ(shard->requests_waiting(), static_cast<std::size_t>(kMany));
  commit();
  EXPECT_EQ(shard->requests_waiting(), 0U);
  EXPECT_EQ(accepted.size(), static_cast<std::size_t>(kMany));
}

TEST_F(RoomTest, AReceiveThatIsCancelledWhileItWaitsForTheJournalTakesNoMessage) {
  start(1'000'000);
  send(kOrders, "x");
  journal->room_left = journal::Room::kBusy;
  const Ticket ticket(next_ticket);
  receive(kOrders);
  ASSERT_EQ(shard->requests_waiting(), 1U);
  shard->cancel(ticket);
  EXPECT_EQ(shard->requests_waiting(), 0U);
  journal->room_left = journal::Room::kPlenty;
  EXPECT_EQ(body_of(receive(kOrders)), "x");
}

TEST_F(RoomTest, WhatAPurgeDiscardsIsNotFreedWhereReadsWait) {
  start(1'000'000);
  for (int i = 0; i < 10; ++i) send(kOrders, "x");
  settle();
  ASSERT_EQ(background.waiting(Work::kRead), 0U);
  const std::size_t before = background.waiting(Work::kDiscard);
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  EXPECT_EQ(background.waiting(Work::kRead), 0U);
  EXPECT_EQ(background.waiting(Work::kDiscard), before + 1);
  background.work(Work::kDiscard);
  EXPECT_EQ(counts(kOrders), engine::Counts{});
}

TEST_F(RoomTest, AWrittenCheckpointIsNotFreedWhereReadsWait) {
  start(1'000'000);
  send(kOrders, "x");
  background.work(Work::kDiscard);
  clock.at += 1min;
  shard->tick();
  loop.run();
  ASSERT_EQ(background.waiting(Work::kCheckpoint), 1U);
  commit();
  EXPECT_EQ(background.waiting(Work::kRead), 0U);
  EXPECT_EQ(background.waiting(Work::kDiscard), 1U);
}

}  // namespace
}  // namespace stanchion::broker
