#include "kafka/troubles.h"

#include <gtest/gtest.h>

namespace stanchion::kafka {
namespace {

using std::chrono::seconds;

const Troubles::TimePoint kStart{std::chrono::hours(1)};
const Partition kPartition{"orders.log", 7};

// What the brokers say of the partition.
void learn(Troubles& troubles, std::int32_t leader, int in_sync, Troubles::TimePoint now = kStart) {
  std::string topic_name = kPartition.topic;
  rd_kafka_metadata_partition partition{};
  partition.id = kPartition.number;
  partition.leader = leader;
  partition.replica_cnt = 3;
  partition.isr_cnt = in_sync;
  rd_kafka_metadata_topic topic{};
  topic.topic = topic_name.data();
  topic.partition_cnt = 1;
  topic.partitions = &partition;
  rd_kafka_metadata_t answer{};
  answer.topic_cnt = 1;
  answer.topics = &topic;
  troubles.learn(answer, now);
}

TEST(Troubles, WhyAnEntryIsNotTakenIsWhatTheBrokersSayOfItsPartition) {
  Troubles troubles;
  const auto why = [&] { return troubles.why_not_taken(kPartition, kStart); };
  EXPECT_EQ(why(), "no broker says who leads orders.log[7]");
  learn(troubles, 2, 1);
  EXPECT_EQ(why(),
            "orders.log[7] has 1 of 3 replicas in sync, led by broker 2; see min.insync.replicas");
  learn(troubles, -1, 0);
  EXPECT_EQ(why(), "orders.log[7] has no leader: the brokers that have it are down");
  learn(troubles, 3, 3);
  EXPECT_EQ(why(),
            "broker 3 leads orders.log[7] and takes no entries: see its log, its disk and "
            "min.insync.replicas");
  troubles.complained("broker 3: Connection refused", kStart);
  EXPECT_EQ(why(),
            "broker 3 leads orders.log[7] and takes no entries: broker 3: Connection refused");
  EXPECT_EQ(troubles.why_not_taken({"orders.log", 8}, kStart), "broker 3: Connection refused");
}

TEST(Troubles, WhatBrokersSaidLongAgoIsNotBelieved) {
  Troubles troubles;
  learn(troubles, 2, 1);
  const auto why = troubles.why_not_taken(kPartition, kStart + seconds(4));
  EXPECT_EQ(why, "no broker says who leads orders.log[7]");
}

TEST(Troubles, TheSameComplaintIsNewsOnceAMinute) {
  Troubles troubles;
  EXPECT_TRUE(troubles.complained("refused (after 3 ms)", kStart));
  EXPECT_FALSE(troubles.complained("refused (after 4 ms)", kStart + seconds(59)));
  EXPECT_TRUE(troubles.complained("timed out", kStart + seconds(59)));
  EXPECT_TRUE(troubles.complained("refused (after 5 ms)", kStart + seconds(60)));
  EXPECT_EQ(troubles.last_error(), "refused (after 5 ms)");
  troubles.acknowledged();
  EXPECT_EQ(troubles.last_error(), "");
}

}  // namespace
}  // namespace stanchion::kafka
