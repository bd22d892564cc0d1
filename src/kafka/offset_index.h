// Where in a log the records are: some positions with their offsets, few enough to be kept in
// memory however long the log is. For trimming, which may as well stop a little earlier.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "journal/shared_log.h"
#include "model/ids.h"

namespace stanchion::kafka {

class OffsetIndex {
 public:
  static constexpr std::size_t kPointsMax = 4096;

  // The entry at `at` is valid, and its first record has the position `first`. Calls come in order.
  void note(Position first, journal::LogOffset at);

  // The last entry known to begin at or before `position`; nullopt if none is known.
  std::optional<journal::LogOffset> at_or_before(Position position) const;

  void forget_before(journal::LogOffset at);

  std::size_t size() const { return points_.size(); }

 private:
  struct Point {
    Position first;
    journal::LogOffset at;
  };

  void adapt_stride();

  std::deque<Point> points_;
  std::uint64_t stride_ = 1;  // Positions between two points, at least.
};

}  // namespace stanchion::kafka
