// What the auditor knows about requests: when each was made, when it was answered, and hence
// between which instants the server can have decided it.
//
// The auditor has a time of its own, the moment: a number that grows with every request and answer.
// If one call ended at an earlier moment than another began, it happened before; otherwise the
// order is unknown, and nothing is claimed about it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/time.h"

namespace stanchion::sim {

using Moment = std::uint64_t;
inline constexpr Moment kOpen = std::numeric_limits<Moment>::max();

struct Op {
  enum class Outcome {
    kPending,  // Not answered yet.
    kDone,     // It happened.
    kDoubt,    // The answer was lost: it happened or it did not.
    kVoid,     // It did not happen.
  };

  Moment from = 0;
  Moment to = kOpen;
  Instant lo;           // Not decided before the clock showed this.
  Instant hi = kNever;  // Nor after this.
  Outcome outcome = Outcome::kPending;

  bool done() const { return outcome == Outcome::kDone; }
  bool open() const { return outcome == Outcome::kPending; }
  bool may_have_happened() const { return outcome != Outcome::kVoid; }
  bool before(const Op& other) const { return to < other.from; }
};
using OpPtr = std::shared_ptr<Op>;

// A setting that requests write; its value is known only as far as their order is.
template <class T>
class Register {
 public:
  explicit Register(T initial) {
    auto begin = std::make_shared<Op>();
    begin->to = 0;
    begin->hi = Instant::min();
    begin->outcome = Op::Outcome::kDone;
    entries_.push_back({std::move(begin), std::move(initial), true});
  }

  // `certain`: if the request is done, the setting has this value afterwards; else it may have.
  void write(OpPtr op, T value, bool certain = true) {
    forget_overwritten(op->from);
    entries_.push_back({std::move(op), std::move(value), certain});
  }

  // Calls visit(value) for every value that the setting can have had between two moments.
  template <class Visit>
  void possible(Moment from, Moment to, Visit&& visit) const {
    for (const Entry& entry : entries_)
      if (entry.op->may_have_happened() && entry.op->from <= to && !overwritten(entry, from))
        visit(entry.value);
  }

 private:
  struct Entry {
    OpPtr op;
    T value;
    bool certain;
  };

  bool overwritten(const Entry& entry, Moment before) const {
    for (const Entry& later : entries_)
      if (later.certain && later.op->done() && later.op->from > entry.op->to &&
          later.op->to < before)
        return true;
    return false;
  }

  // Only old messages depend on values that were replaced long ago; a few are kept for them.
  void forget_overwritten(Moment) {
    std::erase_if(entries_, [](const Entry& e) { return !e.op->may_have_happened(); });
  }

  std::vector<Entry> entries_;
};

}  // namespace stanchion::sim
