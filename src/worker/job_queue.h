// The messages of one queue that wait for a handler or have one, and how many may be taken on.
//
//   add ─▶ waiting ─begin─▶ running ─returned─▶ settling ─end─▶ gone
//             │                │                              └─ failed: the later messages of its group
//             │                └─ take_running                   that have not begun go with it
//             └─ take_waiting ─▶ gone
//
// Pure. Not thread-safe.
//
//   JQ1  No more messages run than the throttle allows when the last of them begins.
//   JQ2  A message of a FIFO group begins after the one before it is gone, unless its queue's groups
//        begin together (WK3).
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "worker/in_flight.h"
#include "worker/limits.h"
#include "worker/options.h"
#include "worker/task.h"

namespace stanchion::worker {

class JobQueue {
 public:
  JobQueue(const QueueOptions& options, bool fifo, FailureThrottle throttle);

  // Messages that can be taken on, those in flight not included, and how long to wait between two
  // receives.
  std::size_t places() const;
  std::chrono::milliseconds pause() const { return throttle_.pause(); }

  void add(std::span<const Task> tasks);
  bool may_begin() const;
  // REQUIRES: may_begin().
  Task begin();
  bool is_running(TaskId task) const { return running_.contains(task); }
  // None if it does not run.
  Task find_running(TaskId task) const;
  // The handler of a running task has returned, or was never called.
  void returned(TaskId task);
  // How a task has ended that a handler had. True if more may run than before.
  bool record(bool failed);
  // A task that does not run any more is settled; the later ones of its group go back if it failed.
  std::vector<Task> end(const Task& task, bool failed);
  // Of groups that begin together: later tasks of the group of a failed one that run already.
  std::vector<Task> overtaking(const Task& failed) const;
  // Whether a task is to come that is likely to end soon.
  bool has_more() const { return !running_.empty() || in_flight_.has_next(); }

  std::vector<Task> take_waiting() { return in_flight_.take_waiting(); }
  std::vector<Task> take_running();

  std::size_t size() const { return in_flight_.size(); }
  std::size_t running() const { return running_.size(); }

 private:
  std::size_t allowed() const { return throttle_.allowed(concurrency_); }

  const std::size_t concurrency_;
  const std::size_t waiting_max_;
  const bool together_;
  InFlight in_flight_;
  FailureThrottle throttle_;
  std::unordered_map<TaskId, Task> running_;
};

}  // namespace stanchion::worker
