// The points of days that are over, in the store: those of minutes are merged into points of five
// minutes, and those of five minutes are erased.
//
//   OP1  What is merged is erased in the same commit, whole queues at a time: after a crash the day of a
//        queue is there in one form or the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "history/point.h"
#include "store/store.h"

namespace stanchion::history {

class OldPoints {
 public:
  explicit OldPoints(store::Store& store) : store_(store) {}

  // The first day of which there are points of this kind (keys.h); nullopt: there are none.
  Result<std::optional<std::int64_t>> first_day(char kind) const;
  // Merges the points of some queues' minutes of this day.
  Status merge_some(std::int64_t day);
  // Up to this day, included.
  Status erase_five_minutes(std::int64_t last_day);

 private:
  // Points of five minutes, by queue and number in the day.
  using Merged = std::map<std::pair<std::uint32_t, Minute>, Point>;
  Status add_five_minutes(std::int64_t day, Merged& merged) const;

  store::Store& store_;
};

}  // namespace stanchion::history
