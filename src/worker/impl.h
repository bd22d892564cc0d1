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
#include <utility>
#include <vector>

#include "client/batcher.h"
#include "client/client.h"
#include "worker/client_consumer.h"
#include "worker/hand.h"
#include "worker/limits.h"
#include "worker/load_reporter.h"
#include "worker/metrics.h"
#include "worker/named_queues.h"
#include "worker/options.h"
#include "worker/pause_control.h"
#include "worker/publisher.h"
#include "worker/worker.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// A queue that the worker consumes.
struct Source {
  Source(QueueOptions queue, std::size_t position, const std::string& arn, FailureThrottle failures,
         const std::shared_ptr<Outlet>& outlet, const ConsumerContext& context,
         ConsumerEvents events);

  // Whether a thread that is free has something to do here.
  bool may_begin() const {
    if (!hand.has_next() || running.size() >= throttle.allowed(options.concurrency)) return false;
    if (pause) return pause->may_begin(Clock::now());
    if (main != nullptr) return main->pause->may_come_back(Clock::now());
    return true;
  }

  QueueOptions options;
  std::string name;
  std::size_t number;  // In sources_.
  Hand hand;
  ClientConsumer consumer;
  FailureThrottle throttle;
  std::unordered_map<TaskId, Task> running;  // Their handler has not returned.
  QueueMetrics metrics;

  std::unique_ptr<PauseControl> pause;  // Of a queue that can be paused.
  Source* paused = nullptr;             // Where its messages wait.
  Source* main = nullptr;               // Of a paused queue: the one that is paused.
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

  ConsumerEvents events_of(std::size_t number);
  // Begins receives for all places that are free; the result says when to try again.
  std::optional<Instant> poll(Source& source, Instant now);
  void fill_hand(Source& source);
  void received(Source& source, const std::vector<Task>& tasks);

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
  void tell_metrics();
  WorkerMetrics collect_metrics() const;

  bool all_settled() const;
  std::uint64_t given_back() const;
  void abandon_running();

  Publisher::Outside publisher_outside();
  Source& source_of(const TaskInformation& task) { return *sources_[task.state->source]; }
  Task find_running(const TaskInformation& task);
  // The handler has returned: settles the message, now or when its publications allow it.
  void conclude(Source& source, const Task& task, Verdict verdict);

  // Pausing.
  std::optional<client::Error> add_paused_queue(Source& source);
  void pause_task(Source& source, const Task& task);
  void move(Source& source, const Task& task);

  // Settling (settle.cc).
  void settle(Source& source, const Task& task, const Verdict& verdict);
  // `counter`: of what the message counts as once it is deleted.
  void remove(Source& source, const Task& task, std::uint64_t QueueMetrics::*counter);
  void reject(Source& source, const Task& task, const std::string& queue_url);
  // Sends a copy to another queue, and deletes the message when that is acknowledged.
  void send_on(Source& source, const Task& task, const std::string& queue_url,
               std::uint64_t QueueMetrics::*counter);
  void retry(Source& source, const Task& task, std::chrono::seconds delay);
  // The task leaves the hand; if it failed, the later ones of its group go back.
  void leave(Source& source, const Task& task, bool failed);
  void report(Source& source, const std::string& what);

  client::Client& client_;
  WorkerOptions options_;
  client::Batcher batcher_;
  NamedQueues queues_;

  WorkerLoop loop_;
  std::condition_variable work_;  // A task may begin; see wake_pool().
  std::size_t idle_threads_ = 0;  // Of the pool.
  bool waking_ = false;           // One of them was woken, and is not there yet.
  bool closed_ = false;
  std::chrono::steady_clock::time_point stop_at_;
  StopReport stopped_;
  std::uint64_t given_back_before_ = 0;  // The stop began.

  std::vector<std::unique_ptr<Source>> sources_;
  std::size_t turn_ = 0;        // Of the sources, for the pool's threads.
  std::size_t unanswered_ = 0;  // Jobs of asynchronous handlers.
  TaskIds ids_;
  LoadReporter load_;
  Publisher publisher_;
  std::vector<std::thread> threads_;
};

}  // namespace stanchion::worker
