#include "fleet_admin/fleet_admin.h"

#include <gtest/gtest.h>

#include "fleet_admin/topics.h"
#include "kafka/test_support.h"

namespace stanchion::fleet_admin {
namespace {

constexpr std::uint32_t kFleetShards = 4;

// The mock brokers do not make topics, so that the parts behind that are tested here; the rest is
// in tests/fleet/fleet_command_test.py, on real ones.
class FleetAdminTest : public testing::Test {
 protected:
  void SetUp() override {
    brokers_.make_topic(log_topic("orders"), kFleetShards);
    brokers_.make_topic(control_topic("orders"), 1);
  }
  std::unique_ptr<FleetAdmin> open(const std::string& fleet = "orders") {
    auto opened = FleetAdmin::open(brokers_.settings(), fleet);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  void append(const fleet::ControlRecord& record) {
    const Status appended = open()->append(record);
    ASSERT_TRUE(appended) << appended.error().message;
  }
  void found() {
    append(fleet::FleetMetadata{.id = 1, .name = "orders", .shards = kFleetShards, .format = 1});
  }
  static fleet::Beat beat(const std::string& node) {
    return {.node = node, .process = 1, .zone = "a", .address = node};
  }

  kafka::MockBrokers brokers_;
};

TEST_F(FleetAdminTest, AFleetThatIsNotThereIsNamedWithWhatToDo) {
  const Status read = open("bills")->read();
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("stanchion fleet init --name bills"), std::string::npos);
  EXPECT_FALSE(open()->read()) << "topics alone are no fleet";
}

TEST_F(FleetAdminTest, LogsOfShardsAreReadAsNodesReadThem) {
  EXPECT_FALSE(open()->connection().settings().verifies_batches);
}

TEST_F(FleetAdminTest, AFleetOfAnotherSizeIsRefusedAndLeftAsItIs) {
  found();
  os::SystemEntropy entropy;
  const Status again = open()->found(12, false, entropy, Instant(), [](std::string_view) {});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("fleet orders has 4 shards"), std::string::npos);
}

TEST_F(FleetAdminTest, OnlyNodesThatAreHeardOfNowAreAlive) {
  found();
  append(beat("gone"));
  append(beat("here"));
  auto admin = open();
  ASSERT_TRUE(admin->read());
  EXPECT_EQ(admin->metadata().shards, kFleetShards);
  EXPECT_EQ(admin->state().nodes().size(), 2u);
  // One beat may come too late for those who listen, and a node goes on beating.
  const auto deadline = std::chrono::steady_clock::now() + kafka::kTestPatience;
  do {
    append(beat("here"));
    ASSERT_TRUE(admin->listen());
  } while (!admin->is_alive("here") && std::chrono::steady_clock::now() < deadline);
  EXPECT_TRUE(admin->is_alive("here"));
  EXPECT_FALSE(admin->is_alive("gone"));
  EXPECT_TRUE(admin->last_beats().contains("gone"));
}

TEST_F(FleetAdminTest, ARequestIsReadBackByWhoMadeIt) {
  found();
  auto admin = open();
  ASSERT_TRUE(admin->read());
  ASSERT_TRUE(admin->append(fleet::Drain{"n1", true}));
  ASSERT_TRUE(admin->watch(kafka::kTestPatience, [&] { return admin->state().is_drained("n1"); }));
  EXPECT_TRUE(admin->state().is_drained("n1"));
}

TEST_F(FleetAdminTest, ARequestThatKafkaRefusesFails) {
  found();
  auto admin = open();
  ASSERT_TRUE(admin->read());
  brokers_.refuse(std::vector(10, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED));
  EXPECT_FALSE(admin->append(fleet::Forget{"n1"}));
}

TEST_F(FleetAdminTest, LogsAreAsLargeAsWhatIsInThem) {
  found();
  kafka::TestReplica writer(brokers_.settings(),
                            {.partition = log_partition("orders", ShardIndex(2)),
                             .fleet = kafka::kTestFleet,
                             .shard = ShardIndex(2),
                             .node = 1});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(writer.append_bytes("anything"));
  auto admin = open();
  ASSERT_TRUE(admin->read());
  const auto sizes = admin->log_sizes();
  ASSERT_EQ(sizes.size(), kFleetShards);
  ASSERT_TRUE(sizes[2] && sizes[0]);
  EXPECT_EQ(sizes[2]->end.value() - sizes[2]->first.value(), 5u);
  EXPECT_EQ(sizes[0]->end.value() - sizes[0]->first.value(), 0u);
}

}  // namespace
}  // namespace stanchion::fleet_admin
