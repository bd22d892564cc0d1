// A node's connection to its Kafka brokers: one client that writes, one that reads, and one thread on
// which everything is reported. A node has two of them: one writes all logs, and reads those of shards
// without verifying batches (KafkaSettings::verifies_batches); the other only reads the control log.
//
//   any thread                      librdkafka's threads            the connection's thread
//   send ─▶ client's queue ───────▶ brokers ─▶ report ─── wakes ──▶ delivered(…)
//   post ─────────────────────────────────────────────── wakes ──▶ task()
//
// While an entry is not acknowledged for longer than usual, or a broker cannot be reached, the
// connection asks the brokers who leads its partitions: a leader that is silent does not say that it
// is no longer the leader.
//
// A broker that comes back from a network that was cut still takes itself for the leader for a
// moment, and says so. librdkafka 2.0 believes it and sends it an entry whose predecessors it has
// never seen. The broker refuses that, and the client cannot go on for good. So the client is
// replaced: what was under way may or may not be in the log, which its senders are told, and whoever
// claims a log again finds out. The old client gets no time of the connection's thread: it is asked
// now and then whether it has let go of everything, and is ended by a thread of its own.
//
// The same is done with a client that does not get rid of an entry although later ones were
// acknowledged long since, when a broker refuses an entry for a reason of its own, and when one was
// refused for good, after which the client takes nothing more: whoever sent that one is told that it
// failed, and the others that the client was replaced. A client is replaced some times a minute at
// most (AnewLimit).
//
// Threads: any may call. Handlers are called on the connection's thread, one at a time, without any
// lock held, and must return soon.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
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
#include "kafka/client_errors.h"
#include "kafka/handles.h"
#include "kafka/partition_reader.h"
#include "kafka/settings.h"
#include "kafka/troubles.h"

namespace stanchion::kafka {

// What became of an entry that was sent.
struct Delivery {
  // Set if the entry is not known to be in the log, and will not be sent again.
  std::optional<Failure> failure;
  // With a failure: the client that sent it was replaced, and what is sent from now on may succeed.
  bool began_anew = false;
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

  // Asks the brokers the same without waiting. False: they are asked too often. `answered` is called on
  // the connection's thread, if they answer soon.
  bool ask_end(const Partition& partition, std::function<void(journal::LogOffset)> answered);

  // The same as the reader of the partition last heard, without asking anybody.
  journal::LogOffset known_end(const Partition& partition) const;

  // Asks the brokers to remove the entries before `before`. They may; a failure is a warning.
  void delete_before(const Partition& partition, journal::LogOffset before);

  // Runs `task` on the connection's thread.
  void post(Task task);

  // What the client last complained about; empty if an entry was acknowledged since.
  std::string last_error() const { return troubles_.last_error(); }
  const Troubles& troubles() const { return troubles_; }

  const KafkaSettings& settings() const { return settings_; }
  std::shared_ptr<rd_kafka_t> producer() const;

 private:
  struct Outgoing {
    std::uint64_t number = 0;
    Partition partition;
    std::string bytes;    // Needed until the client has reported the entry.
    Delivered delivered;  // Null if that was told before, when the client was replaced.
    std::chrono::steady_clock::time_point sent;
    const void* client = nullptr;  // The Writing by which it was sent.
  };
  // The client that writes, and what belongs to it. Whoever uses it holds it.
  struct Writing {
    Client client;
    Queue queue;
    Queue admin_queue;
    std::map<std::string, Topic> topics;  // With mutex_ held.
  };

  explicit KafkaConnection(const KafkaSettings& settings)
      : settings_(settings), stuck_after_(settings.stuck_after) {}
  Status start();
  Result<std::shared_ptr<Writing>> make_writing();
  void wake_by(rd_kafka_queue_t* queue);
  bool has_let_go(Writing& writing, std::chrono::milliseconds patience);
  std::shared_ptr<Writing> writing() const;
  // These two with mutex_ held.
  const Outgoing* oldest_of(const Writing& writing) const;
  static Result<rd_kafka_topic_t*> topic_of(rd_kafka_t* client,
                                            std::map<std::string, Topic>& topics,
                                            const std::string& name);
  void learn_leaders(const std::string& topic);

  static void report(rd_kafka_t* client, const rd_kafka_message_t* message, void* opaque);
  static void complain(rd_kafka_t* client, int error, const char* reason, void* opaque);
  static void pass_on_log(const rd_kafka_t* client, int level, const char* facility,
                          const char* line);
  void wake();

  // The connection's thread.
  void run();
  void serve();
  void finish(rd_kafka_t* client, std::uint64_t number, const rd_kafka_message_t& message);
  void note_end(rd_kafka_t* client);
  void look_for_stuck_entries();
  void begin_anew(const std::string& why);
  void end_replaced_clients();
  void look_at_admin_results();
  void look_for_leaders();

  const KafkaSettings settings_;
  Troubles troubles_;
  Client consumer_;
  Queue consumer_queue_;
  std::thread thread_;
  std::atomic<bool> silent_{false};  // What the client says about being ended interests nobody.

  // Of the connection's thread.
  std::chrono::steady_clock::time_point asked_at_{};       // For leaders.
  std::chrono::steady_clock::time_point troubled_at_{};    // A broker could not be reached.
  bool must_begin_anew_ = false;                           // The client that writes cannot go on.
  std::chrono::steady_clock::time_point begin_anew_at_{};  // Not before.
  std::chrono::steady_clock::time_point acknowledged_{};   // When the last one of those was sent.
  std::chrono::milliseconds stuck_after_;                  // Grows with each time that it was so.
  AnewLimit anew_limit_;
  std::vector<std::shared_ptr<Writing>> replaced_;  // They still have entries of ours.
  std::vector<std::future<void>> ending_clients_;

  mutable std::mutex mutex_;
  std::shared_ptr<Writing> writing_;
  std::map<std::string, Topic> read_topics_;
  // By number, so that the first one is the oldest. Pointers to the values are stable.
  std::map<std::uint64_t, Outgoing> outgoing_;
  std::uint64_t last_number_ = 0;
  std::chrono::steady_clock::time_point asked_for_end_{};

  std::mutex
      wake_mutex_;  // Taken while librdkafka holds the lock of a queue, so nothing inside it.
  std::condition_variable wake_;
  bool woken_ = false;
  bool ending_ = false;
  std::vector<Task> tasks_;
};

}  // namespace stanchion::kafka
