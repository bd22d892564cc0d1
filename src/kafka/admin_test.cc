#include "kafka/admin.h"

#include <future>

#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using std::chrono::milliseconds;

TEST(KafkaAdmin, ATopicThatAllBrokersKnowIsNotWaitedFor) {
  MockBrokers brokers;
  const Status known = KafkaAdmin(brokers.reader(), kTestPatience).wait_until_known("log");
  EXPECT_TRUE(known) << known.error().message;
}

TEST(KafkaAdmin, ATopicIsWaitedForUntilAllBrokersKnowIt) {
  MockBrokers brokers;
  KafkaAdmin admin(brokers.reader(), kTestPatience);
  auto known = std::async(std::launch::async, [&] { return admin.wait_until_known("late"); });
  brokers.make_topic("late", 1);
  const Status status = known.get();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(*admin.partitions_of("late"), 1);
}

TEST(KafkaAdmin, ABrokerThatDoesNotKnowATopicIsNamed) {
  MockBrokers brokers;
  KafkaConnection& connection = brokers.reader();
  ASSERT_TRUE(KafkaAdmin(connection, kTestPatience).partitions_of("log"));  // It is connected.
  const Status known = KafkaAdmin(connection, milliseconds(3000)).wait_until_known("never");
  ASSERT_FALSE(known);
  EXPECT_NE(known.error().message.find("does not know the topic never"), std::string::npos)
      << known.error().message;
  EXPECT_NE(known.error().message.find("127.0.0.1:"), std::string::npos) << known.error().message;
}

// Whether a broker knows the topic is asked of itself, not of another one in its place.
TEST(KafkaAdmin, ABrokerThatDoesNotAnswerIsWaitedFor) {
  MockBrokers brokers;
  KafkaConnection& connection = brokers.reader();
  ASSERT_EQ(*KafkaAdmin(connection).partitions_of("log"), kShards);
  for (int broker = 1; broker <= 3; ++broker) {
    brokers.take_down(broker);
    const Status known = KafkaAdmin(connection, milliseconds(1000)).wait_until_known("log");
    EXPECT_FALSE(known) << "broker " << broker;
    brokers.bring_up(broker);
  }
  const Status known = KafkaAdmin(connection, kTestPatience).wait_until_known("log");
  EXPECT_TRUE(known) << known.error().message;
}

}  // namespace
}  // namespace stanchion::kafka
