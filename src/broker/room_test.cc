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

  void send_megabytes(const QueueRef& queue, int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(was_accepted(send(queue, megabyte)));
  }

  const std::string megabyte = std::string(1'000'000, 'x');
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

// Records are copies, which nothing else counts.
TEST_F(RoomTest, SendsWaitWhileTheJournalHasMuchToWrite) {
  keeping.unwritten = 1'000;
  start(1'000'000);
  send(kOrders, "first");
  journal->held = true;
  for (int i = 0; i < 20; ++i) send_numbered(i);
  loop.run();
  const std::uint64_t most = journal->unwritten_bytes();
  EXPECT_LT(most, 1'000U + 300U) << "one more than what is too much";
  const std::size_t waiting = shard->requests_waiting();
  EXPECT_GT(waiting, 0U);
  const Answer got = receive(kOrders);
  EXPECT_EQ(shard->requests_waiting(), waiting) << "others do not wait";
  for (int i = 0; i < 20 && shard->requests_waiting() > 0; ++i) {
    journal->release();
    journal->held = true;
    loop.run();
    EXPECT_LE(journal->unwritten_bytes(), most);
  }
  journal->release();
  loop.run();
  EXPECT_EQ(shard->requests_waiting(), 0U);
  EXPECT_EQ(body_of(got), "first");
  ASSERT_EQ(accepted.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(accepted[static_cast<std::size_t>(i)], i);
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

TEST_F(RoomTest, SendsWaitWhileMuchThatWasPurgedIsNotFreed) {
  start(4'000'000);
  background.work(Work::kDiscard);
  for (const QueueRef& queue : {kOrders, kBills}) {
    send_megabytes(queue, 3);
    ASSERT_TRUE(was_accepted(submit(PurgeQueue{queue})));
  }
  ASSERT_LT(shard->engine().message_bytes(), 1'000U);
  send_megabytes(kOrders, 2);
  const Answer third = send(kOrders, megabyte);
  EXPECT_FALSE(*third) << "together they take twice the budget";
  EXPECT_EQ(body_of(receive(kOrders)), megabyte) << "others do not wait";
  background.work(Work::kDiscard);
  loop.run();
  EXPECT_TRUE(was_accepted(third));
}

TEST_F(RoomTest, SendsWaitWhileACheckpointHoldsMuchThatWasDeleted) {
  start(4'000'000);
  background.work(Work::kDiscard);
  send_megabytes(kOrders, 3);
  clock.at += 1min;
  shard->tick();
  loop.run();
  ASSERT_EQ(background.waiting(Work::kCheckpoint), 1U);
  for (int i = 0; i < 3; ++i) {
    const Answer received = receive(kOrders);
    const auto& message = std::get<ReceiveMessageResult>(***received).messages.at(0);
    ASSERT_TRUE(was_accepted(submit(DeleteMessage{kOrders, message.receipt_handle})));
  }
  ASSERT_LT(shard->engine().message_bytes(), 1'000U);
  send_megabytes(kOrders, 5);
  const Answer sixth = send(kOrders, megabyte);
  EXPECT_FALSE(*sixth) << "together they take twice the budget";
  background.work_once(Work::kCheckpoint);
  loop.run();
  EXPECT_FALSE(*sixth) << "it is written, but not freed";
  background.work(Work::kDiscard);
  loop.run();
  EXPECT_TRUE(was_accepted(sixth));
}

}  // namespace
}  // namespace stanchion::broker
