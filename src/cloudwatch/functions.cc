#include "cloudwatch/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>

namespace stanchion::cloudwatch {
namespace {

std::unexpected<Error> wrong(std::string what) {
  return refuse(ErrorCode::kValidationError, std::move(what));
}

std::unexpected<Error> too_many() {
  return wrong(fmt::format(
      "it makes more than {} points: ask for a shorter range or longer periods", kPointsMax));
}

// A result that is no number, as of a division by zero, is no point.
void keep(Series& series, Instant at, double value) {
  if (std::isfinite(value)) series.points.emplace_back(at, value);
}

template <class Each>
Series map_points(const Series& from, const Each& each) {
  Series result{from.label, from.period, {}};
  result.points.reserve(from.points.size());
  for (const auto& [at, value] : from.points) keep(result, at, each(at, value));
  return result;
}

// Of a number, a series, or each series of a list.
template <class Each>
Value map_value(const Value& value, const Each& each) {
  if (const auto* number = std::get_if<double>(&value)) return each(Instant(), *number);
  if (const auto* series = std::get_if<Series>(&value)) return map_points(*series, each);
  Array result;
  for (const Series& series : std::get<Array>(value)) result.push_back(map_points(series, each));
  return result;
}

double compute(Operator op, double a, double b) {
  switch (op) {
    case Operator::kOr:
      return a != 0 || b != 0 ? 1 : 0;
    case Operator::kAnd:
      return a != 0 && b != 0 ? 1 : 0;
    case Operator::kEqual:
      return a == b ? 1 : 0;
    case Operator::kUnequal:
      return a != b ? 1 : 0;
    case Operator::kLess:
      return a < b ? 1 : 0;
    case Operator::kLessOrEqual:
      return a <= b ? 1 : 0;
    case Operator::kGreater:
      return a > b ? 1 : 0;
    case Operator::kGreaterOrEqual:
      return a >= b ? 1 : 0;
    case Operator::kPlus:
      return a + b;
    case Operator::kMinus:
      return a - b;
    case Operator::kTimes:
      return a * b;
    case Operator::kDividedBy:
      return a / b;
    case Operator::kPower:
      return std::pow(a, b);
  }
  return 0;
}

// Where both have a point.
Series combine(Operator op, const Series& left, const Series& right) {
  Series result{left.label, std::max(left.period, right.period), {}};
  result.points.reserve(std::min(left.points.size(), right.points.size()));
  auto b = right.points.begin();
  for (const auto& [at, value] : left.points) {
    while (b != right.points.end() && b->first < at) ++b;
    if (b != right.points.end() && b->first == at) keep(result, at, compute(op, value, b->second));
  }
  return result;
}

// The functions of values at one time, or of one series.
using Fold = double (*)(const std::vector<double>&);

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}
double mean_of(const std::vector<double>& values) {
  return sum_of(values) / static_cast<double>(values.size());
}
double min_of(const std::vector<double>& values) {
  return values.empty() ? NAN : *std::ranges::min_element(values);
}
double max_of(const std::vector<double>& values) {
  return values.empty() ? NAN : *std::ranges::max_element(values);
}
double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}
double count_of(const std::vector<double>& values) {
  return static_cast<double>(values.size());
}

struct NamedFold {
  std::string_view name;
  Fold fold;
};
constexpr std::array kFolds{
    NamedFold{"SUM", sum_of},          NamedFold{"AVG", mean_of},
    NamedFold{"MIN", min_of},          NamedFold{"MAX", max_of},
    NamedFold{"STDDEV", deviation_of}, NamedFold{"DATAPOINT_COUNT", count_of}};

// Each series is read from its beginning to its end, all of them at the same pace: this takes no memory
// but for the result.
Series fold_at_each_time(Fold by, const Array& array) {
  Series result;
  using Place = std::pair<Instant, std::size_t>;  // The time of a series' next point.
  std::vector<std::size_t> next(array.size());
  std::priority_queue<Place, std::vector<Place>, std::greater<>> places;
  const auto place = [&](std::size_t i) {
    if (next[i] < array[i].points.size()) places.emplace(array[i].points[next[i]].first, i);
  };
  std::size_t longest = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    result.period = std::max(result.period, array[i].period);
    longest = std::max(longest, array[i].points.size());
    place(i);
  }
  result.points.reserve(longest);
  std::vector<double> values;
  while (!places.empty()) {
    const Instant at = places.top().first;
    values.clear();
    while (!places.empty() && places.top().first == at) {
      const std::size_t i = places.top().second;
      places.pop();
      values.push_back(array[i].points[next[i]++].second);
      place(i);
    }
    keep(result, at, by(values));
  }
  return result;
}

// Of one series, a number; of several, a series.
Value fold(Fold by, const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return by({*number});
  if (const auto* series = std::get_if<Series>(&value)) {
    std::vector<double> values;
    values.reserve(series->points.size());
    for (const auto& [at, one] : series->points) values.push_back(one);
    return by(values);
  }
  return fold_at_each_time(by, std::get<Array>(value));
}

// Functions of each value alone, or of its time.
using Each = double (*)(Instant, double);

template <class Of>
double calendar(Instant at, Of of) {
  const std::chrono::sys_seconds seconds{std::chrono::seconds(to_seconds(at))};
  return of(seconds);
}
double epoch_of(Instant at, double) {
  return static_cast<double>(to_seconds(at));
}
double minute_of_hour(Instant at, double) {
  return static_cast<double>(to_seconds(at) / 60 % 60);
}
double hour_of_day(Instant at, double) {
  return static_cast<double>(to_seconds(at) / 3'600 % 24);
}
double day_of_week(Instant at, double) {
  return calendar(at, [](std::chrono::sys_seconds s) {
    const std::chrono::weekday day{std::chrono::floor<std::chrono::days>(s)};
    return static_cast<double>(day.iso_encoding());
  });
}
std::chrono::year_month_day date(std::chrono::sys_seconds s) {
  return std::chrono::year_month_day{std::chrono::floor<std::chrono::days>(s)};
}
double day_of_month(Instant at, double) {
  return calendar(at, [](auto s) { return static_cast<double>(unsigned{date(s).day()}); });
}
double month_of(Instant at, double) {
  return calendar(at, [](auto s) { return static_cast<double>(unsigned{date(s).month()}); });
}
double year_of(Instant at, double) {
  return calendar(at, [](auto s) { return static_cast<double>(int{date(s).year()}); });
}

struct NamedEach {
  std::string_view name;
  Each each;
  bool of_time = false;  // Numbers have no time.
};
constexpr std::array kEach{
    NamedEach{"ABS", [](Instant, double v) { return std::abs(v); }},
    NamedEach{"CEIL", [](Instant, double v) { return std::ceil(v); }},
    NamedEach{"FLOOR", [](Instant, double v) { return std::floor(v); }},
    NamedEach{"LOG", [](Instant, double v) { return std::log(v); }},
    NamedEach{"LOG10", [](Instant, double v) { return std::log10(v); }},
    NamedEach{"EPOCH", epoch_of, true},
    NamedEach{"MINUTE", minute_of_hour, true},
    NamedEach{"HOUR", hour_of_day, true},
    NamedEach{"DAY", day_of_week, true},
    NamedEach{"DATE", day_of_month, true},
    NamedEach{"MONTH", month_of, true},
    NamedEach{"YEAR", year_of, true},
};

// Functions of a point and the one before it.
using Step = double (*)(double seconds, double difference);
struct NamedStep {
  std::string_view name;
  Step step;
};
constexpr std::array kSteps{
    NamedStep{"DIFF", [](double, double difference) { return difference; }},
    NamedStep{"DIFF_TIME", [](double seconds, double) { return seconds; }},
    NamedStep{"RATE", [](double seconds, double difference) { return difference / seconds; }},
};

template <class Each>
Answer<Value> for_each_series(std::string_view name, const Value& value, const Each& each) {
  if (const auto* series = std::get_if<Series>(&value)) return each(*series);
  const auto* array = std::get_if<Array>(&value);
  if (array == nullptr) return wrong(fmt::format("{} needs a time series", name));
  Array result;
  for (const Series& series : *array) result.push_back(each(series));
  return result;
}

Series step(const Series& series, Step by) {
  Series result{series.label, series.period, {}};
  result.points.reserve(series.points.size());
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    const auto& [before, old] = series.points[i - 1];
    const auto& [at, value] = series.points[i];
    keep(result, at, by(static_cast<double>((at - before).count()) / 1'000, value - old));
  }
  return result;
}

Series running_sum(const Series& series) {
  double sum = 0;
  return map_points(series, [&](Instant, double value) { return sum += value; });
}

// What FILL puts where there is no point.
class Filling {
 public:
  explicit Filling(const Argument& with) {
    repeat_ = with.word == "REPEAT";
    linear_ = with.word == "LINEAR";
    if (const auto* number = std::get_if<double>(&with.value)) number_ = *number;
    if (const auto* series = std::get_if<Series>(&with.value)) series_ = series;
  }

  Series of(const Series& series, const Timeline& timeline) const {
    Series result{series.label, series.period, {}};
    const std::size_t steps = timeline.steps(series.period);
    result.points.reserve(steps);
    auto next = series.points.begin();
    for (std::size_t i = 0; i < steps; ++i) {
      const Instant at =
          timeline.first(series.period) + series.period * static_cast<std::int64_t>(i);
      while (next != series.points.end() && next->first < at) ++next;
      if (next != series.points.end() && next->first == at)
        keep(result, at, next->second);
      else if (const auto value = missing(series, next, at))
        keep(result, at, *value);
    }
    return result;
  }

 private:
  using Next = std::vector<std::pair<Instant, double>>::const_iterator;

  std::optional<double> missing(const Series& series, Next next, Instant at) const {
    const bool has_before = next != series.points.begin();
    if (repeat_) return has_before ? std::optional(std::prev(next)->second) : std::nullopt;
    if (linear_) {
      if (!has_before || next == series.points.end()) return std::nullopt;
      const auto& [before, old] = *std::prev(next);
      const double share = static_cast<double>((at - before).count()) /
                           static_cast<double>((next->first - before).count());
      return old + (next->second - old) * share;
    }
    if (series_ == nullptr) return number_;
    const auto found =
        std::ranges::lower_bound(series_->points, at, {}, &std::pair<Instant, double>::first);
    if (found == series_->points.end() || found->first != at) return std::nullopt;
    return found->second;
  }

  bool repeat_ = false;
  bool linear_ = false;
  double number_ = 0;
  const Series* series_ = nullptr;
};

Answer<Value> fill(const std::vector<Argument>& arguments, const Timeline& timeline) {
  const Argument& with = arguments[1];
  if (!with.word.empty() && with.word != "REPEAT" && with.word != "LINEAR")
    return wrong("FILL takes a number, a time series, REPEAT or LINEAR");
  if (std::holds_alternative<Array>(with.value))
    return wrong("FILL takes one time series to fill with");
  std::size_t steps = 0;
  if (const auto* series = std::get_if<Series>(&arguments[0].value))
    steps = timeline.steps(series->period);
  if (const auto* array = std::get_if<Array>(&arguments[0].value))
    for (const Series& series : *array) steps += timeline.steps(series.period);
  if (steps > kPointsMax) return too_many();
  const Filling filling(with);
  return for_each_series("FILL", arguments[0].value,
                         [&](const Series& series) { return filling.of(series, timeline); });
}

Answer<Value> choose(const std::vector<Argument>& arguments) {
  const Value& condition = arguments[0].value;
  const Value& yes = arguments[1].value;
  const Value& no = arguments[2].value;
  for (const Argument& argument : arguments)
    if (std::holds_alternative<Array>(argument.value))
      return wrong("IF takes numbers and single time series");
  if (const auto* number = std::get_if<double>(&condition)) return *number != 0 ? yes : no;
  const auto at_time = [](const Value& value, Instant at) -> std::optional<double> {
    if (const auto* number = std::get_if<double>(&value)) return *number;
    const auto& points = std::get<Series>(value).points;
    const auto found = std::ranges::lower_bound(points, at, {}, &std::pair<Instant, double>::first);
    if (found == points.end() || found->first != at) return std::nullopt;
    return found->second;
  };
  const auto& series = std::get<Series>(condition);
  Series result{series.label, series.period, {}};
  result.points.reserve(series.points.size());
  for (const auto& [at, value] : series.points)
    if (const auto chosen = at_time(value != 0 ? yes : no, at)) keep(result, at, *chosen);
  return result;
}

Answer<Value> time_series(const Value& value, const Timeline& timeline) {
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr) return wrong("TIME_SERIES takes a number");
  Series result{{}, timeline.period, {}};
  const std::size_t steps = timeline.steps(result.period);
  if (steps > kPointsMax) return too_many();
  result.points.reserve(steps);
  for (std::size_t i = 0; i < steps; ++i)
    keep(result, timeline.first(result.period) + result.period * static_cast<std::int64_t>(i),
         *number);
  return result;
}

Answer<Value> slice(const std::vector<Argument>& arguments) {
  const auto* array = std::get_if<Array>(&arguments[0].value);
  const auto* begin = std::get_if<double>(&arguments[1].value);
  const auto* end = arguments.size() > 2 ? std::get_if<double>(&arguments[2].value) : nullptr;
  if (array == nullptr || begin == nullptr) return wrong("SLICE takes an array and numbers");
  const auto place = [&](double number) {
    const auto size = static_cast<double>(array->size());
    return static_cast<std::size_t>(std::clamp(std::trunc(number), 0.0, size));
  };
  const std::size_t first = place(*begin);
  const std::size_t last = arguments.size() > 2 && end != nullptr ? place(*end) : array->size();
  if (first >= last) return Array();
  if (arguments.size() == 2) return (*array)[first];
  return Array(array->begin() + static_cast<std::ptrdiff_t>(first),
               array->begin() + static_cast<std::ptrdiff_t>(last));
}

// SORT(METRICS(), SUM, DESC, 10)
Answer<Value> sort_array(std::vector<Argument>& arguments) {
  auto* array = std::get_if<Array>(&arguments[0].value);
  const auto by = std::ranges::find(kFolds, arguments[1].word, &NamedFold::name);
  const bool ascending = arguments[2].word == "ASC";
  if (array == nullptr || by == kFolds.end() || (!ascending && arguments[2].word != "DESC"))
    return wrong("SORT takes an array, one of SUM, AVG, MIN and MAX, and ASC or DESC");
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < array->size(); ++i)
    order.emplace_back(std::get<double>(fold(by->fold, (*array)[i])), i);
  std::ranges::stable_sort(order, [&](const auto& a, const auto& b) {
    return ascending ? a.first < b.first : b.first < a.first;
  });
  if (arguments.size() > 3) {
    const auto* most = std::get_if<double>(&arguments[3].value);
    if (most == nullptr || *most < 1) return wrong("SORT takes a number of series of at least 1");
    const double fewer = std::min(*most, static_cast<double>(order.size()));
    order.resize(static_cast<std::size_t>(fewer));
  }
  Array sorted;
  for (const auto& [key, index] : order) sorted.push_back(std::move((*array)[index]));
  return sorted;
}

Answer<Value> of_array(std::string_view name, const Value& value) {
  const auto* array = std::get_if<Array>(&value);
  if (array == nullptr) return wrong(fmt::format("{} takes an array", name));
  if (name == "METRIC_COUNT") return static_cast<double>(array->size());
  if (name == "REMOVE_EMPTY") {
    Array rest;
    for (const Series& series : *array)
      if (!series.points.empty()) rest.push_back(series);
    return rest;
  }
  if (array->empty()) return wrong(fmt::format("{} of an array without time series", name));
  return name == "FIRST" ? array->front() : array->back();
}

struct Arity {
  std::string_view name;
  std::size_t least;
  std::size_t most;
};
constexpr std::array kArities{Arity{"FILL", 2, 2}, Arity{"IF", 3, 3}, Arity{"SLICE", 2, 3},
                              Arity{"SORT", 3, 4}};

Answer<Value> of_one(std::string_view name, const Value& value, const Timeline& timeline) {
  const auto folding = std::ranges::find(kFolds, name, &NamedFold::name);
  if (folding != kFolds.end()) return fold(folding->fold, value);
  const auto each = std::ranges::find(kEach, name, &NamedEach::name);
  if (each != kEach.end()) {
    if (each->of_time && std::holds_alternative<double>(value))
      return wrong(fmt::format("{} needs a time series", name));
    return map_value(value, each->each);
  }
  const auto stepping = std::ranges::find(kSteps, name, &NamedStep::name);
  if (stepping != kSteps.end())
    return for_each_series(name, value, [&](const Series& s) { return step(s, stepping->step); });
  if (name == "RUNNING_SUM") return for_each_series(name, value, running_sum);
  if (name == "TIME_SERIES") return time_series(value, timeline);
  if (name == "PERIOD") {
    const auto* series = std::get_if<Series>(&value);
    if (series == nullptr) return wrong("PERIOD takes a time series");
    return static_cast<double>(series->period.count()) / 1'000;
  }
  if (name == "FIRST" || name == "LAST" || name == "METRIC_COUNT" || name == "REMOVE_EMPTY")
    return of_array(name, value);
  return wrong(fmt::format("the function {} is not supported", name));
}

}  // namespace

std::size_t points_of(const Value& value) {
  if (const auto* series = std::get_if<Series>(&value)) return series->points.size();
  std::size_t sum = 0;
  if (const auto* array = std::get_if<Array>(&value))
    for (const Series& series : *array) sum += series.points.size();
  return sum;
}

Answer<Value> negate(Value value) {
  return map_value(value, [](Instant, double v) { return -v; });
}

Answer<Value> apply_operator(Operator op, const Value& left, const Value& right) {
  if (const auto* number = std::get_if<double>(&right))
    return map_value(left, [&](Instant, double v) { return compute(op, v, *number); });
  if (const auto* number = std::get_if<double>(&left))
    return map_value(right, [&](Instant, double v) { return compute(op, *number, v); });
  const auto* a = std::get_if<Series>(&left);
  const auto* b = std::get_if<Series>(&right);
  if (a != nullptr && b != nullptr) return combine(op, *a, *b);
  if (a == nullptr && b == nullptr)
    return wrong("an operator takes at most one array: use SUM, AVG, MIN or MAX of the others");
  Array result;
  for (const Series& series : std::get<Array>(a == nullptr ? left : right))
    result.push_back(a == nullptr ? combine(op, series, *b) : combine(op, *a, series));
  return result;
}

bool is_word(std::string_view name) {
  return name == "REPEAT" || name == "LINEAR" || name == "ASC" || name == "DESC" ||
         std::ranges::find(kFolds, name, &NamedFold::name) != kFolds.end();
}

Answer<Value> call_function(std::string_view name, std::vector<Argument> arguments,
                            const Timeline& timeline) {
  const auto arity = std::ranges::find(kArities, name, &Arity::name);
  const std::size_t least = arity == kArities.end() ? 1 : arity->least;
  const std::size_t most = arity == kArities.end() ? 1 : arity->most;
  if (arguments.size() < least || arguments.size() > most)
    return wrong(fmt::format("{} does not take {} arguments", name, arguments.size()));
  if (name == "SORT") return sort_array(arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].word.empty() && !(name == "FILL" && i == 1))
      return wrong(fmt::format("{} is not a metric of this request", arguments[i].word));
  if (name == "FILL") return fill(arguments, timeline);
  if (name == "IF") return choose(arguments);
  if (name == "SLICE") return slice(arguments);
  return of_one(name, arguments[0].value, timeline);
}

}  // namespace stanchion::cloudwatch
