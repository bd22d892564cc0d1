// A point of the history: what a queue did in one minute, or in the minutes of a longer stretch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "history/metric.h"
#include "model/size_distribution.h"

namespace stanchion::history {

inline constexpr Minute kMinutesADay = 1'440;

// The values of one metric, one per minute.
struct Values {
  std::uint64_t sum = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;

  friend bool operator==(const Values&, const Values&) = default;
};

struct Point {
  std::uint32_t minutes = 1;
  std::uint32_t fair_minutes = 0;  // Of these, with message groups on a standard queue.
  // SentMessageSize has its sum here, in bytes; its messages are those that were sent.
  std::array<Values, kMetricCount> values{};
  // Of the messages sent, as far as is known: after a crash, of those since the last checkpoint.
  SizeDistribution sizes;

  void set(Metric metric, std::uint64_t value) { values[index_of(metric)] = {value, value, value}; }
  const Values& of(Metric metric) const { return values[index_of(metric)]; }

  // The same minute once more, later: what happened is added, gauges are replaced.
  void add_same_minute(const Point& later);
  // Other minutes of the same queue.
  void add_other_minutes(const Point& other);

  friend bool operator==(const Point&, const Point&) = default;
};

// docs/formats.md has the bytes.
std::string encode(const Point& point);
// nullopt if the bytes are not a point.
std::optional<Point> decode_point(std::string_view bytes);

}  // namespace stanchion::history
