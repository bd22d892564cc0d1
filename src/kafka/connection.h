// A node's connection to its Kafka brokers, for the logs of all its shards: one client that writes,
// one that reads, and one thread on which everything is reported.
//
//   any thread                      librdkafka's threads            the connection's thread
//   send ─▶ client's queue ───────▶ brokers ─▶ report ─── wakes ──▶ delivered(…)
//   post ─────────────────────────────────────────────── wakes ──▶ task()
//
// While an entry is not acknowledged for longer than usual, the connection asks the brokers who
// leads its partition: a leader that is silent does not say that it is no longer the leader.
//
// Threads: any may call. Handlers are called on the connection's thread, one at a time, without any
// lock held, and must return soon.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "journal/shared_log.h"
#include "kafka/handles.h"
#include "kafka/partition_reader.h"
#include "kafka/settings.h"

namespace stanchion::kafka {

// What became of an entry that was sent.
struct Delivery {
  // Set if the entry is not known to be in the log, and will not be sent again.
  std::optional<Failure> failure;
  // Where it is. The brokers do not always say so of an entry that was sent twice.
  std::optional<journal::LogOffset> at;
};

class KafkaConnection {
 public:
  using Delivered = std::function<void(const Delivery&)>;
  using Task = std::function<void()>;

  // Brokers that cannot be reached are not a failure: they may come back.
  static Result<std::unique_ptr<KafkaConnection>> open(const KafkaSettings& settings);

  // What is under way may or may not arrive; `delivered` is called for it here. All readers must be
  // gone.
  ~KafkaConnection();

  // Entries of a partition arrive in the order of these calls. `delivered` is called once. A key is
  // for topics that are compacted.
  Status send(const Partition& partition, std::string bytes, Delivered delivered,
              std::string_view key = {});

  Result<std::unique_ptr<PartitionReader>> read(const Partition& partition,
                                                std::optional<journal::LogOffset> from);

  // What can be read now: from the first offset to the one behind the last. Waits for the brokers up
  // to `timeout`.
  struct Range {
    journal::LogOffset first;
    journal::LogOffset end;
  };
  Result<Range> range_of(const Partition& partition, std::chrono::milliseconds timeout);

  // The first offset behind what can be read now; 0 if the partition is empty. Waits for the
  // brokers up to `timeout`.
  Result<journal::LogOffset> end_of(const Partition& partition, std::chrono::milliseconds timeout);

  // The same as the reader of the partition last heard, without asking anybody.
  journal::LogOffset known_end(const Partition& partition) const;

  // Asks the brokers to remove the entries before `before`. They may; a failure is a warning.
  void delete_before(const Partition& partition, journal::LogOffset before);

  // Runs `task` on the connection's thread.
  void post(Task task);

  // What the client last complained about; empty if an entry was acknowledged since.
  std::string last_error() const;

  const KafkaSettings& settings() const { return settings_; }
  rd_kafka_t* producer() const { return producer_.get(); }

 private:
  struct Outgoing {
    std::uint64_t number = 0;
    Partition partition;
    std::string bytes;
    Delivered delivered;
    std::chrono::steady_clock::time_point sent;
  };
  struct Topics {
    Topic producer;
    Topic consumer;
  };

  explicit KafkaConnection(const KafkaSettings& settings) : settings_(settings) {}
  Status start();
  // With mutex_ held.
  Result<Topics*> topics_of(const std::string& topic);
  void learn_leaders(const std::string& topic);

  static void report(rd_kafka_t* client, const rd_kafka_message_t* message, void* opaque);
  static void complain(rd_kafka_t* client, int error, const char* reason, void* opaque);
  static void pass_on_log(const rd_kafka_t* client, int level, const char* facility,
                          const char* line);
  void wake();

  // The connection's thread.
  void run();
  void serve();
  void finish(std::uint64_t number, const rd_kafka_message_t& message);
  void look_at_admin_results();
  void look_for_stall();

  const KafkaSettings settings_;
  Client producer_;
  Client consumer_;
  Queue producer_queue_;
  Queue consumer_queue_;
  Queue admin_queue_;
  std::thread thread_;
  std::chrono::steady_clock::time_point asked_at_;  // For a leader. Of the connection's thread.
  std::atomic<bool> silent_{false};  // What the client says about being ended interests nobody.

  mutable std::mutex mutex_;
  std::map<std::string, Topics> topics_;
  // By number, so that the first one is the oldest. Pointers to the values are stable.
  std::map<std::uint64_t, Outgoing> outgoing_;
  std::uint64_t last_number_ = 0;
  std::string last_error_;

  std::mutex
      wake_mutex_;  // Taken while librdkafka holds the lock of a queue, so nothing inside it.
  std::condition_variable wake_;
  bool woken_ = false;
  bool ending_ = false;
  std::vector<Task> tasks_;
};

}  // namespace stanchion::kafka
