// The queues that were deleted a short while ago, whose names AWS does not let be reused yet.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "base/time.h"
#include "model/ids.h"
#include "model/limits.h"

namespace stanchion::engine {

class RecentDeletions {
 public:
  // If more queues are deleted within the interval, the names of the first can be used again earlier.
  static constexpr std::size_t kMost = 10'000;

  void add(const QueueRef& queue, Instant at) {
    remove(queue);
    if (by_time_.size() >= kMost) remove(QueueRef(by_time_.begin()->second));
    by_time_.emplace(at, queue);
    by_queue_.emplace(queue, at);
  }

  void remove(const QueueRef& queue) {
    const auto found = by_queue_.find(queue);
    if (found == by_queue_.end()) return;
    by_time_.erase({found->second, queue});
    by_queue_.erase(found);
  }

  // Called whenever time advances: costs nothing while nothing is old enough.
  void forget_old(Instant now) {
    while (!by_time_.empty() && by_time_.begin()->first + limits::kRecreateInterval <= now) {
      by_queue_.erase(by_time_.begin()->second);
      by_time_.erase(by_time_.begin());
    }
  }

  bool contains(const QueueRef& queue) const { return by_queue_.contains(queue); }
  const std::map<QueueRef, Instant>& all() const { return by_queue_; }

 private:
  std::map<QueueRef, Instant> by_queue_;
  std::set<std::pair<Instant, QueueRef>> by_time_;
};

}  // namespace stanchion::engine
