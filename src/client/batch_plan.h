// Which entries are sent together, and when: the rules of batching, without a clock or a
// connection.
//
//   add() ─▶ lane: [entry, entry, …] ─ full, or the first waited for the linger time ─▶ take()
//
// A lane is one action on one queue. Of an ordered lane only one batch is under way at a time:
// answered() lets the next one go. One thread at a time.
//
//   BP1  Entries of a lane leave in the order in which they were added.
//   BP2  A batch has at most entries_max entries, and at most bytes_max bytes unless it is a single
//        entry.
//   BP3  due_ has exactly the lanes that hold entries and may send a batch.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace stanchion::client {

struct BatchLimits {
  std::chrono::milliseconds linger{5};
  std::size_t entries_max = 10;
  std::size_t bytes_max = 1'048'576;
};

template <class Item>
class BatchPlan {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Batch {
    std::string lane;
    std::vector<Item> items;
  };

  explicit BatchPlan(BatchLimits limits) : limits_(limits) {}

  void add(const std::string& lane, bool ordered, std::size_t bytes, Item item, Time now) {
    Lane& to = lanes_[lane];
    leave_line(lane, to);
    to.ordered = ordered;
    to.bytes += bytes;
    to.waiting.push_back({bytes, now, std::move(item)});
    join_line(lane, to);
  }

  // A batch that is due by then, or, with `all`, any batch; nullopt if there is none.
  std::optional<Batch> take(Time now, bool all = false) {
    if (due_.empty() || (!all && due_.begin()->first > now)) return std::nullopt;
    const std::string name = due_.begin()->second;
    Lane& lane = lanes_.at(name);
    leave_line(name, lane);
    Batch batch{name, {}};
    std::size_t bytes = 0;
    while (!lane.waiting.empty() && batch.items.size() < limits_.entries_max) {
      Waiting& next = lane.waiting.front();
      if (!batch.items.empty() && bytes + next.bytes > limits_.bytes_max) break;
      bytes += next.bytes;
      batch.items.push_back(std::move(next.item));
      lane.waiting.pop_front();
    }
    CHECK(lane.bytes >= bytes, "a lane counts the bytes of what waits in it");
    lane.bytes -= bytes;
    lane.busy = lane.ordered;
    if (!lane.busy && lane.waiting.empty())
      lanes_.erase(name);
    else
      join_line(name, lane);
    return batch;
  }

  // The batch of this lane that was under way is answered.
  void answered(const std::string& name) {
    const auto found = lanes_.find(name);
    if (found == lanes_.end()) return;
    Lane& lane = found->second;
    lane.busy = false;
    if (lane.waiting.empty())
      lanes_.erase(found);
    else
      join_line(name, lane);
  }

  // When take() will have a batch; nullopt: not before something is added or answered.
  std::optional<Time> next_deadline() const {
    return due_.empty() ? std::nullopt : std::optional(due_.begin()->first);
  }

  bool empty() const { return lanes_.empty(); }

 private:
  struct Waiting {
    std::size_t bytes;
    Time since;
    Item item;
  };
  struct Lane {
    std::deque<Waiting> waiting = {};
    std::size_t bytes = 0;
    bool ordered = false;
    bool busy = false;
    std::optional<Time> place = {};  // In due_.
  };

  Time due_time(const Lane& lane) const {
    const bool full = lane.waiting.size() >= limits_.entries_max || lane.bytes >= limits_.bytes_max;
    return full ? Time::min() : lane.waiting.front().since + limits_.linger;
  }
  void join_line(const std::string& name, Lane& lane) {
    if (lane.busy || lane.waiting.empty() || lane.place) return;
    lane.place = due_time(lane);
    due_.emplace(*lane.place, name);
  }
  void leave_line(const std::string& name, Lane& lane) {
    if (!lane.place) return;
    due_.erase({*lane.place, name});
    lane.place.reset();
  }

  const BatchLimits limits_;
  std::map<std::string, Lane> lanes_;
  std::set<std::pair<Time, std::string>> due_;
};

}  // namespace stanchion::client
