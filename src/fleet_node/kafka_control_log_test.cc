#include "fleet_node/kafka_control_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "fleet/control_codec.h"
#include "fleet/control_test_kit.h"
#include "fleet_admin/control_reader.h"
#include "fleet_admin/topics.h"
#include "kafka/test_support.h"

namespace stanchion::fleet_node {
namespace {

using fleet::Beat;
using fleet::ControlRecord;
using kafka::kTestPatience;

// The log as a node uses it, with a bell that rings when there is something to read.
class Reader {
 public:
  explicit Reader(kafka::KafkaConnection& connection) : Reader(connection, connection) {}
  Reader(kafka::KafkaConnection& writing, kafka::KafkaConnection& reading)
      : log(writing, reading, "orders") {
    log.follow([this] {
      const std::lock_guard lock(mutex_);
      rung_ = true;
      bell_.notify_all();
    });
  }

  // Reads until it is so; false if that takes too long, or if the log has failed.
  bool read_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    for (;;) {
      const Status status = log.read([this](const ControlRecord& r) { records.push_back(r); });
      if (!status) failure = status.error().message;
      if (condition()) return true;
      if (!status) return false;
      std::unique_lock lock(mutex_);
      if (!bell_.wait_until(lock, deadline, [this] { return rung_; })) return false;
      rung_ = false;
    }
  }
  bool read_all(std::size_t count) {
    return read_until([&] { return records.size() >= count && log.has_caught_up(); });
  }

  std::vector<ControlRecord> records;
  std::string failure;

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  bool rung_ = false;

 public:
  KafkaControlLog log;  // Ends first.
};

class KafkaControlLogTest : public testing::Test {
 protected:
  void SetUp() override {
    brokers_.make_topic(fleet_admin::control_topic("orders"), 1);
    connection_ = kafka::connect(brokers_.settings());
  }
  // A connection reads a partition once at a time.
  kafka::KafkaConnection& another_connection() {
    others_.push_back(kafka::connect(brokers_.settings()));
    return *others_.back();
  }
  void append_bytes(std::string bytes) {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    ASSERT_TRUE(connection_->send(fleet_admin::control_partition("orders"), std::move(bytes),
                                  [&](const auto&) {
                                    const std::lock_guard lock(mutex);
                                    done = true;
                                    changed.notify_all();
                                  }));
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, kTestPatience, [&] { return done; }));
  }

  kafka::MockBrokers brokers_;
  std::unique_ptr<kafka::KafkaConnection> connection_;
  std::vector<std::unique_ptr<kafka::KafkaConnection>> others_;
};

Beat beat_of(std::uint64_t process) {
  return {.node = "n1", .process = process, .zone = "a", .address = "n1:1"};
}

TEST_F(KafkaControlLogTest, WhatOneNodeAppendsAllNodesReadInOrder) {
  Reader here(*connection_);
  const auto all = fleet::all_kinds_of_records();
  for (const ControlRecord& record : all) here.log.append(record);
  ASSERT_TRUE(here.read_all(all.size())) << here.failure;
  EXPECT_EQ(here.records, all);
  Reader there(another_connection());
  ASSERT_TRUE(there.read_all(all.size())) << there.failure;
  EXPECT_EQ(there.records, all);
}

// A beat that comes back shows that the client which writes the logs of shards is not stuck.
TEST_F(KafkaControlLogTest, IsWrittenByOneConnectionAndReadByTheOther) {
  kafka::MockBrokers others;
  others.make_topic(fleet_admin::control_topic("orders"), 1);
  const auto reading = kafka::connect(others.settings());
  Reader there(another_connection());
  Reader neither(*connection_, *reading);
  neither.log.append(beat_of(1));
  ASSERT_TRUE(there.read_all(1)) << there.failure;
  ASSERT_TRUE(neither.read_until([&] { return neither.log.has_caught_up(); }));
  EXPECT_TRUE(neither.records.empty());
}

TEST_F(KafkaControlLogTest, HasCaughtUpWhenAllWasReadThatWasThere) {
  {
    Reader before(*connection_);
    for (std::uint32_t i = 0; i < 50; ++i)
      before.log.append(
          fleet::Release{"n1", ShardIndex(i), fleet::AssignmentNo(1)});  // A slot for each.
    ASSERT_TRUE(before.read_all(50));
  }
  kafka::KafkaConnection& connection = another_connection();
  KafkaControlLog log(connection, connection, "orders");
  EXPECT_FALSE(log.has_caught_up());
  Reader reader(another_connection());
  ASSERT_TRUE(reader.read_until([&] { return reader.log.has_caught_up(); }));
  EXPECT_EQ(reader.records.size(), 50u);
}

TEST_F(KafkaControlLogTest, HasNotCaughtUpWhileItIsReadAgainFromTheBeginning) {
  auto reader = fleet_admin::ControlReader::open(*connection_, "orders");
  ASSERT_TRUE(reader) << reader.error().message;
  for (std::uint64_t i = 1; i <= 3; ++i) append_bytes(fleet::encode_control(beat_of(i)));
  std::size_t read = 0;
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (read < 3 || !(*reader)->has_caught_up()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    const auto entry = (*reader)->next(std::chrono::milliseconds(50));
    ASSERT_TRUE(entry) << entry.error().message;
    read += entry->has_value();
  }
  // The client may be between two fetches, and take an answer for that of the one before.
  std::optional<fleet_admin::ControlReader::Entry> again;
  while (!again) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    brokers_.refuse_fetch(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
    auto entry = (*reader)->next(std::chrono::milliseconds(500));
    ASSERT_TRUE(entry) << entry.error().message;
    again = std::move(*entry);
  }
  EXPECT_EQ(std::get<Beat>(again->record).process, 1u) << "it begins at the beginning";
  EXPECT_FALSE((*reader)->has_caught_up());
}

TEST_F(KafkaControlLogTest, AnEmptyLogHasNothingToCatchUpWith) {
  Reader reader(*connection_);
  EXPECT_TRUE(reader.read_until([&] { return reader.log.has_caught_up(); })) << reader.failure;
  EXPECT_TRUE(reader.records.empty());
}

TEST_F(KafkaControlLogTest, BeatsThatCouldNotBeSentAreReplacedByNewerOnes) {
  Reader reader(*connection_);
  ASSERT_TRUE(reader.read_until([&] { return reader.log.has_caught_up(); }));
  brokers_.take_down();
  for (std::uint64_t i = 1; i <= 200; ++i) reader.log.append(beat_of(i));
  reader.log.append(fleet::Forget{"n9"});
  brokers_.bring_up();
  const auto has_last = [&] {
    return std::ranges::find(reader.records, ControlRecord(beat_of(200))) != reader.records.end();
  };
  ASSERT_TRUE(reader.read_until([&] {
    return has_last() && std::ranges::find(reader.records, ControlRecord(fleet::Forget{"n9"})) !=
                             reader.records.end();
  })) << reader.failure;
  EXPECT_LE(reader.records.size(), 3u) << "the first was under way, the last one waited";
}

TEST_F(KafkaControlLogTest, WhatIsRefusedForAWhileIsSentAgain) {
  Reader reader(*connection_);
  brokers_.refuse({RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                   RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION});
  reader.log.append(beat_of(1));
  EXPECT_TRUE(reader.read_all(1)) << reader.failure;
}

TEST_F(KafkaControlLogTest, WhatIsRefusedForGoodEndsTheNode) {
  Reader reader(*connection_);
  brokers_.refuse(std::vector(10, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED));
  reader.log.append(beat_of(1));
  EXPECT_FALSE(reader.read_all(1));
  EXPECT_NE(reader.failure.find("orders.control[0] cannot be written"), std::string::npos)
      << reader.failure;
}

TEST_F(KafkaControlLogTest, WhatIsNoRecordIsSkipped) {
  append_bytes("Somebody tried the console producer.");
  append_bytes("STNC\x01\xC8 a kind of a later release");
  append_bytes("STNC\x01\x01 damaged");
  append_bytes("STNCgarbage, which looks like a later format");
  append_bytes("");
  append_bytes(fleet::encode_control(beat_of(5)));
  Reader reader(*connection_);
  ASSERT_TRUE(reader.read_all(1)) << reader.failure;
  EXPECT_EQ(reader.records, std::vector<ControlRecord>{beat_of(5)});
}

TEST_F(KafkaControlLogTest, ALaterFormatEndsTheNodeWithWhatToDo) {
  append_bytes(fleet::of_later_format("fields"));
  Reader reader(*connection_);
  EXPECT_FALSE(reader.read_all(1));
  EXPECT_NE(reader.failure.find("upgrade"), std::string::npos) << reader.failure;
}

TEST_F(KafkaControlLogTest, MoreThanOneReadTakesIsReadAllTheSame) {
  constexpr std::size_t kMany = 3'000;
  for (std::size_t i = 0; i + 1 < kMany; ++i)
    ASSERT_TRUE(connection_->send(fleet_admin::control_partition("orders"),
                                  fleet::encode_control(beat_of(i)), [](const auto&) {}));
  append_bytes(fleet::encode_control(beat_of(kMany)));
  Reader reader(another_connection());
  EXPECT_TRUE(reader.read_all(kMany)) << reader.records.size();
}

}  // namespace
}  // namespace stanchion::fleet_node
