// The values that metric math computes with: numbers, time series, and lists of series.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"

namespace stanchion::cloudwatch {

struct Series {
  std::string label;
  Duration period = std::chrono::minutes(1);
  std::vector<std::pair<Instant, double>> points;  // In order of time.
};

using Array = std::vector<Series>;
using Value = std::variant<double, Series, Array>;

// Periods begin at multiples of their length since 1970.
inline Instant begin_of_period(Instant at, Duration period) {
  return at - Duration(to_millis(at) % period.count());
}

// When values may be: at the beginnings of the periods that touch the range of a call.
struct Timeline {
  Instant start;
  Instant end;                                // Not included.
  Duration period = std::chrono::minutes(1);  // Of series that are made of nothing.

  Instant first(Duration of) const { return begin_of_period(start, of); }
  std::size_t steps(Duration of) const {
    if (end <= start) return 0;
    return static_cast<std::size_t>((end - first(of) - Duration(1)) / of + 1);
  }
};

std::size_t points_of(const Value& value);

}  // namespace stanchion::cloudwatch
