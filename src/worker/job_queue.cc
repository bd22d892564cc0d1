#include "worker/job_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker/copies.h"

namespace stanchion::worker {

JobQueue::JobQueue(const QueueOptions& options, bool fifo, FailureThrottle throttle)
    : concurrency_(options.concurrency),
      waiting_max_(options.waiting_max),
      together_(fifo && options.groups_together),
      in_flight_(fifo, options.groups_together),
      throttle_(throttle) {
  CHECK(concurrency_ > 0, "a queue is handled by somebody");
}

std::size_t JobQueue::places() const {
  const std::size_t room = allowed() + waiting_max_;
  return room - std::min(room, in_flight_.size());
}

void JobQueue::add(std::span<const Task> tasks) {
  for (const Task& task : tasks) in_flight_.add(task);
}

bool JobQueue::may_begin() const {
  return in_flight_.has_next() && running_.size() < allowed();
}

Task JobQueue::begin() {
  CHECK(may_begin(), "JQ1: a message begins if the throttle allows it");
  Task task = in_flight_.next();
  const bool first = running_.emplace(task->id, task).second;
  CHECK(first, "JQ2: a message begins once");
  CHECK(running_.size() <= in_flight_.size(), "JQ1: what runs is in flight");
  return task;
}

Task JobQueue::find_running(TaskId task) const {
  const auto found = running_.find(task);
  return found == running_.end() ? nullptr : found->second;
}

void JobQueue::returned(TaskId task) {
  const std::size_t erased = running_.erase(task);
  CHECK(erased == 1, "JQ1: only what runs can return");
}

bool JobQueue::record(bool failed) {
  const std::size_t before = allowed();
  throttle_.record(failed);
  return allowed() > before;
}

std::vector<Task> JobQueue::end(const Task& task, bool failed) {
  CHECK(!is_running(task->id),
        "JQ2, WK3: the next of a group begins when its handler has returned");
  return in_flight_.end(task, failed);
}

std::vector<Task> JobQueue::overtaking(const Task& failed) const {
  std::vector<Task> others;
  if (!together_) return others;
  const std::string group = group_of(*failed);
  for (const auto& [id, other] : running_)
    if (id > failed->id && group_of(*other) == group) others.push_back(other);
  return others;
}

std::vector<Task> JobQueue::take_running() {
  std::vector<Task> tasks;
  for (auto& [id, task] : std::exchange(running_, {})) tasks.push_back(std::move(task));
  return tasks;
}

}  // namespace stanchion::worker
