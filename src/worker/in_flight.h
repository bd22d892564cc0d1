// The messages of one queue that a worker has in flight, and which of them may begin.
//
//   add ─▶ waiting ─next─▶ begun ─end─▶ gone
//             │                └─ failed: the later messages of its group leave with it
//             └─ take_waiting ─▶ gone
//
// Messages of a FIFO group begin one after the other, in the order in which they were received; all
// others begin as soon as somebody asks. Not thread-safe.
//
//   IF1  At most one task of a group has begun, and it is the first of its group in flight, unless
//        groups begin together: then tasks begin in the order in which they were added.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/task.h"

namespace stanchion::worker {

class InFlight {
 public:
  // `together`: messages of a group need not wait for each other, because whoever handles them
  // keeps their order.
  explicit InFlight(bool fifo, bool together = false) : fifo_(fifo), together_(fifo && together) {}

  void add(const Task& task);
  bool has_next() const { return !ready_.empty(); }
  // REQUIRES: has_next().
  Task next();
  // A task that has begun is settled. Returns the later tasks of its group that have not begun if
  // it failed: they must go back before it is delivered again.
  std::vector<Task> end(const Task& task, bool failed);
  // All that have not begun leave.
  std::vector<Task> take_waiting();

  std::size_t size() const { return size_; }

 private:
  std::vector<Task> take_waiting_of(const std::string& group);

  bool fifo_;
  bool together_;
  std::size_t size_ = 0;
  std::deque<Task> ready_;
  // The first of a group is in ready_ or has begun. Empty if groups begin together.
  std::unordered_map<std::string, std::deque<Task>> groups_;
};

}  // namespace stanchion::worker
