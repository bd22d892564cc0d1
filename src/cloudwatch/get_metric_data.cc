// GetMetricData: metrics and expressions over them, in pages.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/text.h"
#include "cloudwatch/execute.h"
#include "cloudwatch/expression.h"
#include "cloudwatch/functions.h"
#include "cloudwatch/series.h"
#include "cloudwatch/statistic.h"

namespace stanchion::cloudwatch {
namespace {

constexpr std::size_t kQueriesMax = 500;
constexpr std::int64_t kDatapointsMax = 100'800;
constexpr std::size_t kIdSizeMax = 255;
constexpr std::size_t kDimensionsMax = 30;
constexpr int kChainMax = 32;

std::unexpected<Error> invalid(std::string text) {
  return refuse(ErrorCode::kValidationError, std::move(text));
}

bool is_id(std::string_view id) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  if (id.empty() || id.size() > kIdSizeMax || !is_lower(id.front())) return false;
  return std::ranges::all_of(id, [&](char c) {
    return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::optional<Error> check(const MetricStat& stat, std::string_view place) {
  const auto missing_in = [&](std::string_view member) {
    return missing(fmt::format("{}.MetricStat.{}", place, member)).error();
  };
  if (!stat.metric) return missing_in("Metric");
  if (!stat.metric->name) return missing_in("Metric.MetricName");
  if (!stat.period) return missing_in("Period");
  if (!stat.stat) return missing_in("Stat");
  if (stat.metric->dimensions.size() > kDimensionsMax)
    return invalid(fmt::format("{} has more than {} dimensions.", place, kDimensionsMax)).error();
  if (check_period(*stat.period))
    return invalid(fmt::format("The value {} for parameter {}.MetricStat.Period is not valid: it "
                               "must be 1, 5, 10, 20, 30 or a multiple of 60.",
                               *stat.period, place))
        .error();
  if (!Statistic::parse(*stat.stat))
    return invalid(fmt::format("The value {} for parameter {}.MetricStat.Stat is not supported: it "
                               "must be SampleCount, Average, Sum, Minimum, Maximum or a "
                               "percentile, as p99.9.",
                               *stat.stat, place))
        .error();
  return std::nullopt;
}

std::optional<Error> check_queries(const GetMetricData& request) {
  if (request.queries.empty()) return missing("MetricDataQueries").error();
  if (request.queries.size() > kQueriesMax)
    return invalid(fmt::format("The collection MetricDataQueries must not have a size greater than "
                               "{}.",
                               kQueriesMax))
        .error();
  std::vector<std::string_view> ids;
  for (std::size_t i = 0; i < request.queries.size(); ++i) {
    const MetricDataQuery& query = request.queries[i];
    const std::string place = fmt::format("MetricDataQueries.member.{}", i + 1);
    if (!query.id) return missing(place + ".Id").error();
    if (!is_id(*query.id))
      return invalid(fmt::format("The value {} for parameter {}.Id is not matching the expected "
                                 "pattern ^[a-z][a-zA-Z0-9_]*$.",
                                 *query.id, place))
          .error();
    if (query.metric_stat.has_value() == query.expression.has_value())
      return invalid(
                 fmt::format("{} must have either MetricStat or Expression, and not both.", place))
          .error();
    if (query.metric_stat)
      if (auto error = check(*query.metric_stat, place)) return error;
    ids.push_back(*query.id);
  }
  std::ranges::sort(ids);
  if (std::ranges::adjacent_find(ids) != ids.end())
    return invalid("The values for parameter id in MetricDataQueries are not unique.").error();
  const auto is_returned = [](const MetricDataQuery& q) { return q.return_data.value_or(true); };
  if (std::ranges::none_of(request.queries, is_returned))
    return invalid("At least one of MetricDataQueries must have ReturnData set to true.").error();
  return std::nullopt;
}

std::optional<Error> check(const GetMetricData& request) {
  if (auto error = check_range(request.start, request.end)) return error;
  if (auto error = check_queries(request)) return error;
  const std::int64_t most = request.max_datapoints.value_or(kDatapointsMax);
  if (most < 1 || most > kDatapointsMax)
    return invalid(fmt::format("The value {} for parameter MaxDatapoints is not valid: it must be "
                               "from 1 to {}.",
                               most, kDatapointsMax))
        .error();
  if (request.scan_by && *request.scan_by != "TimestampDescending" &&
      *request.scan_by != "TimestampAscending")
    return invalid(fmt::format("The value {} for parameter ScanBy is not valid: it must be "
                               "TimestampDescending or TimestampAscending.",
                               *request.scan_by))
        .error();
  return std::nullopt;
}

// Names the request that a token belongs to, so that it cannot be used with another one.
std::string fingerprint(const GetMetricData& request) {
  std::string text = fmt::format("{} {} {}", to_millis(*request.start), to_millis(*request.end),
                                 request.scan_by.value_or(""));
  for (const MetricDataQuery& query : request.queries) {
    text += fmt::format("\n{} {}", *query.id, query.expression.value_or(""));
    if (!query.metric_stat) continue;
    const MetricStat& stat = *query.metric_stat;
    text += fmt::format("{} {} {} {}", *stat.stat, *stat.period, stat.metric->space.value_or(""),
                        *stat.metric->name);
    for (const Dimension& dimension : stat.metric->dimensions)
      text += fmt::format(" {}={}", dimension.name.value_or(""), dimension.value.value_or(""));
  }
  return fmt::format("{:016x}", xxh3_64(text));
}

// How many values earlier pages had.
std::optional<std::size_t> parse_token(const GetMetricData& request) {
  if (!request.next_token) return 0;
  const auto text = from_base64(*request.next_token);
  if (!text) return std::nullopt;
  const std::string begin = fingerprint(request) + "/";
  if (!text->starts_with(begin)) return std::nullopt;
  const auto number = parse_decimal(std::string_view(*text).substr(begin.size()));
  if (!number || *number > SIZE_MAX / 2) return std::nullopt;
  return static_cast<std::size_t>(*number);
}

}  // namespace

// One GetMetricData under way: first the metrics are read, in turns, then each expression is
// computed once, when it is first needed.
class MathRun {
 public:
  MathRun(Executor& executor, const GetMetricData& request)
      : executor_(executor),
        request_(request),
        timeline_{begin_of(minute_of(*request.start)), *request.end} {
    bool any = false;
    for (std::size_t i = 0; i < request.queries.size(); ++i) {
      by_id_.emplace(*request.queries[i].id, i);
      if (!request.queries[i].metric_stat) continue;
      const Duration period = std::chrono::seconds(*request.queries[i].metric_stat->period);
      timeline_.period = any ? std::min(timeline_.period, period) : period;
      any = true;
    }
    values_.resize(request.queries.size());
    under_way_.resize(request.queries.size());
  }

  // Reads on; true if all metrics have been read.
  Answer<bool> read_some() {
    const std::uint64_t before = executor_.history_->points_read();
    while (next_read_ < request_.queries.size()) {
      const std::size_t index = next_read_++;
      if (!request_.queries[index].metric_stat) continue;
      if (auto computed = compute(index); !computed)
        return std::unexpected(std::move(computed).error());
      if (executor_.history_->points_read() - before >= kPointsATurn) break;
    }
    return next_read_ == request_.queries.size();
  }

  std::size_t points() const { return points_; }

  // Computes everything, and makes a result of the page alone: the `most` values from `begin` on.
  Answer<GetMetricDataResult> run(std::size_t begin, std::size_t most) {
    GetMetricDataResult result;
    Page page{.begin = begin, .end = begin + most};
    for (std::size_t i = 0; i < request_.queries.size(); ++i) {
      auto computed = compute(i);
      if (!computed) return std::unexpected(std::move(computed).error());
      const MetricDataQuery& query = request_.queries[i];
      if (!query.return_data.value_or(true)) continue;
      if (const auto* series = std::get_if<Series>(&**computed))
        add_to(page, query, *series, query.expression ? *query.id : "");
      if (const auto* array = std::get_if<Array>(&**computed))
        for (const Series& series : *array) add_to(page, query, series, "");
      if (std::holds_alternative<double>(**computed))
        return wrong(query,
                     "it is a number and not a time series: use TIME_SERIES(…), or compute "
                     "with at least one metric");
    }
    result.results = std::move(page.results);
    if (page.end < page.seen)
      result.next_token = to_base64(fmt::format("{}/{}", fingerprint(request_), page.end));
    return result;
  }

 private:
  static std::unexpected<Error> wrong(const MetricDataQuery& query, std::string_view what) {
    return invalid(fmt::format("Error in expression '{}': {}.", *query.id, what));
  }

  struct Page {
    std::size_t begin;
    std::size_t end;
    std::size_t seen = 0;  // Values of the series so far, on all pages.
    std::vector<MetricDataResult> results = {};
  };

  // The part of the series that is on the page. A series without values is on the first one.
  void add_to(Page& page, const MetricDataQuery& query, const Series& series,
              std::string_view fallback) const {
    const std::size_t size = series.points.size(), before = page.seen;
    const std::size_t first = std::min(size, page.begin > before ? page.begin - before : 0);
    const std::size_t last = std::min(size, page.end > before ? page.end - before : 0);
    page.seen += size;
    const bool was_shown = page.begin > 0 && first == size;
    const bool comes_later = size > 0 && last == 0;
    if (was_shown || comes_later) return;
    MetricDataResult& result = page.results.emplace_back();
    result.id = *query.id;
    result.label = query.label ? *query.label : fallback.empty() ? series.label : fallback;
    result.complete = last == size;
    result.timestamps.reserve(last - first);
    result.values.reserve(last - first);
    const bool ascending = request_.scan_by == "TimestampAscending";
    for (std::size_t i = first; i < last; ++i) {
      const auto& [at, value] = series.points[ascending ? i : size - 1 - i];
      result.timestamps.push_back(at);
      result.values.push_back(value);
    }
  }

  Answer<const Value*> compute(std::size_t index) {
    const MetricDataQuery& query = request_.queries[index];
    if (values_[index]) return &*values_[index];
    if (under_way_[index]) return wrong(query, "it refers to itself");
    if (++chain_ > kChainMax) return wrong(query, "it refers to too many others in a row");
    under_way_[index] = true;
    Answer<Value> value = query.metric_stat ? read(*query.metric_stat) : evaluate(query);
    if (!value) return std::unexpected(std::move(value).error());
    under_way_[index] = false;
    --chain_;
    values_[index] = *std::move(value);
    return &*values_[index];
  }

  Answer<Value> read(const MetricStat& stat) {
    Series series{*stat.metric->name, std::chrono::seconds(*stat.period), {}};
    const auto metric = history::find_metric(*stat.metric->name);
    const auto queue = queue_of(stat.metric->dimensions);
    if (stat.metric->space != kNamespace || !metric || !queue) return series;
    if (stat.unit && *stat.unit != name_of(history::info_of(*metric).unit)) return series;
    const Statistic statistic = *Statistic::parse(*stat.stat);
    const auto error =
        executor_.read({.queue = {executor_.caller_.account, executor_.caller_.region, *queue},
                        .metric = *metric,
                        .from = timeline_.start,
                        .until = timeline_.end,
                        .period = series.period,
                        .with_spread = statistic.is_percentile()},
                       [&](const history::Bucket& bucket) {
                         series.points.emplace_back(bucket.at, statistic.of(bucket));
                       });
    if (error) return std::unexpected(*error);
    series.points.shrink_to_fit();  // Many series may wait for each other's points.
    return count(std::move(series));
  }

  Answer<Value> evaluate(const MetricDataQuery& query) {
    const auto expression = parse_expression(*query.expression);
    if (!expression) return wrong(query, expression.error().message);
    auto value = evaluate(*expression);
    if (value) return value;
    // Errors of other queries, and of the history, already say where they come from.
    if (value.error().code != ErrorCode::kValidationError ||
        value.error().message.starts_with("Error in expression"))
      return value;
    return wrong(query, value.error().message);
  }

  Answer<Value> evaluate(const Expression& expression) {
    using Kind = Expression::Kind;
    switch (expression.kind) {
      case Kind::kNumber:
        return expression.number;
      case Kind::kText:
        return invalid("a text is only an argument of METRICS");
      case Kind::kName:
        return look_up(expression.text);
      case Kind::kNegation: {
        auto value = evaluate(expression.parts[0]);
        return value ? negate(*std::move(value)) : value;
      }
      case Kind::kOperation: {
        auto left = evaluate(expression.parts[0]);
        if (!left) return left;
        auto right = evaluate(expression.parts[1]);
        if (!right) return right;
        return count(apply_operator(expression.op, *left, *right));
      }
      case Kind::kCall:
        return call(expression);
      case Kind::kArray:
        return gather(expression.parts);
    }
    return 0.0;
  }

  Answer<Value> look_up(const std::string& name) {
    const auto found = by_id_.find(name);
    if (found == by_id_.end())
      return invalid(fmt::format("{} is not the id of a query of this request", name));
    auto value = compute(found->second);
    if (!value) return std::unexpected(std::move(value).error());
    if (points_ + points_of(**value) > kPointsMax) return too_many();
    return count(**value);
  }

  // [m1, m2]
  Answer<Value> gather(const std::vector<Expression>& parts) {
    Array array;
    for (const Expression& part : parts) {
      auto value = evaluate(part);
      if (!value) return value;
      auto* series = std::get_if<Series>(&*value);
      if (series == nullptr) return invalid("an array holds time series only");
      array.push_back(std::move(*series));
    }
    return array;
  }

  Answer<Value> call(const Expression& expression) {
    if (expression.text == "METRICS") return all_metrics(expression.parts);
    std::vector<Argument> arguments;
    for (const Expression& part : expression.parts) {
      Argument argument{.value = 0.0};
      if (part.kind == Expression::Kind::kName && is_word(part.text) &&
          !by_id_.contains(part.text)) {
        argument.word = part.text;
      } else {
        auto value = evaluate(part);
        if (!value) return value;
        argument.value = *std::move(value);
      }
      arguments.push_back(std::move(argument));
    }
    return count(call_function(expression.text, std::move(arguments), timeline_));
  }

  // All metrics of the request that are not expressions, or those whose ids contain a text.
  Answer<Value> all_metrics(const std::vector<Expression>& parts) {
    if (parts.size() > 1 || (parts.size() == 1 && parts[0].kind != Expression::Kind::kText))
      return invalid("METRICS takes nothing, or a text");
    Array array;
    std::size_t made = 0;
    for (std::size_t i = 0; i < request_.queries.size(); ++i) {
      const MetricDataQuery& query = request_.queries[i];
      if (!query.metric_stat || (!parts.empty() && !query.id->contains(parts[0].text))) continue;
      auto value = compute(i);
      if (!value) return std::unexpected(std::move(value).error());
      const auto& series = std::get<Series>(**value);
      made += series.points.size();
      if (points_ + made > kPointsMax) return too_many();
      array.push_back(series);
    }
    return count(std::move(array));
  }

  // Everything that is made counts, so that a few words cannot fill the memory.
  Answer<Value> count(Answer<Value> value) {
    if (!value) return value;
    points_ += points_of(*value);
    if (points_ <= kPointsMax) return value;
    return too_many();
  }

  static std::unexpected<Error> too_many() {
    return invalid(
        fmt::format("The request needs more than {} points: ask for a shorter range, "
                    "longer periods or fewer metrics.",
                    kPointsMax));
  }

  Executor& executor_;
  const GetMetricData& request_;
  Timeline timeline_;
  std::map<std::string, std::size_t, std::less<>> by_id_;
  std::vector<std::optional<Value>> values_;
  std::vector<bool> under_way_;
  std::size_t next_read_ = 0;  // Metrics of queries before this one have been read.
  std::size_t points_ = 0;
  int chain_ = 0;  // Queries that wait for each other.
};

Executor::Executor(const Request& request, Caller caller, Instant now)
    : request_(request), caller_(std::move(caller)), now_(now) {}

Executor::~Executor() = default;

std::size_t Executor::held() const {
  return math_ ? math_->points() * sizeof(decltype(Series::points)::value_type) : 0;
}

std::optional<Answer<Result>> Executor::run(const GetMetricData& request) {
  if (!math_)
    if (auto error = check(request)) return std::unexpected(*std::move(error));
  const auto begin = parse_token(request);
  if (!begin) return refuse(ErrorCode::kInvalidNextToken, "The next token specified is invalid.");
  if (!math_) math_ = std::make_unique<MathRun>(*this, request);
  const auto all_read = math_->read_some();
  if (!all_read) return std::unexpected(all_read.error());
  if (!*all_read) return std::nullopt;
  auto result =
      math_->run(*begin, static_cast<std::size_t>(request.max_datapoints.value_or(kDatapointsMax)));
  math_.reset();
  if (!result) return std::unexpected(std::move(result).error());
  return *std::move(result);
}

}  // namespace stanchion::cloudwatch
