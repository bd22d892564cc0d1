// The metrics of a queue, as CloudWatch names them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stanchion::history {

// The order is that of the bits in a stored point: new ones are added at the end.
enum class Metric : std::uint8_t {
  kNumberOfMessagesSent,
  kNumberOfMessagesReceived,
  kNumberOfMessagesDeleted,
  kNumberOfEmptyReceives,
  kNumberOfDeduplicatedSentMessages,
  kSentMessageSize,
  kApproximateNumberOfMessagesVisible,
  kApproximateNumberOfMessagesNotVisible,
  kApproximateNumberOfMessagesDelayed,
  kApproximateAgeOfOldestMessage,
  kApproximateNumberOfGroupsWithInflightMessages,
  kApproximateNumberOfNoisyGroups,
  kApproximateNumberOfMessagesVisibleInQuietGroups,
  kApproximateNumberOfMessagesNotVisibleInQuietGroups,
  kApproximateNumberOfMessagesDelayedInQuietGroups,
  kApproximateAgeOfOldestMessageInQuietGroups,
};

enum class Unit : std::uint8_t { kCount, kSeconds, kBytes };

// Which queues have it: FIFO queues, and those fair queues that use message groups.
enum class Whose : std::uint8_t { kAll, kFifo, kFair };

struct MetricInfo {
  std::string_view name;
  Unit unit = Unit::kCount;
  Whose whose = Whose::kAll;
  bool is_gauge = false;  // What is at the end of the minute; else what happened in it.
};

inline constexpr std::array kMetrics{
    MetricInfo{"NumberOfMessagesSent"},
    MetricInfo{"NumberOfMessagesReceived"},
    MetricInfo{"NumberOfMessagesDeleted"},
    MetricInfo{"NumberOfEmptyReceives"},
    MetricInfo{"NumberOfDeduplicatedSentMessages", Unit::kCount, Whose::kFifo},
    MetricInfo{"SentMessageSize", Unit::kBytes},
    MetricInfo{"ApproximateNumberOfMessagesVisible", Unit::kCount, Whose::kAll, true},
    MetricInfo{"ApproximateNumberOfMessagesNotVisible", Unit::kCount, Whose::kAll, true},
    MetricInfo{"ApproximateNumberOfMessagesDelayed", Unit::kCount, Whose::kAll, true},
    MetricInfo{"ApproximateAgeOfOldestMessage", Unit::kSeconds, Whose::kAll, true},
    MetricInfo{"ApproximateNumberOfGroupsWithInflightMessages", Unit::kCount, Whose::kFifo, true},
    MetricInfo{"ApproximateNumberOfNoisyGroups", Unit::kCount, Whose::kFair, true},
    MetricInfo{"ApproximateNumberOfMessagesVisibleInQuietGroups", Unit::kCount, Whose::kFair, true},
    MetricInfo{"ApproximateNumberOfMessagesNotVisibleInQuietGroups", Unit::kCount, Whose::kFair,
               true},
    MetricInfo{"ApproximateNumberOfMessagesDelayedInQuietGroups", Unit::kCount, Whose::kFair, true},
    MetricInfo{"ApproximateAgeOfOldestMessageInQuietGroups", Unit::kSeconds, Whose::kFair, true},
};
inline constexpr std::size_t kMetricCount = kMetrics.size();
static_assert(static_cast<std::size_t>(Metric::kApproximateAgeOfOldestMessageInQuietGroups) + 1 ==
              kMetricCount);

constexpr std::size_t index_of(Metric metric) {
  return static_cast<std::size_t>(metric);
}
constexpr const MetricInfo& info_of(Metric metric) {
  return kMetrics[index_of(metric)];
}
constexpr std::optional<Metric> find_metric(std::string_view name) {
  for (std::size_t i = 0; i < kMetricCount; ++i)
    if (kMetrics[i].name == name) return static_cast<Metric>(i);
  return std::nullopt;
}
constexpr std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::kCount:
      return "Count";
    case Unit::kSeconds:
      return "Seconds";
    case Unit::kBytes:
      return "Bytes";
  }
  return "None";
}

}  // namespace stanchion::history
