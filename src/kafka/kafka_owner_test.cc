// Owners of a log: what they write counts, others replace them, and they notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::Proof;
using journal::Room;
using Progress = journal::SharedJournal::Progress;
using Records = std::vector<std::string>;

TEST(KafkaOwner, WhatWasAppendedIsReadBackByTheNextOwner) {
  MockBrokers brokers;
  {
    TestReplica owner(brokers);
    ASSERT_TRUE(owner.follow_and_own());
    EXPECT_TRUE(owner.records.empty());
    EXPECT_EQ(owner.append("one"), Position(1));
    EXPECT_EQ(owner.journal->append("two"), Position(2));
    EXPECT_EQ(owner.append("three"), Position(3));
    EXPECT_TRUE(owner.ear.wait_durable(Position(3)));
    ASSERT_TRUE(owner.journal->close());
  }
  TestReplica next(brokers);
  ASSERT_TRUE(next.follow_and_own());
  EXPECT_EQ(next.records, (Records{"one", "two", "three"}));
  EXPECT_EQ(next.journal->next_position(), Position(4));
  EXPECT_EQ(next.journal->durable(), Position(3));
  EXPECT_TRUE(next.append_durably("four"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three", "four"}));
}

TEST(KafkaOwner, AClosedJournalHasMadeEverythingDurable) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.answer_after(20);
  for (int i = 0; i < 100; ++i) owner.journal->append(std::to_string(i));
  ASSERT_TRUE(owner.journal->close());
  EXPECT_EQ(owner.journal->durable(), Position(100));
  EXPECT_EQ(read_back(brokers).size(), 100u);
}

TEST(KafkaOwner, AnOlderOwnerIsFencedByItsNextAppend) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  ASSERT_TRUE(older.append_durably("one"));
  TestReplica newer(brokers, 2);
  ASSERT_TRUE(newer.follow_and_own());
  EXPECT_EQ(newer.records, Records{"one"});

  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(older.ear.durable(), Position(1));
  EXPECT_EQ(older.journal->durable(), Position(1));
  EXPECT_EQ(older.journal->room(), Room::kNone);
  EXPECT_FALSE(older.journal->refusal()) << "the log has another owner, and has refused nothing";
  EXPECT_FALSE(older.journal->close());

  EXPECT_TRUE(newer.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaOwner, ABarrierProvesThatNobodyElseWrites) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  const Proof proof = owner.journal->barrier();
  EXPECT_EQ(owner.journal->barrier(), proof) << "one barrier serves all that wait";
  EXPECT_LT(owner.journal->proven(), proof);
  owner.journal->flush();
  EXPECT_TRUE(owner.ear.wait_for([&] { return owner.journal->proven() >= proof; }));
  const Proof second = owner.journal->barrier();
  EXPECT_GT(second, proof);
  ASSERT_TRUE(owner.append_durably("carries it"));
  EXPECT_GE(owner.journal->proven(), second);
}

TEST(KafkaOwner, ABarrierFindsThatTheLogHasMoved) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  TestReplica newer(brokers, 2);
  ASSERT_TRUE(newer.follow_and_own());
  const Proof proof = older.journal->barrier();
  older.journal->flush();
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_LT(older.journal->proven(), proof);
}

TEST(KafkaOwner, WhatAReplacedOwnerAppendsIsVoidAndDisturbsNobody) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  ASSERT_TRUE(older.append_durably("one"));
  TestReplica newer(brokers, 2);
  ASSERT_TRUE(newer.follow_and_own());
  ASSERT_TRUE(newer.append_durably("two"));
  // The same position as the newer owner's next record.
  ASSERT_TRUE(older.append_bytes(entry_bytes(older.journal->epoch(), Position(3), "void")));
  EXPECT_TRUE(newer.append_durably("three")) << "the void entry is in the gap before it";
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three"}));
  TestReplica standby(brokers, 3);
  standby.follow();
  EXPECT_TRUE(standby.read_to_end()) << standby.failure;
  EXPECT_EQ(standby.records, (Records{"one", "two", "three"}));
}

TEST(KafkaOwner, OfClaimsThatRaceOnlyTheHighestEpochCanWrite) {
  MockBrokers brokers;
  constexpr std::size_t kNodes = 4;
  std::vector<std::unique_ptr<TestReplica>> nodes;
  for (std::uint32_t i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<TestReplica>(brokers, 1 + i));
    nodes[i]->follow();
    ASSERT_TRUE(nodes[i]->read_to_end());
  }
  std::vector<std::optional<Progress>> outcomes(kNodes);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kNodes; ++i)
      threads.emplace_back([&, i] { outcomes[i] = nodes[i]->claim(); });
  }
  std::vector<Epoch> epochs;
  std::size_t winners = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (outcomes[i] != Progress::kOwned) {
      EXPECT_EQ(outcomes[i], Progress::kRefused) << nodes[i]->failure;
      continue;
    }
    epochs.push_back(nodes[i]->journal->epoch());
    if (nodes[i]->append_durably("mine")) ++winners;
  }
  std::ranges::sort(epochs);
  EXPECT_EQ(std::ranges::adjacent_find(epochs), epochs.end()) << "two owners of one epoch";
  EXPECT_EQ(winners, 1u);
  EXPECT_EQ(read_back(brokers), Records{"mine"});
}

TEST(KafkaOwner, WhatComesBetweenTheEndAndTheClaimIsReadToo) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  ASSERT_TRUE(older.append_durably("one"));
  TestReplica newer(brokers, 2);
  newer.follow();
  ASSERT_TRUE(newer.read_to_end());
  EXPECT_EQ(newer.records, Records{"one"});
  ASSERT_TRUE(older.append_durably("acknowledged meanwhile"));
  ASSERT_EQ(newer.claim(), Progress::kOwned) << newer.failure;
  EXPECT_EQ(newer.records, (Records{"one", "acknowledged meanwhile"}));
  EXPECT_EQ(newer.journal->next_position(), Position(3));
}

TEST(KafkaOwner, ManyShardsShareAConnection) {
  MockBrokers brokers;
  const std::shared_ptr<KafkaConnection> connection = connect(brokers.settings());
  std::vector<std::unique_ptr<TestReplica>> shards;
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    shards.push_back(std::make_unique<TestReplica>(connection, test_log(shard)));
    ASSERT_TRUE(shards.back()->follow_and_own()) << shards.back()->failure;
  }
  for (int i = 0; i < 50; ++i)
    for (std::size_t shard = 0; shard < shards.size(); ++shard)
      shards[shard]->append(std::to_string(shard));
  for (const auto& shard : shards) EXPECT_TRUE(shard->ear.wait_durable(Position(50)));
  for (const auto& shard : shards) EXPECT_TRUE(shard->journal->close());
  for (std::uint32_t shard = 0; shard < kShards; ++shard)
    EXPECT_EQ(read_back(brokers, test_log(shard)), Records(50, std::to_string(shard)));
}

TEST(KafkaOwner, UnderLoadManyRecordsShareAnEntry) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.take_down();
  for (int i = 0; i < 1000; ++i) owner.append("record");
  brokers.bring_up();
  EXPECT_TRUE(owner.ear.wait_durable(Position(1000)));
  EXPECT_EQ(owner.journal->figures().records, 1000u);
  EXPECT_EQ(owner.journal->figures().commits, 2u) << "the first record alone, and then all others";
  EXPECT_EQ(read_back(brokers).size(), 1000u);
}

TEST(KafkaOwner, OneEntryIsUnderWayAtATimeHoweverLarge) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  brokers.take_down();
  const std::string large(512 << 10, 'x');
  for (int i = 0; i < 3; ++i) owner.append(large);
  brokers.bring_up();
  ASSERT_TRUE(owner.ear.wait_durable(Position(4)));
  // The first one alone, and then what had come meanwhile.
  EXPECT_EQ(owner.journal->figures().commits, 3u);
  EXPECT_EQ(read_back(brokers).size(), 4u);
}

// The mock brokers keep at most 5 MB of a partition and drop its first entries, as a trim does.
TEST(KafkaOwner, ATrimmedLogIsReadFromItsFirstEntryOn) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(older.append_durably(std::string(2 << 20, 'x')));
  const auto before = older.journal->digest();
  ASSERT_TRUE(older.append_durably(std::string(2 << 20, 'x')));
  TestReplica newer(brokers, 2);
  ASSERT_TRUE(newer.follow_and_own(Position(4), before)) << newer.failure;
  EXPECT_EQ(newer.records.size(), 1u);
  EXPECT_GT(newer.journal->epoch(), older.journal->epoch());
  EXPECT_TRUE(newer.append_durably("five"));
  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
}

}  // namespace
}  // namespace stanchion::kafka
