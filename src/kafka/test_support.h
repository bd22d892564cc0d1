// What the tests of Kafka's journal share: brokers of librdkafka's mock cluster, and an ear for a
// journal's events. Every wait ends after a while, so that a broken rule fails a test.
#pragma once

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "kafka/batch_test_kit.h"
#include "kafka/connection.h"
#include "kafka/kafka_journal.h"
#include "os/entropy.h"

namespace stanchion::kafka {

inline constexpr auto kTestPatience = std::chrono::seconds(60);
inline constexpr std::uint64_t kTestFleet = 0xF1EE7;
inline constexpr std::int16_t kProduce = 0, kFetch = 1;  // The requests' numbers in the protocol.
inline constexpr int kShards = 12;

inline std::unique_ptr<KafkaConnection> connect(const KafkaSettings& settings) {
  auto connection = KafkaConnection::open(settings);
  EXPECT_TRUE(connection) << connection.error().message;
  return std::move(*connection);
}

// Returns when the bytes are there: where, if the brokers say so.
inline std::optional<journal::LogOffset> append_to(KafkaConnection& connection,
                                                   const Partition& partition, std::string bytes) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Delivery> delivery;
  const Status status = connection.send(partition, std::move(bytes), [&](const Delivery& done) {
    const std::lock_guard lock(mutex);
    delivery = done;
    changed.notify_all();
  });
  EXPECT_TRUE(status);
  std::unique_lock lock(mutex);
  if (!changed.wait_for(lock, kTestPatience, [&] { return delivery.has_value(); })) std::abort();
  EXPECT_FALSE(delivery->failure);
  return delivery->at;
}

// Three brokers in this process, and a topic "log" with a partition for each of kShards shards.
class MockBrokers {
 public:
  MockBrokers() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "2", nullptr, 0);
    client_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf, nullptr, 0));
    cluster_ = rd_kafka_mock_cluster_new(client_.get(), 3);
    EXPECT_EQ(rd_kafka_mock_topic_create(cluster_, "log", kShards, 3), RD_KAFKA_RESP_ERR_NO_ERROR);
    for (int shard = 0; shard < kShards; ++shard) lead(shard, 1 + shard % 3);
  }
  ~MockBrokers() {
    reader_.reset();
    rd_kafka_mock_cluster_destroy(cluster_);
  }

  void make_topic(const std::string& name, int partitions) {
    EXPECT_EQ(rd_kafka_mock_topic_create(cluster_, name.c_str(), partitions, 3),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }

  // A busy machine may take long to answer. A test that loses an answer waits less for it.
  KafkaSettings settings(
      std::chrono::milliseconds request_timeout = std::chrono::seconds(10)) const {
    KafkaSettings settings;
    settings.brokers = rd_kafka_mock_cluster_bootstraps(cluster_);
    settings.request_timeout = request_timeout;
    return settings;
  }

  // A connection on which nothing is written.
  KafkaConnection& reader() {
    if (!reader_) reader_ = connect(settings());
    return *reader_;
  }

  void lead(int shard, int broker) {
    EXPECT_EQ(rd_kafka_mock_partition_set_leader(cluster_, "log", shard, broker),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  // The next entries that are sent get these answers and are not kept.
  void refuse(std::vector<rd_kafka_resp_err_t> errors) {
    rd_kafka_mock_push_request_errors_array(cluster_, kProduce, errors.size(), errors.data());
  }
  // The same, for a long time, of entries for the partitions that this broker leads.
  void refuse_at(int broker, rd_kafka_resp_err_t error) {
    constexpr int kLong = 5'000;
    for (int i = 0; i < kLong; ++i)
      EXPECT_EQ(
          rd_kafka_mock_broker_push_request_error_rtts(cluster_, broker, kProduce, 1, error, 0),
          RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void refuse_fetch(rd_kafka_resp_err_t error) {
    rd_kafka_mock_push_request_errors_array(cluster_, kFetch, 1, &error);
  }
  // Broker 1, which leads shard 0, keeps the next entry, but its answer comes too late; what is
  // sent again gets the answer `then`.
  void lose_answer(rd_kafka_resp_err_t then = RD_KAFKA_RESP_ERR_NO_ERROR) {
    EXPECT_EQ(rd_kafka_mock_broker_push_request_error_rtts(
                  cluster_, 1, kProduce, 2, RD_KAFKA_RESP_ERR_NO_ERROR, 20'000, then, 0),
              RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void answer_after(int millis) {
    for (int broker = 1; broker <= 3; ++broker)
      rd_kafka_mock_broker_set_rtt(cluster_, broker, millis);
  }
  // Has broker 1, which leads shard 0, append a batch as it is.
  void produce(const std::string& batch) const {
    const std::string brokers = rd_kafka_mock_cluster_bootstraps(cluster_);
    const int port = std::stoi(brokers.substr(brokers.find(':') + 1));
    kafka::produce(static_cast<std::uint16_t>(port), "log", 0, batch);
  }
  void take_down(int broker = kAllBrokers) { rd_kafka_mock_broker_set_down(cluster_, broker); }
  void bring_up(int broker = kAllBrokers) { rd_kafka_mock_broker_set_up(cluster_, broker); }

 private:
  static constexpr int kAllBrokers = -1;

  Client client_;
  rd_kafka_mock_cluster_t* cluster_;
  std::unique_ptr<KafkaConnection> reader_;
};

inline ShardLog test_log(std::uint32_t shard = 0, std::uint32_t node = 1) {
  return {.partition = {"log", static_cast<std::int32_t>(shard)},
          .fleet = kTestFleet,
          .shard = ShardIndex(shard),
          .node = node};
}

// Records the events of a journal and lets a test wait for them.
class Ear {
 public:
  journal::JournalEvents events() {
    return {.durable =
                [this](Position position) {
                  note([&] {
                    EXPECT_GT(position, durable_);
                    EXPECT_FALSE(failure_ || superseded_) << "nothing is reported after the end";
                    durable_ = position;
                  });
                },
            .proven = [this] { note([this] { EXPECT_FALSE(failure_ || superseded_); }); },
            .superseded =
                [this] {
                  note([this] {
                    EXPECT_FALSE(superseded_);
                    superseded_ = true;
                  });
                },
            .roomier = [this] { note([this] { ++roomier_; }); },
            .failed =
                [this](const Failure& failure) {
                  note([&] {
                    EXPECT_FALSE(failure_);
                    failure_ = failure;
                  });
                }};
  }

  bool wait_for(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestPatience, condition);
  }
  bool wait_durable(Position position) {
    return wait_for([&] { return durable_ >= position || superseded_ || failure_; }) &&
           durable_ >= position;
  }
  bool wait_superseded() {
    return wait_for([&] { return superseded_ || failure_; }) && superseded_;
  }
  bool wait_roomier() {
    return wait_for([&] { return roomier_ > 0; });
  }
  std::string wait_failed() {
    return wait_for([&] { return failure_.has_value(); }) ? failure_->message : "";
  }
  Position durable() {
    const std::lock_guard lock(mutex_);
    return durable_;
  }

 private:
  template <class Change>
  void note(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Position durable_;
  bool superseded_ = false;
  int roomier_ = 0;
  std::optional<Failure> failure_;
};

// A node with a connection of its own and the journal of one shard.
class Node {
 public:
  Node(const KafkaSettings& settings, ShardLog log, KafkaJournalOptions options = {})
      : connection(connect(settings)), log_(std::move(log)), options_(options) {}

  // Claims the shard. What the log holds is in `records` afterwards.
  Status claim(Position from = Position(1)) {
    journal.reset();  // A connection reads a partition once at a time.
    os::SystemEntropy entropy;
    auto opened = KafkaJournal::open(*connection, log_, entropy, options_);
    if (!opened) return std::unexpected(opened.error());
    return take(std::move(*opened), from);
  }
  // As claim(), with another claim after each that failed.
  Status claim_in_the_end() {
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    for (;;) {
      Status status = claim();
      if (status || std::chrono::steady_clock::now() > deadline) return status;
    }
  }

  Status take(std::unique_ptr<KafkaJournal> opened, Position from) {
    journal = std::move(opened);
    records.clear();
    RETURN_IF_FAILED(journal->replay(from, [&](Position position, std::string_view record) {
      EXPECT_EQ(position.value(), from.value() + records.size());
      records.emplace_back(record);
      return Status();
    }));
    journal->start(ear.events());
    return {};
  }

  Position append(std::string_view record) {
    const Position position = journal->append(record);
    journal->flush();
    return position;
  }
  bool append_durably(std::string_view record) { return ear.wait_durable(append(record)); }

  // As if somebody else did it.
  std::optional<journal::LogOffset> append_bytes(std::string bytes) {
    return append_to(*connection, log_.partition, std::move(bytes));
  }

  std::unique_ptr<KafkaConnection> connection;
  Ear ear;
  std::vector<std::string> records;
  std::unique_ptr<KafkaJournal> journal;  // Ends first.

 private:
  ShardLog log_;
  KafkaJournalOptions options_;
};

// The bytes of an entry with one record.
inline std::string entry_bytes(journal::Epoch epoch, Position first, std::string_view record,
                               const ShardLog& log = test_log()) {
  journal::LogEntryBuilder builder;
  builder.add(record);
  // Of the first version, which says nothing of the past.
  return builder.finish(journal::LogEntryKind::kRecords, epoch, first, std::nullopt,
                        {.fleet = log.fleet, .shard = log.shard, .node = log.node, .writer = 99},
                        1);
}

// The entry as a later release would write it: whole, and only its version is known.
inline std::string of_a_later_release(std::string bytes) {
  bytes[journal::kLogEntryMagic.size()] = journal::kLogEntryVersion + 1;
  constexpr std::size_t kChecksumAt = journal::kLogEntryHeaderSize - 8;
  const std::string_view view = bytes;
  const std::uint64_t checksum =
      xxh3_64(view.substr(journal::kLogEntryHeaderSize), xxh3_64(view.substr(0, kChecksumAt)));
  for (std::size_t i = 0; i < 8; ++i)
    bytes[kChecksumAt + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

// What a reader finds.
inline std::vector<std::string> read_back(MockBrokers& brokers, ShardLog log = test_log()) {
  const Partition partition = log.partition;
  const auto end = brokers.reader().end_of(partition, kTestPatience);
  EXPECT_TRUE(end) << end.error().message;
  auto follower = KafkaFollower::open(brokers.reader(), std::move(log));
  EXPECT_TRUE(follower) << follower.error().message;
  std::vector<std::string> records;
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while ((*follower)->next_offset() < *end && std::chrono::steady_clock::now() < deadline) {
    const auto step = (*follower)->step(
        [&](Position position, std::string_view record) {
          EXPECT_EQ(position.value(), records.size() + 1);
          records.emplace_back(record);
          return Status();
        },
        std::chrono::milliseconds(100));
    EXPECT_TRUE(step) << step.error().message;
    if (!step) break;
  }
  return records;
}

}  // namespace stanchion::kafka
