// The journal on real Kafka brokers: what librdkafka's mock brokers cannot do. Run by
// kafka_brokers_test.py, which starts three brokers and says where they are:
//
//   STANCHION_KAFKA_BROKERS   HOST:PORT,…
//   STANCHION_KAFKA_SCRIPT    the script that kills a broker and starts it again
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kafka/admin.h"
#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Progress = journal::SharedJournal::Progress;
using Records = std::vector<std::string>;

constexpr int kPartitions = 3;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

KafkaSettings broker_settings() {
  KafkaSettings settings;
  settings.brokers = environment("STANCHION_KAFKA_BROKERS");
  return settings;
}

void run_script(const std::string& arguments) {
  const std::string command = environment("STANCHION_KAFKA_SCRIPT") + " " + arguments;
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class KafkaBrokers : public testing::Test {
 protected:
  void SetUp() override {
    os::SystemEntropy entropy;
    topic_ = "stanchion-test-" + std::to_string(entropy.u64());
    connection_ = connect(broker_settings());
    const Status made = KafkaAdmin(*connection_).create_topic(topic_, kPartitions, false);
    ASSERT_TRUE(made) << made.error().message;
    const auto verified = KafkaAdmin(*connection_).verify_topic(topic_, kPartitions, false);
    ASSERT_TRUE(verified) << verified.error().message;
  }

  ShardLog log(std::uint32_t node = 1) const {
    return {.partition = {topic_, 0}, .fleet = kTestFleet, .shard = ShardIndex(0), .node = node};
  }

  int leader() {
    const Topic handle(rd_kafka_topic_new(connection_->producer().get(), topic_.c_str(), nullptr));
    const rd_kafka_metadata_t* metadata = nullptr;
    EXPECT_EQ(rd_kafka_metadata(connection_->producer().get(), 0, handle.get(), &metadata, 10'000),
              RD_KAFKA_RESP_ERR_NO_ERROR);
    const rd_kafka_metadata_topic_t& topic = metadata->topics[0];
    int found = -1;
    for (int i = 0; i < topic.partition_cnt; ++i)
      if (topic.partitions[i].id == 0) found = topic.partitions[i].leader;
    rd_kafka_metadata_destroy(metadata);
    return found;
  }

  // The position of the first record that the log holds.
  Position first_record() {
    auto follower = KafkaFollower::open(*connection_, log(3));
    EXPECT_TRUE(follower);
    Position first;
    const auto deadline = Clock::now() + kTestPatience;
    while (first == Position() && Clock::now() < deadline) {
      const auto step = (*follower)->step(
          [&](Position position, std::string_view) {
            if (first == Position()) first = position;
            return Status();
          },
          milliseconds(100));
      EXPECT_TRUE(step) << step.error().message;
    }
    return first;
  }

  Records read_back(Position from = Position(1)) {
    TestReplica standby(broker_settings(), log(9));
    standby.follow(from);
    EXPECT_TRUE(standby.read_to_end()) << standby.failure;
    return standby.records;
  }

  std::string topic_;
  std::unique_ptr<KafkaConnection> connection_;
};

TEST_F(KafkaBrokers, TopicsAreMadeOnceAndVerified) {
  KafkaAdmin admin(*connection_);
  const Status again = admin.create_topic(topic_, kPartitions, false);
  EXPECT_TRUE(again) << again.error().message;
  const auto description = admin.describe_topic(topic_);
  ASSERT_TRUE(description) << description.error().message;
  EXPECT_EQ(description->partitions, kPartitions);
  EXPECT_EQ(description->replicas, 3);
  EXPECT_EQ(description->settings.at("retention.ms"), "-1");
  EXPECT_EQ(description->settings.at("max.message.bytes"), std::to_string(kMessageSizeMax));
  const auto verified = admin.verify_topic(topic_, kPartitions, false);
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_TRUE(verified->empty()) << verified->front();
  const auto refused = admin.verify_topic(topic_, 24, false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("has 3 partitions"), std::string::npos);
  EXPECT_FALSE(KafkaAdmin(*connection_, milliseconds(500)).describe_topic(topic_ + "-not"));
}

TEST_F(KafkaBrokers, WhatWasAppendedIsReadBackByTheNextOwner) {
  {
    TestReplica owner(broker_settings(), log());
    ASSERT_TRUE(owner.follow_and_own()) << owner.failure;
    for (int i = 0; i < 200; ++i) owner.append(std::to_string(i));
    ASSERT_TRUE(owner.journal->close());
  }
  EXPECT_EQ(read_back().size(), 200u);
}

TEST_F(KafkaBrokers, AnOlderOwnerIsFencedAlsoWhenTheClaimWasTrimmed) {
  TestReplica older(broker_settings(), log(1));
  ASSERT_TRUE(older.follow_and_own()) << older.failure;
  ASSERT_TRUE(older.append_durably("one"));
  TestReplica newer(broker_settings(), log(2));
  ASSERT_TRUE(newer.follow_and_own()) << newer.failure;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(newer.append_durably("new"));
  newer.journal->drop_before(Position(15));
  const auto deadline = Clock::now() + kTestPatience;
  while (first_record() == Position(1) && Clock::now() < deadline) continue;
  EXPECT_EQ(first_record(), Position(15));
  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(older.ear.durable(), Position(1));

  EXPECT_EQ(read_back(Position(15)).size(), 7u);
  TestReplica late(broker_settings(), log(4));
  late.follow();
  EXPECT_TRUE(late.read_to(Progress::kTrimmed)) << late.failure;
}

TEST_F(KafkaBrokers, TheLargestEntriesPassAndComeBack) {
  {
    TestReplica owner(broker_settings(), log());
    ASSERT_TRUE(owner.follow_and_own()) << owner.failure;
    const std::string half(journal::kPayloadSizeMax / 2 - journal::kRecordPrefixSizeMax, 'y');
    for (int i = 0; i < 4; ++i) owner.journal->append(half);
    owner.journal->flush();
    EXPECT_TRUE(owner.ear.wait_durable(Position(4)));
    EXPECT_EQ(owner.journal->figures().commits, 2u);
  }
  EXPECT_EQ(read_back().size(), 4u);
}

// Appends until `count` more records are durable; returns the longest time without one.
milliseconds append_until(TestReplica& owner, Position& last, std::uint64_t count) {
  const Position goal(last.value() + count);
  auto heard = Clock::now();
  milliseconds longest(0);
  while (last < goal) {
    if (!owner.append_durably(std::to_string(last.value() + 1))) break;
    last = last.next();
    const auto now = Clock::now();
    longest = std::max(longest, std::chrono::duration_cast<milliseconds>(now - heard));
    heard = now;
  }
  EXPECT_EQ(last, goal);
  return longest;
}

TEST_F(KafkaBrokers, NothingAcknowledgedIsLostWhenTheLeaderIsKilled) {
  Position last;
  {
    TestReplica owner(broker_settings(), log());
    ASSERT_TRUE(owner.follow_and_own()) << owner.failure;
    append_until(owner, last, 200);
    const int killed = leader();
    ASSERT_GT(killed, 0);
    run_script("kill " + std::to_string(killed));
    const milliseconds gap = append_until(owner, last, 200);
    std::printf("note: after SIGKILL of the leader nothing was durable for %lld ms\n",
                static_cast<long long>(gap.count()));
    EXPECT_LT(gap, kTestPatience);
    // With it back, its replica catches up while appends go on.
    run_script("start " + std::to_string(killed));
    append_until(owner, last, 200);
  }
  const Records records = read_back();
  ASSERT_EQ(records.size(), last.value());
  for (std::size_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i], std::to_string(i + 1));
}

}  // namespace
}  // namespace stanchion::kafka
