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
#include "kafka/kafka_shared_journal.h"
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

  // A busy machine may take long to answer.
  KafkaSettings settings() const {
    KafkaSettings settings;
    settings.brokers = rd_kafka_mock_cluster_bootstraps(cluster_);
    settings.request_timeout = std::chrono::seconds(10);
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
  // Broker 1, which leads shard 0, keeps the entry that `send` sends, and its connection ends before
  // it has answered; what is sent again gets the answer `then`.
  void lose_answer(const std::function<void()>& send,
                   rd_kafka_resp_err_t then = RD_KAFKA_RESP_ERR_NO_ERROR) {
    constexpr int kNeverMillis = 600'000;
    const auto answer = [this](rd_kafka_resp_err_t error, int millis) {
      EXPECT_EQ(
          rd_kafka_mock_broker_push_request_error_rtts(cluster_, 1, kProduce, 1, error, millis),
          RD_KAFKA_RESP_ERR_NO_ERROR);
    };
    const journal::LogOffset end = end_of_shard_0();
    answer(RD_KAFKA_RESP_ERR_NO_ERROR, kNeverMillis);
    send();
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    while (end_of_shard_0() == end && std::chrono::steady_clock::now() < deadline) continue;
    answer(then, 0);
    take_down(1);
    bring_up(1);
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

  journal::LogOffset end_of_shard_0() {
    const auto end = reader().end_of({"log", 0}, kTestPatience);
    EXPECT_TRUE(end) << end.error().message;
    return end ? *end : journal::LogOffset();
  }

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
                    EXPECT_FALSE(superseded_) << "nothing is reported after the end";
                    durable_ = position;
                  });
                },
            .proven = [this] { note([this] { EXPECT_FALSE(superseded_); }); },
            .superseded =
                [this] {
                  note([this] {
                    EXPECT_FALSE(superseded_);
                    superseded_ = true;
                  });
                },
            .roomier = [this] { note([this] { ++roomier_; }); },
            .failed = [](const Failure& failure) { ADD_FAILURE() << failure.message; }};
  }

  bool wait_for(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kTestPatience, condition);
  }
  bool wait_durable(Position position) {
    return wait_for([&] { return durable_ >= position || superseded_; }) && durable_ >= position;
  }
  bool wait_superseded() {
    return wait_for([&] { return superseded_; });
  }
  bool wait_roomier() {
    return wait_for([&] { return roomier_ > 0; });
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
};

// A replica of a shard, as a node has it: reads when it is told that something arrived, and claims the
// log when it has read it. What it has read is in `records`.
class TestReplica {
 public:
  using Progress = journal::SharedJournal::Progress;

  explicit TestReplica(const MockBrokers& brokers, std::uint32_t node = 1)
      : TestReplica(brokers, test_log(0, node)) {}
  TestReplica(const MockBrokers& brokers, ShardLog log)
      : TestReplica(brokers.settings(), std::move(log)) {}
  TestReplica(const KafkaSettings& settings, ShardLog log, const KafkaJournalOptions& options = {})
      : TestReplica(std::shared_ptr<KafkaConnection>(connect(settings)), std::move(log), options) {}
  TestReplica(std::shared_ptr<KafkaConnection> shared, ShardLog log,
              const KafkaJournalOptions& options = {})
      : connection(std::move(shared)), log_(std::move(log)), options_(options) {}

  // Begins anew with what a store has.
  void follow(Position from = Position(1),
              std::optional<journal::LogDigest> before = std::nullopt) {
    journal.reset();  // A connection has one reader of a partition at a time.
    journal = std::make_unique<KafkaSharedJournal>(*connection, log_, entropy_, options_);
    journal->write_format(format);
    records.clear();
    next_ = from;
    journal->follow(from, before, [this] {
      const std::lock_guard lock(mutex_);
      arrived_ = true;
      changed_.notify_all();
    });
  }

  // Reads until `done`; false if that takes too long, or the reading fails.
  bool read_until(const std::function<bool(Progress)>& done) {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        arrived_ = false;
      }
      const auto progress = journal->read(1 << 20, [&](Position position, std::string_view record) {
        EXPECT_EQ(position, next_);
        next_ = position.next();
        records.emplace_back(record);
        return Status();
      });
      if (!progress) {
        failure = progress.error().message;
        return false;
      }
      if (done(*progress)) return true;
      if (*progress == Progress::kMore) continue;
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, kTestPatience, [this] { return arrived_; })) return false;
    }
  }
  bool read_to(Progress wanted) {
    return read_until([wanted](Progress progress) { return progress == wanted; });
  }
  bool read_to_end() {
    return journal->has_reached_end() ||
           read_until([this](Progress) { return journal->has_reached_end(); });
  }
  bool read_records(std::size_t count) {
    return records.size() == count || read_until([&](Progress) { return records.size() == count; });
  }

  // kOwned or kRefused; nullopt if it takes too long, or the reading fails.
  std::optional<Progress> claim() {
    journal->claim();
    std::optional<Progress> outcome;
    const bool decided = read_until([&](Progress progress) {
      outcome = progress;
      return progress == Progress::kOwned || progress == Progress::kRefused;
    });
    if (!decided) return std::nullopt;
    if (outcome == Progress::kOwned) journal->start(ear.events());
    return outcome;
  }

  // Reads to the end first: before that, a claim would be of an epoch that may be long gone.
  bool own() { return read_to_end() && claim() == Progress::kOwned; }
  // As own(), with a claim after each that was refused.
  bool own_in_the_end() {
    if (!read_to_end()) return false;
    auto outcome = claim();
    while (outcome == Progress::kRefused) outcome = claim();
    return outcome == Progress::kOwned;
  }
  bool follow_and_own(Position from = Position(1),
                      std::optional<journal::LogDigest> before = std::nullopt) {
    follow(from, before);
    return own();
  }

  // Reads on meanwhile, as a node does. False if it takes too long, or the reading fails.
  bool wait_for_stall(std::string_view why = "") {
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto stall = journal->stall();
      if (stall && stall->why.find(why) != std::string::npos) return true;
      if (!read_until([](Progress) { return true; })) return false;
    }
    return false;
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

  std::uint32_t format = journal::kLogEntryVersion;  // Of a fleet of nodes that read it.
  const std::shared_ptr<KafkaConnection> connection;
  Ear ear;
  std::vector<std::string> records;
  std::string failure;  // Of the reading.

 private:
  os::SystemEntropy entropy_;
  const ShardLog log_;
  const KafkaJournalOptions options_;
  Position next_;  // The next record's.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false;

 public:
  std::unique_ptr<KafkaSharedJournal> journal;  // From follow() on. Ends first.
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
