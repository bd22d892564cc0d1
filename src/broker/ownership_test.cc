// A shard and its parts are used only on the shard's loop: each entry point notices another thread.
#include <gtest/gtest.h>

#include "broker/set_aside.h"
#include "broker/shard_test_kit.h"

namespace stanchion::broker {
namespace {

constexpr char kNoticed[] = "used on its loop";
const QueueRef kOrders{"000000000000", "us-east-1", "orders"};

class Ownership : public testing::Test {
 protected:
  NumberClock clock;
  CountingEntropy entropy;
  NotedPeers peers;
  ManualLoop loop;
  ManualBackground background;
};

class ShardOwnership : public Ownership {
 protected:
  void SetUp() override {
    ASSERT_TRUE(shard.recover());
    shard.start(loop, background, peers);
    loop.run();
    loop.leave();
  }

  Shard shard{{}, std::make_unique<HeldJournal>(), nullptr, {}, clock, entropy};
};

TEST_F(ShardOwnership, EveryEntryOfAShardChecksItsThread) {
  engine::Neighbours neighbours;
  EXPECT_DEATH(shard.submit(CreateQueue{kOrders, {}, {}}, {}, Ticket(1), [](Reply) {}), kNoticed);
  EXPECT_DEATH(shard.cancel(Ticket(1)), kNoticed);
  EXPECT_DEATH(shard.contribute({}, neighbours), kNoticed);
  EXPECT_DEATH(shard.deliver({}), kNoticed);
  EXPECT_DEATH(shard.take_verdict({TransferNo(1)}), kNoticed);
  EXPECT_DEATH(shard.hold_transfers(true), kNoticed);
  EXPECT_DEATH(shard.back_up({}), kNoticed);
  EXPECT_DEATH(shard.tick(), kNoticed);
  EXPECT_DEATH(shard.drain(), kNoticed);
}

TEST_F(ShardOwnership, WhoeverClosesAShardMayDoSoWhenItsLoopHasEnded) {
  EXPECT_TRUE(shard.close());
}

TEST_F(Ownership, ACommitterChecksItsThread) {
  HeldJournal journal;
  Committer committer(journal);
  committer.recovered();
  committer.start(
      loop, [] {}, [](const Failure&) {}, [] {});
  loop.leave();
  EXPECT_DEATH(committer.append("record", Haste::kNow), kNoticed);
  EXPECT_DEATH(committer.when_durable([] {}), kNoticed);
  EXPECT_DEATH(committer.answer_when_durable({}, Proven::kNow), kNoticed);
  EXPECT_DEATH(committer.answer_when_durable_first({}), kNoticed);
  EXPECT_DEATH(committer.answer_overdue(), kNoticed);
  EXPECT_DEATH(committer.send_durable(), kNoticed);
  EXPECT_DEATH(committer.flush_now(), kNoticed);
  EXPECT_DEATH(committer.go_on(), kNoticed);
  committer.stop();
  committer.send_durable();
}

TEST_F(Ownership, ATransferDeskChecksItsThread) {
  engine::Engine engine{{}};
  ShardTransfers transfers;
  transfers.start(loop);
  loop.leave();
  EXPECT_DEATH(transfers.note_departures(Position(1), TransferNo(2), TransferNo(1)), kNoticed);
  EXPECT_DEATH(transfers.send(Position(1), engine, peers), kNoticed);
  EXPECT_DEATH(transfers.hold(true), kNoticed);
  EXPECT_DEATH(transfers.add({TransferNo(1)}), kNoticed);
  EXPECT_DEATH(transfers.take_verdicts(1), kNoticed);
  EXPECT_DEATH(transfers.keep({}), kNoticed);
  EXPECT_DEATH(transfers.retry_arrivals(1, [](const Transfer&) { return true; }), kNoticed);
}

TEST_F(Ownership, AWaitingRoomChecksItsThread) {
  WaitingRoom room;
  room.start(loop);
  loop.leave();
  Job job{ReceiveMessage{}, {}, Ticket(1), SteadyInstant(), [](Reply) {}, nullptr};
  EXPECT_DEATH(room.may_wait(job, SteadyInstant()), kNoticed);
  EXPECT_DEATH(room.wait_for_read(QueueId(1), std::move(job)), kNoticed);
  EXPECT_DEATH(room.wait_for_room(std::move(job)), kNoticed);
  EXPECT_DEATH(room.take_those_for(QueueId(1)), kNoticed);
  EXPECT_DEATH(room.take_those_for_room(), kNoticed);
  EXPECT_DEATH(room.take_overdue(SteadyInstant()), kNoticed);
  EXPECT_DEATH(room.cancel(Ticket(1)), kNoticed);
}

TEST_F(Ownership, ParkedPollsAndQueuesSetAsideCheckTheirThread) {
  ParkedPolls polls;
  SetAside set_aside;
  polls.start(loop);
  set_aside.start(loop);
  loop.leave();
  EXPECT_DEATH(polls.park({}), kNoticed);
  EXPECT_DEATH(polls.first_for(kOrders), kNoticed);
  EXPECT_DEATH(polls.cancel(Ticket(1)), kNoticed);
  EXPECT_DEATH(set_aside.add(QueueId(1), {"unreadable", 0}), kNoticed);
  EXPECT_DEATH(set_aside.remove(QueueId(1)), kNoticed);
}

TEST_F(Ownership, AKeeperChecksItsThread) {
  engine::Engine engine{{}};
  HeldJournal journal;
  Keeper keeper(engine, journal, nullptr, {});
  keeper.appended(100);  // By the code that recovers the shard.
  keeper.start(loop, background, {}, clock.at);
  loop.leave();
  EXPECT_DEATH(keeper.appended(100), kNoticed);
  EXPECT_DEATH(keeper.work(Position(1), clock.at), kNoticed);
  EXPECT_DEATH(keeper.back_up({}), kNoticed);
  EXPECT_DEATH(static_cast<void>(keeper.admission(kOrders)), kNoticed);
}

}  // namespace
}  // namespace stanchion::broker
