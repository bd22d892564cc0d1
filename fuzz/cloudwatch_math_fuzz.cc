// Any text as an expression of metric math, over a history of a few minutes: it must be computed or
// refused, without taking more memory than is allowed; and any bytes as a stored point.
#include "base/check.h"
#include "base/text.h"
#include "cloudwatch/execute.h"
#include "cloudwatch/functions.h"
#include "fuzz/fuzz.h"
#include "history/history.h"
#include "history/open.h"
#include "history/point.h"

namespace stanchion::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr Minute kFirst = 29'000'000;

history::History& sample_history() {
  static const std::unique_ptr<history::History> history = [] {
    auto opened = history::open_history("", begin_of(kFirst), std::size_t{1} << 20);
    CHECK(opened, "a history in memory opens");
    history::Sample sample;
    sample.queue = {"000000000000", "us-east-1", "q"};
    sample.created = begin_of(kFirst);
    for (Minute minute = kFirst; minute < kFirst + 10; ++minute) {
      sample.totals.sent += static_cast<std::uint64_t>(minute % 3);
      sample.totals.sent_bytes += 100 * static_cast<std::uint64_t>(minute % 3);
      CHECK((*opened)->record({minute, minute}, std::vector{sample}), "it is recorded");
    }
    return std::move(*opened);
  }();
  return *history;
}

cloudwatch::MetricDataQuery metric(const std::string& id, const std::string& name) {
  cloudwatch::MetricDataQuery query;
  query.id = id;
  cloudwatch::MetricStat& stat = query.metric_stat.emplace();
  stat.metric.emplace();
  stat.metric->space = "AWS/SQS";
  stat.metric->name = name;
  stat.metric->dimensions.push_back({"QueueName", "q"});
  stat.period = 60;
  stat.stat = "Sum";
  return query;
}

void compute(std::string_view text) {
  cloudwatch::GetMetricData request;
  request.queries = {metric("m1", "NumberOfMessagesSent"), metric("m2", "SentMessageSize")};
  cloudwatch::MetricDataQuery expression;
  expression.id = "e1";
  expression.expression = std::string(text);
  request.queries.push_back(expression);
  request.start = begin_of(kFirst);
  request.end = begin_of(kFirst + 12);
  const cloudwatch::Request call = std::move(request);
  cloudwatch::Executor executor(call, {"000000000000", "us-east-1"}, begin_of(kFirst + 12));
  auto answer = executor.advance(sample_history());
  while (!answer) answer = executor.advance(sample_history());
  const auto& result = *answer;
  if (!result) return CHECK(!result.error().message.empty(), "a refusal says why");
  for (const auto& one : std::get<cloudwatch::GetMetricDataResult>(*result).results) {
    CHECK(one.values.size() == one.timestamps.size(), "each value has a time");
    for (const double value : one.values) CHECK(value - value == 0, "values are finite");
  }
}

void read_point(std::string_view bytes) {
  const auto point = history::decode_point(bytes);
  if (!point) return;
  const auto again = history::decode_point(history::encode(*point));
  CHECK(again && *again == *point, "a point is the same when it is written and read again");
}

}  // namespace

std::vector<std::string> seeds() {
  return {"SUM(METRICS())/4",
          "IF(m1>1 AND m2<=200,m1/FILL(m2,REPEAT),-1)",
          "FILL(METRICS('m'),LINEAR)",
          "CEIL(ABS(RATE(m1))*PERIOD(m1))^2",
          "SORT([m1,m2],AVG,DESC,1)",
          "TIME_SERIES(1.5e3)+DIFF(m1)",
          std::string("\x01\x00\x21\x03\x05\x01\x05\x00\x05\x03", 10)};
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stanchion::fuzz::compute(text);
  stanchion::fuzz::read_point(text);
  return 0;
}
