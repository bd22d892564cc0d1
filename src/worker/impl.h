// The inside of a worker: its queues, its threads, and the calls that are under way.
//
// The loop's mutex guards everything. The pool's threads release it while a handler runs; the loop's
// thread extends visibility, begins receives and tells jobs and the caller what happened, and
// releases it for the latter. Completions of calls take it for a moment.
//
// Functions are called with the mutex held unless their comment says otherwise.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/batcher.h"
#include "client/client.h"
#include "worker/hand.h"
#include "worker/limits.h"
#include "worker/metrics.h"
#include "worker/named_queues.h"
#include "worker/options.h"
#include "worker/pause_watch.h"
#include "worker/scaling.h"
#include "worker/visibility_monitor.h"
#include "worker/worker.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// A message that is settled but for its delete.
struct Removal {
  Task task;
  std::uint64_t QueueMetrics::*counter;  // Of what it counts as once it is deleted.
};

// What the job of one message has published.
struct Ledger {
  std::size_t published = 0;
  std::size_t under_way = 0;
  bool failed = false;
  bool last = false;  // The one that is marked as last was published.
  // Of a handler that has returned, if the message waits for publications.
  std::optional<Verdict> verdict = {};
};

// A queue that the worker consumes.
struct Source {
  Source(QueueOptions queue, FailureThrottle failures, MonitorOptions monitor_options,
         VisibilityMonitor::Extend extend, VisibilityMonitor::Lost lost);

  // Whether a thread that is free has something to do here.
  bool may_begin() const {
    if (!hand.has_next() || running.size() >= throttle.allowed(options.concurrency)) return false;
    if (watch) return !recheck && watch->may_begin(Clock::now());
    if (main != nullptr) return main->watch->comes_back() && main->watch->may_begin(Clock::now());
    return true;
  }

  QueueOptions options;
  std::string name;
  std::string arn;
  std::size_t index = 0;  // In sources_.
  Hand hand;
  VisibilityMonitor monitor;
  RateLimit rate;
  FailureThrottle throttle;
  std::unordered_map<TaskId, Task> running;  // Their handler has not returned.
  std::map<std::uint64_t, client::CallId> polls;
  std::size_t reserved = 0;  // Places that polls under way may fill.
  bool busy = false;         // The last receive had messages.
  Instant poll_not_before{};
  int receive_failures = 0;       // In a row.
  std::vector<Removal> removals;  // Wait for their batch to be full, or to be due.
  Instant removals_due = Instant::max();
  QueueMetrics metrics;
  LoadWatch load;
  std::chrono::milliseconds oldest{0};  // Of the messages that have begun since the last look.
  bool measuring = false;

  // Of a queue that can be paused.
  std::optional<PauseWatch> watch;
  Source* paused = nullptr;  // Where its messages wait.
  Instant looked_at{};       // At the tags, the last time.
  int empty_looks = 0;       // How often in a row its paused queue was empty while it is resumed.
  bool recheck = false;    // Nothing begins before the paused queue was seen to be empty once more.
  Source* main = nullptr;  // Of a paused queue: the one that is paused.
};

// How a job has ended.
struct Ended {
  Verdict verdict = {};
  std::optional<std::string> thrown = {};  // What it threw, in place of a verdict.
  std::chrono::duration<double> took{0};
};

class Worker::Impl {
 public:
  // Without the mutex, all of these.
  Impl(client::Client& client, WorkerOptions options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Asks the queues for their attributes.
  std::optional<client::Error> prepare();
  void begin();
  StopReport stop(std::chrono::milliseconds deadline);
  client::Outcome<PauseMode> set_paused(const std::string& queue_url, bool paused);
  WorkerMetrics metrics();

 private:
  std::optional<client::Error> add_source(QueueOptions queue);

  // Receiving (receive.cc).
  // Begins receives for all places that are free; the result says when to try again.
  std::optional<Instant> poll(Source& source, Instant now);
  void fill_hand(Source& source);
  void receive(Source& source, std::size_t count);
  void received(Source& source, std::uint64_t poll, std::size_t count,
                client::Outcome<client::ReceiveMessageResult> outcome);
  Task make_task(const Source& source, client::Message message);

  // Running (pool.cc).
  std::optional<Instant> tick(Instant now);  // What the loop does.
  void run();                                // A thread of the pool.
  Source* runnable();
  void wake_pool();
  Task next_task(Source& source);
  void handle(std::unique_lock<std::mutex>& lock, Source& source, const Task& task);
  Ended run_handler(const Source& source, const Task& task);  // Without the mutex.
  void run_async_handler(Source& source, const Task& task);   // Without the mutex.
  void ended(Source& source, const Task& task, const Ended& end);
  // Figures (load.cc).
  std::optional<Instant> measure_if_due(Instant now);
  void measured(Source& source, const client::Outcome<client::GetQueueAttributesResult>& outcome);
  void tell_metrics();
  WorkerMetrics collect_metrics() const;

  bool all_settled() const;  // worker.cc, both.
  void abandon_running();

  // Publishing (publish.cc).
  bool publish(const TaskInformation& information, Publication publication);  // Without the mutex.
  void published(Source& source, const Task& task, const std::string& queue_url,
                 const client::Outcome<client::SendMessageResult>& outcome);
  // The handler has returned: settles the message, now or when its publications allow it.
  void conclude(Source& source, const Task& task, Verdict verdict);
  void reconsider(Source& source, const Task& task);

  // Pausing (pause.cc).
  std::optional<client::Error> add_paused_queue(Source& source);
  bool moves(const Source& source, const TaskInformation& task) const;
  void pause_task(Source& source, const Task& task);
  void move(Source& source, const Task& task);
  void look(Source& source);
  void looked(Source& source, const client::StringMap& tags, Instant asked);
  std::optional<Instant> look_if_due(Source& source, Instant now);
  void stop_coming_back(Source& source);
  void check_empty(Source& source);

  // Settling (settle.cc).
  void settle(Source& source, const Task& task, const Verdict& verdict);
  // Joins the next batch of deletes, which leaves when it is full, when nothing else runs whose
  // delete could join it, or after a short time.
  void remove(Source& source, const Task& task, std::uint64_t QueueMetrics::*counter);
  void send_removals(Source& source);
  void removed(Source& source, const std::vector<Removal>& removals,
               const client::Outcome<client::DeleteMessageBatchResult>& outcome);
  void not_removed(Source& source, const Removal& removal, const client::Error& error);
  void reject(Source& source, const Task& task, const std::string& queue_url);
  // Sends a copy to another queue, and deletes the message when that is acknowledged.
  void send_on(Source& source, const Task& task, const std::string& queue_url,
               std::uint64_t QueueMetrics::*counter);
  void retry(Source& source, const Task& task, std::chrono::seconds delay);
  // The task leaves the hand; if it failed, the later ones of its group go back.
  void leave(Source& source, const Task& task, bool failed);
  void put_back(Source& source, const Task& task, std::chrono::seconds delay);
  void extend(Source& source, const ExtensionBatch& batch);
  void extended(Source& source, const std::vector<TaskId>& tasks,
                const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome);
  void report(Source& source, const std::string& what);

  // A completion that takes the lock; until it has run, the call counts as under way.
  template <class Body>
  auto counted(Source& source, Body body) {
    return loop_.counted([this, &source, body = std::move(body)](auto outcome) {
      body(std::move(outcome));
      fill_hand(source);
    });
  }

  client::Client& client_;
  WorkerOptions options_;
  std::unique_ptr<client::Batcher> batcher_;
  NamedQueues queues_;
  std::shared_ptr<Outlet> outlet_ = std::make_shared<Outlet>();

  WorkerLoop loop_;
  std::condition_variable work_;  // A task may begin; see wake_pool().
  std::size_t idle_threads_ = 0;  // Of the pool.
  bool waking_ = false;           // One of them was woken, and is not there yet.
  bool closed_ = false;
  std::chrono::steady_clock::time_point stop_at_;
  StopReport stopped_;

  std::vector<std::unique_ptr<Source>> sources_;
  std::size_t turn_ = 0;        // Of the sources, for the pool's threads.
  std::size_t unanswered_ = 0;  // Jobs of asynchronous handlers.
  std::uint64_t next_id_ = 0;
  std::unordered_set<TaskId> lost_;             // Of those in hand.
  std::unordered_map<TaskId, Ledger> ledgers_;  // Of those that have published.
  // Changes of visibility that wait for the answer to an extension, which could overtake them.
  std::unordered_map<TaskId, std::function<void()>> after_extension_;
  Instant metrics_due_{};
  std::vector<std::thread> threads_;
};

}  // namespace stanchion::worker
