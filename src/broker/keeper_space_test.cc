// What a keeper does while the disk is full, or nearly.
#include "broker/keeper.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "broker/keeper_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

TEST_F(KeeperTest, OnAFullDiskACheckpointIsTriedAgainAndNothingLeavesMemoryMeanwhile) {
  start();
  const Position trimmed = journal->trimmed;
  store->fails_with = ENOSPC;
  send(kOrders, "hello");
  loop.alarm();
  commit();
  EXPECT_TRUE(peers.failures.empty());
  EXPECT_GT(shard->engine().message_bytes(), 0U);
  EXPECT_EQ(journal->trimmed, trimmed);
  const Answer refused = send(kOrders, "no room");
  ASSERT_TRUE(*refused);
  ASSERT_FALSE(**refused) << "it would wait for as long as the disk is full";
  EXPECT_EQ((*refused)->error().code, ErrorCode::kServiceUnavailable);
  loop.ring();
  commit();
  EXPECT_GT(shard->engine().message_bytes(), 0U) << "it is full still";
  store->fails_with = 0;
  loop.ring();
  settle();
  EXPECT_EQ(shard->engine().message_bytes(), 0U);
  EXPECT_GT(journal->trimmed, trimmed);
  EXPECT_TRUE(was_accepted(send(kOrders, "room")));
}

TEST_F(KeeperTest, OnADiskThatIsNearlyFullCheckpointsAreSmallerThanWhatIsLeft) {
  const std::size_t mib = std::size_t{1} << 20;
  store->free = 64 * mib;
  start(100 * mib);
  const std::uint64_t before = shard->keeper().checkpoints();
  const std::string body(mib / 2, 'x');
  for (int i = 0; i < 15; ++i) send(kOrders, body);
  EXPECT_EQ(background.waiting(Work::kCheckpoint), 0U);
  send(kOrders, body);
  ASSERT_EQ(background.waiting(Work::kCheckpoint), 1U) << "an eighth of what is free is unsaved";
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(was_accepted(send(kOrders, body)));
  const Answer waiting = send(kOrders, body);
  EXPECT_FALSE(*waiting) << "or the next one would not fit";
  commit();
  EXPECT_EQ(shard->keeper().checkpoints(), before + 1);
  EXPECT_TRUE(was_accepted(waiting));
}

TEST_F(KeeperTest, ShortOfSpaceACheckpointIsMadeEverySecondIfAnythingChanged) {
  const std::uint64_t mib = std::uint64_t{1} << 20;
  keeping.left_free = 32 * mib;
  store->free = 90 * mib;
  start(mib);
  clock.at += 1s;
  shard->tick();
  settle();
  const std::uint64_t before = shard->keeper().checkpoints();
  send(kOrders, "hello");
  EXPECT_EQ(shard->keeper().next_deadline(), clock.at + 1s);
  clock.at += 1s;
  store->free = 100 * mib;
  shard->tick();
  settle();
  EXPECT_EQ(shard->keeper().checkpoints(), before + 1);
  send(kOrders, "hello");
  EXPECT_EQ(shard->keeper().next_deadline(), clock.at + 30s);
}

// Each was in the store as a part of a pack, and would be written again by itself. A checkpoint that
// does not fit would be tried for ever, and none could be made that frees space.
TEST_F(KeeperTest, OnAFullDiskNoCheckpointWritesMessagesAgainThatMayBeDeletedSoon) {
  const std::uint64_t mib = std::uint64_t{1} << 20;
  keeping.left_free = 32 * mib;
  store->free = 100 * mib;
  engine_options.memory.chunk_messages = 4;
  start(mib);
  for (int i = 0; i < 40; ++i) send(kOrders, std::string(1'000, 'x'));
  clock.at += 30s;
  shard->tick();
  settle();
  store->free = 20'000;
  send(kOrders, "refused");
  ReceiveMessage request;
  request.queue = kOrders;
  request.max_number_of_messages = 10;
  std::vector<DeleteMessage> deletes;
  for (int i = 0; i < 4; ++i) {
    const Answer got = submit(request);
    settle();
    ASSERT_TRUE(was_accepted(got));
    for (const auto& message : std::get<ReceiveMessageResult>(***got).messages)
      deletes.push_back({kOrders, message.receipt_handle});
  }
  ASSERT_EQ(deletes.size(), 40U);
  EXPECT_GE(shard->engine().memory().to_unpack, 40'000U);
  const std::uint64_t before = shard->keeper().checkpoints();
  const auto pass_a_second = [&] {
    clock.at += 1s;
    loop.ring_all();
    settle();
  };
  for (int i = 0; i < 40; ++i) pass_a_second();
  EXPECT_EQ(shard->keeper().checkpoints(), before);
  // One message of each pack stays.
  for (std::size_t i = 0; i < deletes.size(); ++i) {
    if (i % 4 == 0) continue;
    EXPECT_TRUE(was_accepted(submit(deletes[i])));
  }
  pass_a_second();
  pass_a_second();
  EXPECT_GT(shard->keeper().checkpoints(), before);
}

TEST_F(KeeperTest, SendsAreRefusedBeforeTheDiskIsTooFullForTheNextCheckpoint) {
  const std::uint64_t mib = std::uint64_t{1} << 20;
  keeping.left_free = 32 * mib;
  store->free = 35 * mib;
  start(100 * mib);
  const std::string body(mib / 2, 'x');
  EXPECT_TRUE(was_accepted(send(kOrders, body)));
  store->free = 32 * mib;
  int accepted = 0;
  Answer last;
  while (accepted < 20 && was_accepted(last = send(kOrders, body))) ++accepted;
  EXPECT_LT(accepted, 4);
  ASSERT_TRUE(*last);
  EXPECT_NE((*last)->error().message.find("full"), std::string::npos);
  EXPECT_TRUE(was_accepted(receive(kOrders))) << "it can be drained";
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  store->free = 100 * mib;
  loop.ring();
  settle();
  EXPECT_TRUE(was_accepted(send(kOrders, body)));
}

}  // namespace
}  // namespace stanchion::broker
