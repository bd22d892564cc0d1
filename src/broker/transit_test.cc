// Messages on their way to other queues, and a replay, while memory is small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "broker/keeper_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class TransitTest : public KeeperTest {
 protected:
  static constexpr std::size_t kPoison = 20;

  // That many messages of 1,000 bytes are on their way to kBills, and nobody answers.
  void send_away() {
    send_poison();
    let_it_leave();
  }

  void send_poison() {
    const SetQueueAttributes redrive{
        kOrders,
        {{"RedrivePolicy",
          fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})", kBills.arn())}}};
    engine::Neighbours neighbours;
    shard->contribute(engine::needs_of(redrive), neighbours);
    std::optional<Reply> reply;
    shard->submit(redrive, neighbours, Ticket(next_ticket++),
                  [&](Reply answer) { reply = std::move(answer); });
    loop.run();
    ASSERT_TRUE(reply && *reply);
    for (std::size_t i = 0; i < kPoison; ++i) ASSERT_TRUE(was_accepted(send(kOrders, body_of(i))));
  }

  void let_it_leave() {
    ReceiveMessage request;
    request.queue = kOrders;
    request.max_number_of_messages = 10;
    for (std::size_t i = 0; i < kPoison; i += 10) ASSERT_TRUE(was_accepted(submit(request)));
    clock.at += 31s;
    for (std::size_t i = 0; i < kPoison; ++i) submit(request);
    ASSERT_EQ(peers.handed_over.size(), kPoison);
    peers.handed_over.clear();
  }

  static std::string body_of(std::size_t number) {
    return fmt::format("{:04}", number) + std::string(1'000, 'x');
  }
  using KeeperTest::body_of;

  void save() {
    clock.at += keeping.checkpoint_interval;
    shard->tick();
    settle();
  }

  // Begins again with all records of the journal.
  Status recover() {
    auto owned = std::make_unique<HeldJournal>();
    EXPECT_TRUE(journal->replay(Position(1), [&](Position, std::string_view record) {
      owned->append(record);
      return Status();
    }));
    journal = owned.get();
    shard =
        std::make_unique<Shard>(engine_options, std::move(owned), store, keeping, clock, entropy);
    return shard->recover();
  }

  void start_again() {
    shard->start(loop, background, peers);
    make_durable(loop);
  }

  // What a real journal found when it was opened is durable.
  void make_durable(ManualLoop& on) {
    journal->flush();
    on.run();
  }

  // Everything arrives; returns how many were handed over and not settled at most.
  std::size_t carry(std::vector<std::string>& arrived) {
    std::size_t most = 0;
    while (!peers.handed_over.empty()) {
      const auto transfers = std::exchange(peers.handed_over, {});
      most = std::max(most, transfers.size());
      for (const Transfer& transfer : transfers) {
        arrived.emplace_back(transfer.content->body().substr(0, 4));
        shard->take_verdict({transfer.number, transfer.attempt, TransferVerdict::kAccepted});
      }
      settle();
    }
    return most;
  }

  // From another shard, for kOrders.
  Transfer first_arrival() {
    Transfer transfer;
    transfer.source = ShardIndex(1);
    transfer.number = transfer.settled_below = TransferNo(1);
    transfer.opens_attempt = true;
    transfer.destination = kOrders;
    transfer.source_arn = kBills.arn();
    ContentParts parts{};
    parts.sent = clock.at;
    parts.body = "hello";
    transfer.content = Content::make(parts);
    return transfer;
  }

  void expect_all_arrive() {
    std::vector<std::string> arrived;
    EXPECT_LE(carry(arrived), 5U);
    ASSERT_EQ(arrived.size(), kPoison);
    for (std::size_t i = 0; i < kPoison; ++i) EXPECT_EQ(arrived[i], body_of(i).substr(0, 4));
    EXPECT_EQ(shard->engine().bytes_under_way(), 0U);
    shard->engine().check_invariants();
  }
};

TEST_F(TransitTest, WhatIsUnderWayWhenAServerStartsIsReadWhenItIsItsTurn) {
  start(1 << 20);
  send_away();
  save();
  engine_options.memory.in_transit = 5'000;
  restart();
  make_durable(loop);
  EXPECT_GE(shard->engine().bytes_under_way(), kPoison * 1'000);
  EXPECT_LE(shard->engine().message_bytes(), 5'000 + kPoison * 600);
  EXPECT_LE(peers.handed_over.size(), 5U);
  shard->engine().check_invariants();
  expect_all_arrive();
}

TEST_F(TransitTest, WhatIsUnderWayIsEvictedWhileAJournalIsReplayed) {
  start(1 << 20);
  send_away();
  ASSERT_EQ(store->commits, 0);
  engine_options.memory.in_transit = 5'000;
  keeping.memory = 10'000;
  ASSERT_TRUE(recover());
  EXPECT_GT(store->commits, 0);
  EXPECT_LE(shard->engine().message_bytes(), 16'000U);
  shard->engine().check_invariants();
  start_again();
  settle();
  expect_all_arrive();
}

// The journal has next to nothing of them: only that they leave.
TEST_F(TransitTest, WhatLeftAfterACheckpointIsEvictedWhileAJournalIsReplayed) {
  start(1 << 20);
  send_poison();
  save();
  let_it_leave();
  ASSERT_EQ(store->commits, 1);
  engine_options.memory.in_transit = 5'000;
  keeping.memory = 10'000;
  ASSERT_TRUE(recover());
  EXPECT_GT(store->commits, 1);
  EXPECT_LE(shard->engine().message_bytes(), 16'000U);
  shard->engine().check_invariants();
  start_again();
  settle();
  expect_all_arrive();
}

TEST_F(TransitTest, ARefusedTransferIsReadBeforeItsRecordIsReplayed) {
  start(1 << 20);
  send_away();
  save();
  for (std::uint64_t i = 1; i <= kPoison; ++i)
    shard->take_verdict({TransferNo(i), 0, TransferVerdict::kRefused});
  loop.run();
  EXPECT_EQ(counts(kOrders).visible, kPoison);
  engine_options.memory.in_transit = 2'000;
  ASSERT_TRUE(recover());
  EXPECT_EQ(counts(kOrders).visible, kPoison);
  EXPECT_EQ(shard->engine().bytes_under_way(), 0U);
  start_again();
  for (std::size_t i = 0; i < kPoison; ++i)
    EXPECT_EQ(KeeperTest::body_of(receive(kOrders)), body_of(i));
}

TEST_F(TransitTest, ATransferThatCannotBeReadDoesNotHoldUpTheOthers) {
  start(1 << 20);
  send_away();
  save();
  engine_options.memory.in_transit = 2'000;
  restart();
  make_durable(loop);
  store->damaged = std::string(engine::departure_key(TransferNo(7)));
  std::vector<std::string> arrived;
  carry(arrived);
  EXPECT_EQ(arrived.size(), kPoison - 1);
  EXPECT_EQ(peers.damaged_queues, std::vector<std::string>{"orders"});
}

// Its number stays in use, because a later start may be able to read it.
TEST_F(TransitTest, ATransferThatCannotBeReadDoesNotUseUpTheNumbers) {
  start(1 << 20);
  send_away();
  save();
  engine_options.memory.in_transit = 2'000;
  engine_options.memory.transfer_numbers = 10;
  restart();
  make_durable(loop);
  store->damaged = std::string(engine::departure_key(TransferNo(7)));
  std::vector<std::string> arrived;
  carry(arrived);
  ASSERT_EQ(arrived.size(), kPoison - 1);
  ASSERT_EQ(shard->engine().settled_below(), TransferNo(7));
  const SetQueueAttributes redrive{
      kBills,
      {{"VisibilityTimeout", "0"},
       {"RedrivePolicy",
        fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})", kOrders.arn())}}};
  engine::Neighbours neighbours;
  shard->contribute(engine::needs_of(redrive), neighbours);
  shard->submit(redrive, neighbours, Ticket(next_ticket++), [](const Reply&) {});
  loop.run();
  arrived.clear();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(was_accepted(send(kBills, "more")));
    receive(kBills);
    receive(kBills);
    carry(arrived);
  }
  EXPECT_EQ(arrived.size(), 26U) << "four times as many numbers, and no more";
  EXPECT_EQ(shard->engine().settled_below(), TransferNo(7));
  shard->engine().check_invariants();
}

TEST_F(TransitTest, DeadLettersThatMayNotLeaveDoNotHoldBackWhatStandsBehindThem) {
  engine_options.memory.in_transit = 5'000;
  start(1 << 20);
  send_poison();
  ReceiveMessage request;
  request.queue = kOrders;
  request.max_number_of_messages = 10;
  for (std::size_t i = 0; i < kPoison; i += 10) ASSERT_TRUE(was_accepted(submit(request)));
  clock.at += 31s;
  ASSERT_TRUE(was_accepted(send(kOrders, "sound")));
  EXPECT_EQ(KeeperTest::body_of(receive(kOrders)), "sound");
  EXPECT_LT(peers.handed_over.size(), kPoison);
}

TEST_F(TransitTest, AReplayMakesCheckpointsWhenMemoryIsFull) {
  start(1 << 20);
  for (std::size_t i = 0; i < 100; ++i) send(kOrders, body_of(i));
  submit(DeleteQueue{kBills});
  ASSERT_EQ(store->commits, 0);
  keeping.memory = 20'000;
  ASSERT_TRUE(recover());
  EXPECT_GE(store->commits, 4);
  EXPECT_LE(shard->engine().message_bytes(), 24'000U);
  EXPECT_EQ(counts(kOrders).visible, 100U);
  // Killed here, the next start goes on behind the last checkpoint.
  ASSERT_TRUE(recover());
  start_again();
  for (std::size_t i = 0; i < 100; ++i) {
    const Answer answer = receive(kOrders);
    settle();
    ASSERT_EQ(KeeperTest::body_of(answer), body_of(i));
  }
}

TEST_F(TransitTest, AReplayGoesOnWithoutSpaceForACheckpoint) {
  start(1 << 20);
  for (std::size_t i = 0; i < 100; ++i) send(kOrders, body_of(i));
  keeping.memory = 20'000;
  store->fails_with = ENOSPC;
  ASSERT_TRUE(recover());
  EXPECT_EQ(store->commits, 1);
  EXPECT_EQ(counts(kOrders).visible, 100U);
  store->fails_with = 0;
  ManualLoop another;  // The first one has alarms of the first shard.
  shard->start(another, background, peers);
  make_durable(another);
  // The first one has what the replay had come to; the next ones have the rest.
  for (int round = 0; round < 10; ++round) {
    another.ring_all();
    background.work(Work::kCheckpoint);
    another.run();
    make_durable(another);
  }
  EXPECT_GT(store->commits, 1);
  EXPECT_LE(shard->engine().message_bytes(), 24'000U);
}

TEST_F(TransitTest, AReplayThatCannotWriteACheckpointForAnotherReasonEndsTheStart) {
  start(1 << 20);
  for (std::size_t i = 0; i < 100; ++i) send(kOrders, body_of(i));
  keeping.memory = 20'000;
  store->fails_with = EIO;
  EXPECT_FALSE(recover());
}

// The delayed message falls due in the replay, which decides where its group stands in the line.
TEST_F(TransitTest, AReplayMakesNoCheckpointOfWhatItCannotRead) {
  start(1 << 20);
  submit(CreateQueue{kSteps, {{"FifoQueue", "true"}, {"DelaySeconds", "60"}}, {}});
  SendMessage request{kSteps, "me", {}};
  request.message.body = "delayed";
  request.message.group_id = request.message.deduplication_id = "a";
  ASSERT_TRUE(was_accepted(submit(request)));
  save();
  ASSERT_EQ(store->commits, 1);
  clock.at += 61s;
  for (std::size_t i = 0; i < 100; ++i) send(kOrders, body_of(i));
  keeping.memory = 20'000;
  store->damage(shard->engine().find(kSteps)->id);
  ASSERT_TRUE(recover());
  ASSERT_TRUE(shard->engine().has_unreadable());
  EXPECT_EQ(store->commits, 1);
  store->damaged.reset();
  ASSERT_TRUE(recover());
  EXPECT_GT(store->commits, 1);
  start_again();
  const Answer answer = receive(kSteps);
  settle();
  EXPECT_EQ(KeeperTest::body_of(answer), "delayed");
}

TEST_F(TransitTest, AnArrivalWaitsWhileItsQueueFillsMemoryAndOthersDoNot) {
  start(10'500);
  Transfer transfer = first_arrival();
  const std::string large(8'000, 'x');
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  shard->deliver(transfer);
  transfer.opens_attempt = false;
  transfer.number = TransferNo(2);
  shard->deliver(transfer);
  loop.run();
  EXPECT_TRUE(peers.verdicts.empty()) << "the source keeps it until there is room";
  transfer.number = TransferNo(3);
  transfer.destination = kBills;
  shard->deliver(transfer);
  loop.run();
  ASSERT_EQ(peers.verdicts.size(), 1U);
  EXPECT_EQ(peers.verdicts[0].number, TransferNo(3));
  commit();
  ASSERT_EQ(peers.verdicts.size(), 3U);
  EXPECT_EQ(peers.verdicts[1].number, TransferNo(1)) << "in their order";
  EXPECT_EQ(peers.verdicts[2].number, TransferNo(2));
  EXPECT_EQ(peers.verdicts[2].verdict, TransferVerdict::kAccepted);
}

TEST_F(TransitTest, AnArrivalWaitsNoLongerThanItsSourceHasNumbersForOthers) {
  engine_options.memory.transfer_numbers = 8;
  start(10'500);
  const std::string large(8'000, 'x');
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  Transfer transfer = first_arrival();
  shard->deliver(transfer);
  transfer.opens_attempt = false;
  transfer.destination = kBills;
  for (const std::uint64_t number : {2, 3}) {
    shard->tick();
    loop.run();
    EXPECT_EQ(peers.verdicts.size(), number - 2) << "the first one waits";
    transfer.number = TransferNo(number);
    shard->deliver(transfer);
    loop.run();
  }
  shard->tick();
  loop.run();
  ASSERT_EQ(peers.verdicts.size(), 3U);
  EXPECT_EQ(peers.verdicts[2].number, TransferNo(1));
}

TEST_F(TransitTest, ManyArrivalsThatWaitedAreAcceptedSomeAtATime) {
  constexpr std::uint64_t kMany = 1'000;
  start(1 << 20);
  Transfer transfer = first_arrival();
  journal->room_left = journal::Room::kReserveOnly;
  for (std::uint64_t number = 1; number <= kMany; ++number) {
    transfer.number = TransferNo(number);
    transfer.destination = number % 2 == 0 ? kOrders : kBills;
    shard->deliver(transfer);
    transfer.opens_attempt = false;
  }
  journal->room_left = journal::Room::kPlenty;
  const std::uint64_t before = counts(kOrders).visible + counts(kBills).visible;
  shard->tick();
  const std::uint64_t after = counts(kOrders).visible + counts(kBills).visible;
  EXPECT_GT(after, before);
  EXPECT_LT(after, kMany / 2);
  loop.run();
  EXPECT_EQ(counts(kOrders).visible, kMany / 2);
  EXPECT_EQ(counts(kBills).visible, kMany / 2);
  EXPECT_EQ(peers.verdicts.size(), kMany);
}

}  // namespace
}  // namespace stanchion::broker
