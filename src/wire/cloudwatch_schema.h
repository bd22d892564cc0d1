// The members of the calls of CloudWatch, each described once, as those of SQS are in schema.h.
#pragma once

#include <tuple>

#include "model/cloudwatch.h"
#include "wire/schema.h"

namespace stanchion::wire {

template <>
struct Schema<cloudwatch::Dimension> {
  using T = cloudwatch::Dimension;
  static constexpr auto fields = std::tuple(field("Name", &T::name), field("Value", &T::value));
};

template <>
struct Schema<cloudwatch::MetricName> {
  using T = cloudwatch::MetricName;
  static constexpr auto fields =
      std::tuple(field("Namespace", &T::space), field("MetricName", &T::name),
                 field("Dimensions", &T::dimensions));
};

template <>
struct Schema<cloudwatch::MetricStat> {
  using T = cloudwatch::MetricStat;
  static constexpr auto fields =
      std::tuple(field("Metric", &T::metric), field("Period", &T::period), field("Stat", &T::stat),
                 field("Unit", &T::unit));
};

template <>
struct Schema<cloudwatch::MetricDataQuery> {
  using T = cloudwatch::MetricDataQuery;
  static constexpr auto fields =
      std::tuple(field("Id", &T::id), field("MetricStat", &T::metric_stat),
                 field("Expression", &T::expression), field("Label", &T::label),
                 field("ReturnData", &T::return_data), field("Period", &T::period));
};

template <>
struct Schema<cloudwatch::GetMetricData> {
  using T = cloudwatch::GetMetricData;
  static constexpr auto fields =
      std::tuple(field("MetricDataQueries", &T::queries), field("StartTime", &T::start),
                 field("EndTime", &T::end), field("NextToken", &T::next_token),
                 field("ScanBy", &T::scan_by), field("MaxDatapoints", &T::max_datapoints));
};

template <>
struct Schema<cloudwatch::GetMetricStatistics> {
  using T = cloudwatch::GetMetricStatistics;
  static constexpr auto fields = std::tuple(
      field("Namespace", &T::space), field("MetricName", &T::name),
      field("Dimensions", &T::dimensions), field("StartTime", &T::start), field("EndTime", &T::end),
      field("Period", &T::period), field("Statistics", &T::statistics),
      field("ExtendedStatistics", &T::extended_statistics), field("Unit", &T::unit));
};

template <>
struct Schema<cloudwatch::ListMetrics> {
  using T = cloudwatch::ListMetrics;
  static constexpr auto fields =
      std::tuple(field("Namespace", &T::space), field("MetricName", &T::name),
                 field("Dimensions", &T::dimensions), field("NextToken", &T::next_token),
                 field("RecentlyActive", &T::recently_active));
};

}  // namespace stanchion::wire
