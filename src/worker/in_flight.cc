#include "worker/in_flight.h"

#include <iterator>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "worker/copies.h"

namespace stanchion::worker {

void InFlight::add(const Task& task) {
  ++size_;
  if (fifo_ && !together_) {
    std::deque<Task>& group = groups_[group_of(*task)];
    group.push_back(task);
    if (group.size() > 1) return;
  }
  ready_.push_back(task);
}

Task InFlight::next() {
  CHECK(has_next(), "IF1: a message begins if it may");
  Task task = std::move(ready_.front());
  ready_.pop_front();
  return task;
}

std::vector<Task> InFlight::end(const Task& task, bool failed) {
  CHECK(size_ > 0, "what ends was in flight");
  --size_;
  if (together_) return failed ? take_waiting_of(group_of(*task)) : std::vector<Task>();
  if (!fifo_) return {};
  const auto found = groups_.find(group_of(*task));
  CHECK(found != groups_.end() && found->second.front() == task,
        "IF1: the first of a group ends first");
  std::deque<Task>& group = found->second;
  group.pop_front();
  std::vector<Task> later;
  if (failed) {
    later.assign(group.begin(), group.end());
    size_ -= later.size();
    group.clear();
  }
  if (group.empty())
    groups_.erase(found);
  else
    ready_.push_back(group.front());
  return later;
}

std::vector<Task> InFlight::take_waiting_of(const std::string& group) {
  std::vector<Task> taken;
  std::deque<Task> others;
  for (Task& task : ready_)
    group_of(*task) == group ? taken.push_back(std::move(task)) : others.push_back(std::move(task));
  ready_ = std::move(others);
  size_ -= taken.size();
  return taken;
}

std::vector<Task> InFlight::take_waiting() {
  std::vector<Task> waiting;
  if (!fifo_ || together_) {
    waiting.assign(ready_.begin(), ready_.end());
  } else {
    std::unordered_set<std::string> not_begun;
    for (const Task& task : ready_) not_begun.insert(group_of(*task));
    for (auto at = groups_.begin(); at != groups_.end();) {
      std::deque<Task>& group = at->second;
      const bool begun = !not_begun.contains(at->first);
      const auto first = begun ? std::next(group.begin()) : group.begin();
      waiting.insert(waiting.end(), first, group.end());
      group.erase(first, group.end());
      at = group.empty() ? groups_.erase(at) : std::next(at);
    }
  }
  ready_.clear();
  size_ -= waiting.size();
  return waiting;
}

}  // namespace stanchion::worker
