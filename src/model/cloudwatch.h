// The calls of CloudWatch that this server answers, and their results. Optional members may be left
// out by a caller; what that means is decided where the call is executed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"

namespace stanchion::cloudwatch {

struct Dimension {
  std::optional<std::string> name;
  std::optional<std::string> value;
};

struct MetricName {
  std::optional<std::string> space;  // The namespace, as AWS/SQS.
  std::optional<std::string> name;
  std::vector<Dimension> dimensions;
};

struct MetricStat {
  std::optional<MetricName> metric;
  std::optional<std::int64_t> period;
  std::optional<std::string> stat;
  std::optional<std::string> unit;
};

struct MetricDataQuery {
  std::optional<std::string> id;
  std::optional<MetricStat> metric_stat;
  std::optional<std::string> expression;
  std::optional<std::string> label;
  std::optional<bool> return_data;
  std::optional<std::int64_t> period;
};

struct GetMetricData {
  std::vector<MetricDataQuery> queries;
  std::optional<Instant> start;
  std::optional<Instant> end;
  std::optional<std::string> next_token;
  std::optional<std::string> scan_by;
  std::optional<std::int64_t> max_datapoints;
};

struct GetMetricStatistics {
  std::optional<std::string> space;
  std::optional<std::string> name;
  std::vector<Dimension> dimensions;
  std::optional<Instant> start;
  std::optional<Instant> end;
  std::optional<std::int64_t> period;
  std::vector<std::string> statistics;
  std::vector<std::string> extended_statistics;
  std::optional<std::string> unit;
};

struct ListMetrics {
  std::optional<std::string> space;
  std::optional<std::string> name;
  std::vector<Dimension> dimensions;
  std::optional<std::string> next_token;
  std::optional<std::string> recently_active;
};

// In the order of kActionNames.
using Request = std::variant<GetMetricData, GetMetricStatistics, ListMetrics>;

inline constexpr std::array<std::string_view, 3> kActionNames{"GetMetricData",
                                                              "GetMetricStatistics", "ListMetrics"};
static_assert(std::variant_size_v<Request> == kActionNames.size());

inline std::string_view name_of(const Request& request) {
  return kActionNames[request.index()];
}

struct MetricDataResult {
  std::string id;
  std::string label;
  std::vector<Instant> timestamps;
  std::vector<double> values;
  bool complete = true;  // Else there is more of it behind the next token.
};

struct GetMetricDataResult {
  std::vector<MetricDataResult> results;
  std::optional<std::string> next_token;
};

struct Datapoint {
  Instant at;
  std::optional<double> sample_count;
  std::optional<double> average;
  std::optional<double> sum;
  std::optional<double> minimum;
  std::optional<double> maximum;
  std::string_view unit;
  std::vector<std::pair<std::string, double>> extended;
};

struct GetMetricStatisticsResult {
  std::string label;
  std::vector<Datapoint> datapoints;
};

struct ListedMetric {
  std::string_view name;
  std::string queue;
};

struct ListMetricsResult {
  std::vector<ListedMetric> metrics;
  std::optional<std::string> next_token;
};

using Result = std::variant<GetMetricDataResult, GetMetricStatisticsResult, ListMetricsResult>;

inline constexpr std::string_view kNamespace = "AWS/SQS";
inline constexpr std::string_view kQueueDimension = "QueueName";

}  // namespace stanchion::cloudwatch
