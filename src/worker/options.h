// The settings of a worker, and what a handler answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "worker/metrics.h"
#include "worker/task.h"

namespace stanchion::worker {

// What is to happen to a message after its handler returned. An exception counts as
// retry_with_backoff().
struct Verdict {
  enum class Kind { kDone, kRetry, kReject, kPause };

  // The message is deleted, when everything that was published is acknowledged.
  static Verdict done() { return {}; }
  // The job goes on without its handler, on a thread of the caller's that has a copy of the task,
  // until it publishes what is marked as last. It counts as running until then.
  static Verdict done_after_last() { return {.after_last = true}; }
  // The message becomes visible again, at once or after a delay of up to 12 hours.
  static Verdict retry(std::chrono::seconds delay = std::chrono::seconds(0)) {
    return {.kind = Kind::kRetry, .delay = delay};
  }
  // … after a random delay that grows with the receive count (BackoffOptions).
  static Verdict retry_with_backoff() { return {.kind = Kind::kRetry, .backoff = true}; }
  // The message is sent to another queue and then deleted. Empty: to QueueOptions::reject_to.
  static Verdict reject(std::string queue_url = {}) {
    return {.kind = Kind::kReject, .reject_to = std::move(queue_url)};
  }

  // The message waits in the paused queue until Worker::resume() (QueueOptions::pausable). The later
  // messages of its FIFO group wait there as well.
  static Verdict pause() { return {.kind = Kind::kPause}; }

  Kind kind = Kind::kDone;
  std::chrono::seconds delay{0};
  bool backoff = false;
  std::string reject_to = {};
  bool after_last = false;
};

using Handler = std::function<Verdict(const TaskInformation& task)>;

// A handler whose job ends later, for jobs that wait for something else than a thread. It is called
// on one of the worker's threads and returns soon. `answer` must be called once, on any thread, also
// if the message is lost or the worker stops: the worker's destructor waits for it.
using Answer = std::function<void(Verdict verdict)>;
using AsyncHandler = std::function<void(const Task& task, Answer answer)>;

// The n-th delivery that fails waits for a random time between nothing and base × 2ⁿ⁻¹.
struct BackoffOptions {
  std::chrono::seconds base{1};
  std::chrono::seconds max{900};
};

struct QueueOptions {
  std::string url = {};
  // Empty: WorkerOptions::handler.
  Handler handler = {};
  // In place of a handler. Takes one thread, whatever the concurrency.
  AsyncHandler async_handler = {};
  // Messages of a FIFO group that are in flight all begin at once, in order, and the handler keeps
  // them in order. After a failure the later ones that have begun are lost: retry is their answer.
  bool groups_together = false;
  // Jobs at the same time; each handler on a thread that is reserved for this queue.
  std::size_t concurrency = 10;
  // Messages that may wait in flight for a handler, beyond those that have one. With 0 nothing is
  // received that cannot begin at once, except later messages of a FIFO group.
  std::size_t waiting_max = 0;
  double rate_max = 0;  // Messages a second; 0: no limit.
  // For how long a message stays invisible if the worker dies. 0: the queue's own timeout.
  std::chrono::seconds visibility{0};
  std::chrono::seconds window{0};  // MonitorOptions::window.
  std::chrono::seconds wait{20};   // Of a long poll.
  std::size_t polls_max = 4;       // Receives at the same time while messages come.
  BackoffOptions backoff = {};
  std::string reject_to = {};
  // A dead-letter queue that is consumed beside the main one: its tasks have the poison flag.
  bool poison = false;
  LoadOptions load = {};  // When it needs more workers (WorkerOptions::watch_load).
  // The queue, or a job of it, can be paused: its messages wait in a queue that is made for them.
  bool pausable = false;
  std::string paused_queue = {};  // Its name. Empty: the queue's with "-paused" added.
};

// Whether the messages of a queue are handled, or wait.
enum class PauseMode {
  kRunning,
  kPaused,    // They are moved to the paused queue.
  kResuming,  // Those of the paused queue are handled, until it is empty.
};

struct WorkerOptions {
  std::vector<QueueOptions> queues = {};
  Handler handler = {};
  // While at least this share of the last messages of a queue failed, fewer are handled at the same
  // time, and receives begin later. 1 or more: never.
  double failure_share_max = 0.5;
  // How many messages "the last messages" are.
  int failure_round = 10;
  // How often the worker looks whether a queue was paused or resumed by another one.
  std::chrono::milliseconds pause_check{5'000};
  // Told the figures of all queues, every `metrics_every`, on a thread of the worker.
  std::function<void(const WorkerMetrics& metrics)> on_metrics = {};
  std::chrono::milliseconds metrics_every{10'000};
  // At these times the queues are asked for their figures as well (sqs:GetQueueAttributes), and the
  // signals of QueueMetrics say whether more workers are needed.
  bool watch_load = false;
  // Told what went wrong, in words for a person; may be called on any of the worker's threads.
  std::function<void(const std::string& what)> on_error = {};
};

}  // namespace stanchion::worker
