// Whose turn it is: fair shares among tenants, by weight, within limits, the urgent ones first.
//
// Each tenant has a virtual time, which advances by 1/weight with every turn; of the tenants with the
// highest priority that have something waiting and are within their rate, the one that is furthest
// behind is next. A tenant that had nothing waiting begins at the virtual time of the others, so that
// nobody saves up turns. Pure: the time is an argument. Not thread-safe.
//
//   FS1  Between two turns of a tenant that has something waiting, another tenant of its priority has
//        at most its weight's share of turns, rounded up, plus one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "worker/limits.h"
#include "worker/task.h"

namespace stanchion::worker {

class FairShares {
 public:
  // Returns the tenant's number, from 0 on. REQUIRES: weight > 0; rate_max 0: no limit.
  std::size_t add(double weight, int priority, double rate_max) {
    tenants_.push_back({weight, priority, RateLimit(rate_max)});
    return tenants_.size() - 1;
  }

  void set_waiting(std::size_t tenant, bool waiting) {
    Tenant& it = tenants_[tenant];
    if (waiting && !it.waiting) it.time = std::max(it.time, time_);
    it.waiting = waiting;
  }

  // Whose turn it is, which is taken with that; nothing if nobody may go.
  std::optional<std::size_t> next(Instant now) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      Tenant& it = tenants_[i];
      if (!it.waiting || it.rate.available(now) == 0) continue;
      if (!best || is_before(it, tenants_[*best])) best = i;
    }
    if (!best) return std::nullopt;
    Tenant& chosen = tenants_[*best];
    time_ = std::max(time_, chosen.time);
    chosen.time += 1 / chosen.weight;
    chosen.rate.take(1);
    chosen.rate.settle(1, 1);
    return best;
  }

  // When a tenant that waits for its rate may go; nothing: that does not depend on the time.
  std::optional<Instant> next_time(Instant now) const {
    std::optional<Instant> next;
    for (const Tenant& it : tenants_) {
      const auto time = it.waiting ? it.rate.next(now) : std::nullopt;
      if (time && (!next || *time < *next)) next = time;
    }
    return next;
  }

 private:
  struct Tenant {
    double weight;
    int priority;
    RateLimit rate;
    double time = 0;
    bool waiting = false;
  };

  static bool is_before(const Tenant& a, const Tenant& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.time < b.time;
  }

  std::vector<Tenant> tenants_;
  double time_ = 0;  // Of the tenant that went last.
};

}  // namespace stanchion::worker
