#include "fleet_admin/old_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleet/control_codec.h"
#include "fleet_admin/rebuild.h"
#include "fleet_admin/topics.h"
#include "kafka/test_support.h"
#include "model/fact.h"
#include "os/real_directory.h"
#include "os/temporary_directory.h"

namespace stanchion::fleet_admin {
namespace {

using journal::Epoch;
using journal::LogEntryKind;

constexpr std::uint32_t kFleetShards = 2;
constexpr std::uint64_t kFleet = 0x1234'5678'9ABC'DEF0;
const std::string kName = "orders";

// A fleet whose nodes are stopped, with one directory and three records in the log of its last shard.
class OldLogTest : public testing::Test {
 protected:
  OldLogTest() { brokers_.make_topic(log_topic(kName), kFleetShards); }

  static kafka::ShardLog log(std::uint64_t fleet = kFleet) {
    const ShardIndex shard(kFleetShards - 1);
    return {.partition = log_partition(kName, shard), .fleet = fleet, .shard = shard, .node = 7};
  }
  static std::string record(std::uint64_t number) {
    RecordWriter writer(from_millis(static_cast<std::int64_t>(number)));
    if (number == 1) writer.add(ShardFounded{});
    return writer.bytes();
  }
  static std::vector<std::string> all_records() { return {record(1), record(2), record(3)}; }
  void append(std::string bytes) {
    kafka::append_to(brokers_.reader(), log().partition, std::move(bytes));
  }
  void write(std::uint64_t fleet = kFleet) {
    const kafka::ShardLog of = log(fleet);
    append(journal::LogEntryBuilder().finish(
        LogEntryKind::kClaim, Epoch(1), Position(1), std::nullopt,
        {.fleet = of.fleet, .shard = of.shard, .node = of.node, .writer = 99}));
    for (std::uint64_t i = 1; i <= 3; ++i)
      append(kafka::entry_bytes(Epoch(1), Position(i), record(i), of));
  }
  void found(std::uint64_t id, std::uint32_t shards = kFleetShards) {
    brokers_.make_topic(control_topic(kName), 1);
    kafka::append_to(brokers_.reader(), control_partition(kName),
                     fleet::encode_control(fleet::FleetMetadata{
                         .id = id, .name = kName, .shards = shards, .format = 1}));
  }
  Result<std::unique_ptr<OldLog>> open() {
    return OldLog::open(brokers_.settings(), kName, data_,
                        [this](std::string_view line) { said_ += std::string(line) + "\n"; });
  }
  // What is left of the last shard.
  static std::vector<std::string> records(OldLog& old) {
    std::vector<std::string> found;
    const auto problem =
        old.read(ShardIndex(kFleetShards - 1),
                 [&](Position, std::string_view record, const kafka::KafkaFollower&) -> Status {
                   found.emplace_back(record);
                   return {};
                 });
    EXPECT_EQ(problem.value_or("Kafka does not answer"), "");
    return found;
  }
  std::string rebuild(const std::string& name) {
    os::SystemEntropy entropy;
    os::SystemClock clock;
    const Status done = rebuild_fleet(
        {.fleet = name,
         .kafka = brokers_.settings(),
         .data = {scratch_.path()},
         .accept_loss = true},
        entropy, clock, [this](std::string_view line) { said_ += std::string(line) + "\n"; });
    return done ? "" : done.error().message;
  }
  void close_directory() { data_ = std::move(*broker::DataDirectory::look_at(*root_)); }
  // Where each of the fleet's logs begins and ends.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (std::uint32_t i = 0; i < kFleetShards; ++i) {
      const auto range =
          brokers_.reader().range_of(log_partition(kName, ShardIndex(i)), kafka::kTestPatience);
      EXPECT_TRUE(range) << range.error().message;
      found.emplace_back(range->first.value(), range->end.value());
    }
    return found;
  }

  kafka::MockBrokers brokers_;
  os::TemporaryDirectory scratch_;
  std::unique_ptr<os::Directory> root_ = std::move(*os::open_real_directory(scratch_.path()));
  broker::DataDirectory data_ = std::move(
      *broker::DataDirectory::open_for_fleet(*root_, kName, kFleetShards, directory_id(kFleet)));
  std::string said_;
};

TEST_F(OldLogTest, IsReadByTheIdInTheControlLog) {
  write();
  found(kFleet);
  const auto old = open();
  ASSERT_TRUE(old && *old);
  EXPECT_EQ(records(**old), all_records());
  EXPECT_EQ(said_, "fleet orders: using what Kafka still has of its logs\n");
}

TEST_F(OldLogTest, IsReadByTheIdOfItsEntriesIfTheControlTopicIsLost) {
  append("hello, you!");  // Nodes ignore it.
  write();
  const auto old = open();
  ASSERT_TRUE(old && *old) << said_;
  EXPECT_EQ(records(**old), all_records());
  EXPECT_NE(said_.find("although its control log is lost"), std::string::npos) << said_;
}

TEST_F(OldLogTest, IsReadByTheIdOfItsEntriesIfTheControlTopicWasMadeAnew) {
  write();
  brokers_.make_topic(control_topic(kName), 1);
  const auto old = open();
  ASSERT_TRUE(old && *old) << said_;
  EXPECT_EQ(records(**old), all_records());
}

TEST_F(OldLogTest, IsReadByTheIdOfItsEntriesIfAnotherFleetWasFoundedOnIt) {
  write();
  found(kFleet + 1);
  const auto old = open();
  ASSERT_TRUE(old && *old) << said_;
  EXPECT_EQ(records(**old), all_records());
  EXPECT_NE(said_.find("its control log is another fleet's"), std::string::npos) << said_;
}

TEST_F(OldLogTest, ALogWithoutEntriesIsNone) {
  const auto old = open();
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(*old, nullptr);
  EXPECT_NE(said_.find("no longer has anything in its logs"), std::string::npos) << said_;
}

TEST_F(OldLogTest, LogsOfAnotherFleetAreNotUsed) {
  write(kFleet + 1);
  const auto old = open();
  ASSERT_FALSE(old);
  EXPECT_NE(old.error().message.find("--without-log"), std::string::npos) << old.error().message;
  found(kFleet, kFleetShards + 1);
  EXPECT_FALSE(open()) << "it has another number of shards";
}

TEST_F(OldLogTest, AFleetIsNotRebuiltOnItsOwnLogs) {
  write();
  close_directory();
  const auto before = ranges();
  const std::string why = rebuild(kName);
  EXPECT_NE(why.find("orders.log[1] may have acknowledged messages"), std::string::npos) << why;
  EXPECT_NE(why.find("with another name"), std::string::npos) << why;
  EXPECT_EQ(said_, "") << "before it tells what would be lost";
  EXPECT_EQ(ranges(), before);
}

TEST_F(OldLogTest, UnderAnotherNameAFleetGetsTheRecordsAlsoWithoutItsControlTopic) {
  write();
  close_directory();
  // The mock brokers make no topics, so that it ends when the shards have been read.
  brokers_.make_topic(log_topic("again"), kFleetShards + 1);
  const std::string why = rebuild("again");
  EXPECT_NE(why.find("has 3 partitions instead of 2"), std::string::npos) << why;
  EXPECT_NE(said_.find("shard 1: no directory has it; it is restored from the old log"),
            std::string::npos)
      << said_;
}

TEST_F(OldLogTest, NoFleetIsFoundedOnLogsWithEntries) {
  write();
  os::SystemEntropy entropy;
  const auto before = ranges();
  auto admin = FleetAdmin::open(brokers_.settings(), kName);
  ASSERT_TRUE(admin);
  const Status founded =
      (*admin)->found(kFleetShards, false, entropy, Instant(), [](std::string_view) {});
  ASSERT_FALSE(founded);
  EXPECT_NE(founded.error().message.find("has the entries from offset 0 to 3"), std::string::npos)
      << founded.error().message;
  EXPECT_EQ(ranges(), before);
}

}  // namespace
}  // namespace stanchion::fleet_admin
