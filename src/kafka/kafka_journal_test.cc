#include "kafka/kafka_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::LogEntryBuilder;
using journal::LogEntryKind;
using journal::Proof;
using journal::Room;
using Records = std::vector<std::string>;

TEST(KafkaJournal, WhatWasAppendedIsReadBackByTheNextOwner) {
  MockBrokers brokers;
  {
    Node node(brokers.settings(), test_log());
    ASSERT_TRUE(node.claim());
    EXPECT_TRUE(node.records.empty());
    EXPECT_EQ(node.append("one"), Position(1));
    EXPECT_EQ(node.journal->append("two"), Position(2));
    EXPECT_EQ(node.append("three"), Position(3));
    EXPECT_TRUE(node.ear.wait_durable(Position(3)));
    ASSERT_TRUE(node.journal->close());
  }
  Node next(brokers.settings(), test_log());
  ASSERT_TRUE(next.claim());
  EXPECT_EQ(next.records, (Records{"one", "two", "three"}));
  EXPECT_EQ(next.journal->next_position(), Position(4));
  EXPECT_EQ(next.journal->durable(), Position(3));
  EXPECT_TRUE(next.append_durably("four"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three", "four"}));
}

TEST(KafkaJournal, AClosedJournalHasMadeEverythingDurable) {
  MockBrokers brokers;
  brokers.answer_after(20);
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  for (int i = 0; i < 100; ++i) node.journal->append(std::to_string(i));
  ASSERT_TRUE(node.journal->close());
  EXPECT_EQ(node.journal->durable(), Position(100));
  EXPECT_EQ(read_back(brokers).size(), 100u);
}

TEST(KafkaJournal, ReplayLeavesOutWhatTheCheckpointHas) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  for (const char* record : {"one", "two", "three"}) ASSERT_TRUE(node.append_durably(record));
  Node next(brokers.settings(), test_log());
  ASSERT_TRUE(next.claim(Position(3)));
  EXPECT_EQ(next.records, Records{"three"});
}

TEST(KafkaJournal, ACheckpointThatKnowsMoreThanTheLogIsRefused) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  ASSERT_TRUE(node.append_durably("one"));
  Node next(brokers.settings(), test_log());
  const Status status = next.claim(Position(7));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("up to 6"), std::string::npos) << status.error().message;
  EXPECT_TRUE(node.append_durably("two")) << "the refused node has claimed the shard";
}

TEST(KafkaJournal, AnOlderOwnerIsFencedByItsNextAppend) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  ASSERT_TRUE(older.append_durably("one"));
  Node newer(brokers.settings(), test_log(0, 2));
  ASSERT_TRUE(newer.claim());
  EXPECT_EQ(newer.records, Records{"one"});

  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(older.ear.durable(), Position(1));
  EXPECT_EQ(older.journal->durable(), Position(1));
  EXPECT_EQ(older.journal->room(), Room::kNone);
  EXPECT_FALSE(older.journal->close());

  EXPECT_TRUE(newer.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaJournal, ABarrierProvesThatNobodyElseWrites) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  const Proof proof = node.journal->barrier();
  EXPECT_EQ(node.journal->barrier(), proof) << "one barrier serves all that wait";
  EXPECT_LT(node.journal->proven(), proof);
  node.journal->flush();
  EXPECT_TRUE(node.ear.wait_for([&] { return node.journal->proven() >= proof; }));
  const Proof second = node.journal->barrier();
  EXPECT_GT(second, proof);
  ASSERT_TRUE(node.append_durably("carries it"));
  EXPECT_GE(node.journal->proven(), second);
}

TEST(KafkaJournal, ABarrierFindsThatTheLogHasMoved) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  Node newer(brokers.settings(), test_log(0, 2));
  ASSERT_TRUE(newer.claim());
  const Proof proof = older.journal->barrier();
  older.journal->flush();
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_LT(older.journal->proven(), proof);
}

TEST(KafkaJournal, WhatAReplacedOwnerAppendsIsVoidAndDisturbsNobody) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  ASSERT_TRUE(older.append_durably("one"));
  Node newer(brokers.settings(), test_log(0, 2));
  ASSERT_TRUE(newer.claim());
  ASSERT_TRUE(newer.append_durably("two"));
  // The same position as the newer owner's next record.
  ASSERT_TRUE(older.append_bytes(entry_bytes(older.journal->epoch(), Position(3), "void")));
  EXPECT_TRUE(newer.append_durably("three")) << "the void entry is in the gap before it";
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three"}));
}

TEST(KafkaJournal, BytesOfAStrangerAreVoid) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  ASSERT_TRUE(node.append_bytes("hello, you!"));
  ASSERT_TRUE(node.append_bytes("{\"a\": 1}"));
  EXPECT_TRUE(node.append_durably("one"));
  EXPECT_EQ(read_back(brokers), Records{"one"});
}

std::string refusal(const MockBrokers& brokers) {
  Node node(brokers.settings(), test_log());
  const Status status = node.claim();
  return status ? "" : status.error().message;
}

TEST(KafkaJournal, ALogWithAHoleIsRefused) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  ASSERT_TRUE(node.append_durably("one"));
  ASSERT_TRUE(node.append_bytes(entry_bytes(node.journal->epoch(), Position(3), "too far")));
  EXPECT_NE(refusal(brokers).find("records are missing"), std::string::npos) << refusal(brokers);
}

TEST(KafkaJournal, ADamagedEntryIsRefused) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  std::string bytes = entry_bytes(node.journal->epoch(), Position(1), "one");
  bytes.back() = '!';
  ASSERT_TRUE(node.append_bytes(bytes));
  EXPECT_NE(refusal(brokers).find("offset 1 of Kafka's partition log[0] does not match"),
            std::string::npos)
      << refusal(brokers);
}

TEST(KafkaJournal, TheLogOfAnotherFleetOrShardIsRefused) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ShardLog other = test_log(0, 1);
  other.fleet = 7;
  ASSERT_TRUE(node.append_bytes(entry_bytes(Epoch(1), Position(1), "one", other)));
  EXPECT_NE(refusal(brokers).find("another fleet"), std::string::npos) << refusal(brokers);

  Node mistaken(brokers.settings(),
                {.partition = {"log", 1}, .fleet = kTestFleet, .shard = ShardIndex(5), .node = 1});
  ASSERT_TRUE(mistaken.claim());
  Node right(brokers.settings(), test_log(1));
  const Status status = right.claim();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("belongs to shard 5"), std::string::npos);
}

TEST(KafkaJournal, OfClaimsThatRaceOnlyTheHighestEpochCanWrite) {
  MockBrokers brokers;
  constexpr std::size_t kNodes = 4;
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::uint32_t i = 0; i < kNodes; ++i)
    nodes.push_back(std::make_unique<Node>(brokers.settings(), test_log(0, 1 + i)));
  std::vector<std::string> outcomes(kNodes);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kNodes; ++i)
      threads.emplace_back([&, i] {
        const Status status = nodes[i]->claim();
        if (!status) outcomes[i] = status.error().message;
      });
  }
  std::vector<Epoch> epochs;
  std::size_t winners = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (!outcomes[i].empty()) {
      EXPECT_NE(outcomes[i].find("at the same time"), std::string::npos) << outcomes[i];
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

// Claims the shard for `node`, and does `meanwhile` when the end of the log is known, and the claim
// is not sent yet.
Status claim_while(Node& node, const std::function<void()>& meanwhile) {
  os::SystemEntropy entropy;
  auto opened = KafkaJournal::open(*node.connection, test_log(0, 2), entropy);
  if (!opened) return std::unexpected(opened.error());
  node.journal = std::move(*opened);
  return node.journal->replay(Position(1), [&](Position, std::string_view record) {
    if (node.records.empty()) meanwhile();
    node.records.emplace_back(record);
    return Status();
  });
}

TEST(KafkaJournal, WhatComesBetweenTheEndAndTheClaimIsReadToo) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  ASSERT_TRUE(older.append_durably("one"));
  Node newer(brokers.settings(), test_log(0, 2));
  const Status status =
      claim_while(newer, [&] { EXPECT_TRUE(older.append_durably("acknowledged meanwhile")); });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(newer.records, (Records{"one", "acknowledged meanwhile"}));
  EXPECT_EQ(newer.journal->next_position(), Position(3));
}

TEST(KafkaJournal, AClaimThatCameTooLateIsNone) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  ASSERT_TRUE(older.append_durably("one"));
  Node faster(brokers.settings(), test_log(0, 3));
  Node slower(brokers.settings(), test_log(0, 2));
  const Status status = claim_while(slower, [&] { EXPECT_TRUE(faster.claim()); });
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("node 3 has claimed shard 0"), std::string::npos)
      << status.error().message;
  EXPECT_TRUE(faster.append_durably("two")) << "a claim of the same epoch fences nobody";
}

TEST(KafkaJournal, ManyShardsShareAConnection) {
  MockBrokers brokers;
  const auto connection = connect(brokers.settings());
  os::SystemEntropy entropy;
  std::vector<std::unique_ptr<Ear>> ears;
  std::vector<std::unique_ptr<KafkaJournal>> journals;
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    auto opened = KafkaJournal::open(*connection, test_log(shard), entropy);
    ASSERT_TRUE(opened) << opened.error().message;
    ears.push_back(std::make_unique<Ear>());
    journals.push_back(std::move(*opened));
    ASSERT_TRUE(journals.back()->replay(Position(1), [](auto, auto) { return Status(); }));
    journals.back()->start(ears.back()->events());
  }
  for (int i = 0; i < 50; ++i)
    for (std::size_t shard = 0; shard < journals.size(); ++shard) {
      journals[shard]->append(std::to_string(shard));
      journals[shard]->flush();
    }
  for (const auto& ear : ears) EXPECT_TRUE(ear->wait_durable(Position(50)));
  for (const auto& journal : journals) EXPECT_TRUE(journal->close());
  for (std::uint32_t shard = 0; shard < kShards; ++shard)
    EXPECT_EQ(read_back(brokers, test_log(shard)), Records(50, std::to_string(shard)));
}

TEST(KafkaJournal, UnderLoadManyRecordsShareAnEntry) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  brokers.answer_after(50);
  for (int i = 0; i < 1000; ++i) node.append("record");
  EXPECT_TRUE(node.ear.wait_durable(Position(1000)));
  EXPECT_EQ(node.journal->figures().records, 1000u);
  EXPECT_LT(node.journal->figures().commits, 500u);
  EXPECT_EQ(read_back(brokers).size(), 1000u);
}

TEST(KafkaJournal, OneEntryIsUnderWayAtATimeHoweverLarge) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  ASSERT_TRUE(node.append_durably("one"));
  brokers.take_down();
  const std::string large(512 << 10, 'x');
  for (int i = 0; i < 3; ++i) node.append(large);
  brokers.bring_up();
  ASSERT_TRUE(node.ear.wait_durable(Position(4)));
  // The first one alone, and then what had come meanwhile.
  EXPECT_EQ(node.journal->figures().commits, 3u);
  EXPECT_EQ(read_back(brokers).size(), 4u);
}

TEST(KafkaJournal, AFollowerSeesTheValidRecordsAsTheyCome) {
  MockBrokers brokers;
  Node older(brokers.settings(), test_log(0, 1));
  ASSERT_TRUE(older.claim());
  ASSERT_TRUE(older.append_durably("one"));

  Node standby(brokers.settings(), test_log(0, 2));
  auto follower = KafkaFollower::open(*standby.connection, test_log(0, 2));
  ASSERT_TRUE(follower) << follower.error().message;
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  (*follower)->when_ready([&] {
    const std::lock_guard lock(mutex);
    ready = true;
    changed.notify_all();
  });
  Records seen;
  const auto follow_until = [&](std::size_t count) {
    while (seen.size() < count) {
      {
        std::unique_lock lock(mutex);
        if (!changed.wait_for(lock, kTestPatience, [&] { return ready; })) return false;
        ready = false;
      }
      if (!(*follower)->catch_up(
              [&](Position, std::string_view record) {
                seen.emplace_back(record);
                return Status();
              },
              100))
        return false;
    }
    return true;
  };
  EXPECT_TRUE(follow_until(1));
  ASSERT_TRUE(older.append_durably("two"));
  EXPECT_TRUE(follow_until(2));
  ASSERT_TRUE(older.append_bytes("written by nobody"));
  ASSERT_TRUE(older.append_durably("three"));
  EXPECT_TRUE(follow_until(3));
  EXPECT_EQ(seen, (Records{"one", "two", "three"}));

  // The standby is promoted: it reads only what it has not read yet.
  ASSERT_TRUE(older.append_durably("four"));
  os::SystemEntropy entropy;
  const Position next = *(*follower)->next();
  ASSERT_TRUE(standby.take(
      std::make_unique<KafkaJournal>(std::move(*follower), entropy, KafkaJournalOptions{}), next));
  EXPECT_EQ(standby.records, Records{"four"});
  EXPECT_TRUE(standby.append_durably("five"));
  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three", "four", "five"}));
}

// The mock brokers keep at most 5 MB of a partition and drop its first entries, as a trim does.
TEST(KafkaJournal, ATrimmedLogIsReadFromItsFirstEntryOn) {
  MockBrokers brokers;
  Node node(brokers.settings(), test_log());
  ASSERT_TRUE(node.claim());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(node.append_durably(std::string(2 << 20, 'x')));
  Node late(brokers.settings(), test_log());
  const Status status = late.claim();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("record 1 is needed"), std::string::npos)
      << status.error().message;
  Node next(brokers.settings(), test_log());
  const Status claimed = next.claim(Position(4));
  ASSERT_TRUE(claimed) << claimed.error().message;
  EXPECT_EQ(next.records.size(), 1u);
  EXPECT_GT(next.journal->epoch(), node.journal->epoch());
  EXPECT_TRUE(next.append_durably("five"));
  node.append("lost");
  EXPECT_TRUE(node.ear.wait_superseded());
}

}  // namespace
}  // namespace stanchion::kafka
