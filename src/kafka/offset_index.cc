#include "kafka/offset_index.h"

#include <algorithm>

#include "base/check.h"

namespace stanchion::kafka {

void OffsetIndex::note(Position first, journal::LogOffset at) {
  if (!points_.empty()) {
    const Point& last = points_.back();
    CHECK(first > last.first && at > last.at, "entries are noted in order");
    if (first.value() - last.first.value() < stride_) return;
  }
  points_.push_back({first, at});
  if (points_.size() <= kPointsMax) return;
  adapt_stride();
  std::deque<Point> kept;
  for (const Point& point : points_)
    if (kept.empty() || point.first.value() - kept.back().first.value() >= stride_)
      kept.push_back(point);
  points_ = std::move(kept);
}

// Evenly spread, half of the points would be used.
void OffsetIndex::adapt_stride() {
  const std::uint64_t span =
      points_.empty() ? 0 : points_.back().first.value() - points_.front().first.value();
  stride_ = std::max<std::uint64_t>(1, span / (kPointsMax / 2));
}

std::optional<journal::LogOffset> OffsetIndex::at_or_before(Position position) const {
  const auto after = std::ranges::upper_bound(points_, position, {}, &Point::first);
  if (after == points_.begin()) return std::nullopt;
  return std::prev(after)->at;
}

void OffsetIndex::forget_before(journal::LogOffset at) {
  while (!points_.empty() && points_.front().at < at) points_.pop_front();
  adapt_stride();
}

}  // namespace stanchion::kafka
