#include "cloudwatch/execute.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cloudwatch/statistic.h"

namespace stanchion::cloudwatch {
namespace {

using history::Bucket;
using history::Metric;

constexpr std::size_t kDatapointsMax = 1'440;
constexpr std::size_t kDimensionsMax = 30;
constexpr std::size_t kFilterDimensionsMax = 10;
constexpr std::size_t kStatisticsMax = 5;
constexpr std::size_t kExtendedStatisticsMax = 10;
constexpr std::size_t kListedMax = 500;
constexpr Minute kRecentlyActive = 180;
constexpr std::int64_t kPeriodMax = 31'536'000;  // A year.
constexpr Duration kMinute = std::chrono::minutes(1);

std::unexpected<Error> invalid(std::string text) {
  return refuse(ErrorCode::kInvalidParameterValue, std::move(text));
}
std::unexpected<Error> too_large(std::string_view parameter, std::size_t most) {
  return invalid(
      fmt::format("The collection {} must not have a size greater than {}.", parameter, most));
}

Datapoint make_datapoint(const Bucket& bucket, const GetMetricStatistics& request, Metric metric) {
  Datapoint point;
  point.at = bucket.at;
  point.unit = name_of(history::info_of(metric).unit);
  for (const std::string& name : request.statistics) {
    const double value = Statistic::parse(name)->of(bucket);
    if (name == "SampleCount") point.sample_count = value;
    if (name == "Average") point.average = value;
    if (name == "Sum") point.sum = value;
    if (name == "Minimum") point.minimum = value;
    if (name == "Maximum") point.maximum = value;
  }
  for (const std::string& name : request.extended_statistics)
    point.extended.emplace_back(name, Statistic::parse(name)->of(bucket));
  return point;
}

std::optional<Error> check_statistics(const GetMetricStatistics& request) {
  if (request.statistics.empty() == request.extended_statistics.empty())
    return Error{ErrorCode::kInvalidParameterCombination,
                 "Either Statistics or ExtendedStatistics must be specified, and not both."};
  if (request.statistics.size() > kStatisticsMax)
    return too_large("Statistics", kStatisticsMax).error();
  if (request.extended_statistics.size() > kExtendedStatisticsMax)
    return too_large("ExtendedStatistics", kExtendedStatisticsMax).error();
  for (const std::string& name : request.statistics)
    if (!Statistic::is_simple(name))
      return invalid(fmt::format("The value {} for parameter Statistics is not supported: it must "
                                 "be SampleCount, Average, Sum, Minimum or Maximum.",
                                 name))
          .error();
  for (const std::string& name : request.extended_statistics) {
    const auto known = Statistic::parse(name);
    if (!known || !known->is_percentile())
      return invalid(fmt::format("The value {} for parameter ExtendedStatistics is not supported: "
                                 "it must be a percentile from p0 to p100, as p99.9.",
                                 name))
          .error();
  }
  return std::nullopt;
}

std::optional<Error> check(const GetMetricStatistics& request) {
  if (!request.space) return missing("Namespace").error();
  if (!request.name) return missing("MetricName").error();
  if (auto error = check_range(request.start, request.end)) return error;
  if (!request.period) return missing("Period").error();
  if (auto error = check_period(*request.period)) return error;
  if (request.dimensions.size() > kDimensionsMax)
    return too_large("Dimensions", kDimensionsMax).error();
  if (auto error = check_statistics(request)) return error;
  const Duration period = std::chrono::seconds(*request.period);
  const Duration range = *request.end - *request.start;
  const std::int64_t points = (range.count() + period.count() - 1) / period.count();
  if (points > static_cast<std::int64_t>(kDatapointsMax))
    return Error{ErrorCode::kInvalidParameterCombination,
                 fmt::format("You have requested up to {} datapoints, which exceeds the limit of "
                             "1,440. You may reduce the datapoints requested by increasing Period, "
                             "or decreasing the time range.",
                             points)};
  return std::nullopt;
}

bool fits(const ListMetrics& request, const QueueRef& ref, const history::KnownQueue& queue,
          Metric metric) {
  using history::Whose;
  const history::MetricInfo& info = history::info_of(metric);
  if (request.name && *request.name != info.name) return false;
  if (metric == Metric::kSentMessageSize) return queue.sized;
  if (info.whose == Whose::kFifo) return is_fifo_name(ref.name);
  return info.whose == Whose::kAll || queue.fair;
}

// Where the next page begins: the queue of the last metric of this one, and its number.
std::string next_token(const std::string& queue, std::size_t metric) {
  return to_base64(fmt::format("{}/{}", queue, metric));
}

struct Place {
  std::string queue;
  std::size_t metric;
};

std::optional<Place> parse_token(const std::string& token) {
  const auto text = from_base64(token);
  if (!text) return std::nullopt;
  const std::size_t slash = text->rfind('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto metric = parse_decimal(std::string_view(*text).substr(slash + 1));
  if (!metric || *metric >= history::kMetricCount) return std::nullopt;
  return Place{text->substr(0, slash), static_cast<std::size_t>(*metric)};
}

std::optional<Error> check(const ListMetrics& request) {
  if (request.dimensions.size() > kFilterDimensionsMax)
    return too_large("Dimensions", kFilterDimensionsMax).error();
  if (request.recently_active && *request.recently_active != "PT3H")
    return invalid("The value for parameter RecentlyActive must be PT3H.").error();
  for (const Dimension& dimension : request.dimensions)
    if (!dimension.name) return missing("Dimensions.member.1.Name").error();
  if (request.next_token && !parse_token(*request.next_token))
    return Error{ErrorCode::kInvalidNextToken, "The next token specified is invalid."};
  return std::nullopt;
}

bool names(const std::vector<Dimension>& filters, const std::string& queue) {
  return std::ranges::all_of(filters, [&](const Dimension& filter) {
    return filter.name == kQueueDimension && (!filter.value || *filter.value == queue);
  });
}

}  // namespace

std::optional<std::string> queue_of(const std::vector<Dimension>& dimensions) {
  if (dimensions.size() != 1 || dimensions[0].name != kQueueDimension) return std::nullopt;
  return dimensions[0].value;
}

std::unexpected<Error> missing(std::string_view parameter) {
  return refuse(ErrorCode::kMissingParameter,
                fmt::format("The parameter {} is required.", parameter));
}

std::optional<Error> check_range(const std::optional<Instant>& start,
                                 const std::optional<Instant>& end) {
  if (!start) return missing("StartTime").error();
  if (!end) return missing("EndTime").error();
  if (*start < *end) return std::nullopt;
  return Error{ErrorCode::kInvalidParameterCombination,
               "The parameter StartTime must be less than the parameter EndTime."};
}

std::optional<Error> check_period(std::int64_t period) {
  const bool high_resolution =
      period == 1 || period == 5 || period == 10 || period == 20 || period == 30;
  if (high_resolution || (period >= 60 && period % 60 == 0 && period <= kPeriodMax))
    return std::nullopt;
  return invalid(
             fmt::format("The value {} for parameter Period is not valid: it must be 1, 5, 10, 20, "
                         "30 or a multiple of 60, up to {}.",
                         period, kPeriodMax))
      .error();
}

std::optional<Error> Executor::read(const history::Reading& reading,
                                    const history::History::BucketVisitor& visit) {
  // There are no values of less than a minute.
  if (reading.period < kMinute) return std::nullopt;
  const Status status = history_->read(reading, visit);
  if (status) return std::nullopt;
  failure_ = status.error();
  return Error{ErrorCode::kInternalFailure, "The history of the queues cannot be read."};
}

std::optional<Answer<Result>> Executor::advance(const history::History& history) {
  history_ = &history;
  return std::visit([this](const auto& call) -> std::optional<Answer<Result>> { return run(call); },
                    request_);
}

// The periods begin at the start of the range, as on AWS.
Answer<Result> Executor::run(const GetMetricStatistics& request) {
  if (auto error = check(request)) return std::unexpected(*std::move(error));
  GetMetricStatisticsResult result{.label = *request.name, .datapoints = {}};
  const auto metric = history::find_metric(*request.name);
  const auto queue = queue_of(request.dimensions);
  if (*request.space != kNamespace || !metric || !queue) return result;
  if (request.unit && *request.unit != name_of(history::info_of(*metric).unit)) return result;
  const Instant start = begin_of(minute_of(*request.start));
  const auto error = read({.queue = {caller_.account, caller_.region, *queue},
                           .metric = *metric,
                           .from = start,
                           .until = *request.end,
                           .period = std::chrono::seconds(*request.period),
                           .origin = start,
                           .with_spread = !request.extended_statistics.empty()},
                          [&](const Bucket& bucket) {
                            result.datapoints.push_back(make_datapoint(bucket, request, *metric));
                          });
  if (error) return std::unexpected(*error);
  return result;
}

Answer<Result> Executor::run(const ListMetrics& request) {
  if (auto error = check(request)) return std::unexpected(*std::move(error));
  ListMetricsResult result;
  if (request.space && *request.space != kNamespace) return result;
  const Minute now = minute_of(now_);
  const Minute since = now - (request.recently_active ? kRecentlyActive : history::kMinutesKept);
  const auto& queues = history_->queues();
  Place after{"", 0};
  if (request.next_token) after = *parse_token(*request.next_token);
  for (auto at = queues.lower_bound({caller_.account, caller_.region, after.queue});
       at != queues.end(); ++at) {
    const auto& [ref, queue] = *at;
    if (ref.account != caller_.account || ref.region != caller_.region) break;
    if (queue.last_minute < since || !names(request.dimensions, ref.name)) continue;
    const bool resumed = request.next_token && ref.name == after.queue;
    for (std::size_t i = resumed ? after.metric + 1 : 0; i < history::kMetricCount; ++i) {
      if (!fits(request, ref, queue, static_cast<Metric>(i))) continue;
      if (result.metrics.size() == kListedMax) {
        const ListedMetric& last = result.metrics.back();
        result.next_token = next_token(last.queue, index_of(*history::find_metric(last.name)));
        return result;
      }
      result.metrics.push_back({history::kMetrics[i].name, ref.name});
    }
  }
  return result;
}

}  // namespace stanchion::cloudwatch
