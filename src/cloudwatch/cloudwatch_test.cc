// Calls of CloudWatch on a history that is known to the last message.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "cloudwatch/execute.h"
#include "cloudwatch/statistic.h"
#include "history/open.h"

namespace stanchion::cloudwatch {
namespace {

using history::Metric;

constexpr Minute kFirst = 29'000'000 / history::kMinutesADay * history::kMinutesADay;
const Caller kMe{"000000000000", "us-east-1"};

class CloudwatchTest : public testing::Test {
 protected:
  CloudwatchTest() {
    auto opened = history::open_history("", begin_of(kFirst), std::size_t{1} << 20);
    EXPECT_TRUE(opened);
    history_ = std::move(*opened);
    jobs_.queue = {kMe.account, kMe.region, "jobs"};
    jobs_.created = begin_of(kFirst);
  }

  // A minute in which so many messages of 100 bytes were sent, and so many were visible at its end.
  void minute(std::uint64_t sent, std::uint64_t visible) {
    jobs_.totals.sent += sent;
    jobs_.totals.sent_bytes += 100 * sent;
    for (std::uint64_t i = 0; i < sent; ++i) jobs_.sizes.add(100, begin_of(minute_));
    jobs_.gauges.set(Metric::kApproximateNumberOfMessagesVisible, visible);
    ASSERT_TRUE(history_->record({minute_, minute_}, std::vector{jobs_}));
    ++minute_;
  }
  // A minute that nobody saw end.
  void gap() { ++minute_; }

  Answer<Result> execute(const Request& request, const Caller& caller = kMe) {
    Executor executor(request, caller, begin_of(minute_));
    for (turns_ = 1;; ++turns_)
      if (auto answer = executor.advance(*history_)) return *std::move(answer);
  }

  static MetricDataQuery metric(const std::string& id, const std::string& name,
                                const std::string& stat = "Sum", std::int64_t period = 60) {
    MetricDataQuery query;
    query.id = id;
    query.metric_stat.emplace();
    query.metric_stat->metric.emplace();
    query.metric_stat->metric->space = "AWS/SQS";
    query.metric_stat->metric->name = name;
    query.metric_stat->metric->dimensions.push_back({"QueueName", "jobs"});
    query.metric_stat->period = period;
    query.metric_stat->stat = stat;
    return query;
  }

  GetMetricData data(const std::string& expression = "") {
    GetMetricData request;
    request.queries.push_back(metric("sent", "NumberOfMessagesSent"));
    request.queries.push_back(metric("visible", "ApproximateNumberOfMessagesVisible", "Maximum"));
    if (!expression.empty()) {
      for (MetricDataQuery& query : request.queries) query.return_data = false;
      MetricDataQuery query;
      query.id = "e1";
      query.expression = expression;
      request.queries.push_back(query);
    }
    request.start = begin_of(kFirst);
    request.end = begin_of(minute_);
    request.scan_by = "TimestampAscending";
    return request;
  }

  // The values of an expression over `sent` and `visible`, oldest first.
  std::vector<double> values(const std::string& expression) {
    const auto result = execute(data(expression));
    EXPECT_TRUE(result) << result.error().message;
    if (!result) return {};
    const auto& results = std::get<GetMetricDataResult>(*result).results;
    return results.empty() ? std::vector<double>() : results.front().values;
  }
  std::string error(const std::string& expression) {
    const auto result = execute(data(expression));
    return result ? "" : result.error().message;
  }

  GetMetricStatistics statistics(const std::string& name) {
    GetMetricStatistics request;
    request.space = "AWS/SQS";
    request.name = name;
    request.dimensions.push_back({"QueueName", "jobs"});
    request.start = begin_of(kFirst);
    request.end = begin_of(minute_);
    request.period = 60;
    request.statistics = {"Sum"};
    return request;
  }

  std::size_t turns_ = 0;  // Of the last call.
  std::unique_ptr<history::History> history_;
  history::Sample jobs_;
  Minute minute_ = kFirst;
};

using Values = std::vector<double>;

TEST_F(CloudwatchTest, OperatorsComputePointByPoint) {
  minute(1, 10);
  minute(2, 20);
  minute(3, 0);
  EXPECT_EQ(values("sent"), Values({1, 2, 3}));
  EXPECT_EQ(values("sent + visible * 2 - 1"), Values({20, 41, 2}));
  EXPECT_EQ(values("(sent + visible) / 2"), Values({5.5, 11, 1.5}));
  EXPECT_EQ(values("-sent ^ 2"), Values({-1, -4, -9}));
  EXPECT_EQ(values("sent >= 2 && visible > 0"), Values({0, 1, 0}));
  EXPECT_EQ(values("sent == 1 OR visible == 0"), Values({1, 0, 1}));
  EXPECT_EQ(values("sent / visible"), Values({0.1, 0.1})) << "a division by zero is no point";
}

TEST_F(CloudwatchTest, FunctionsThatAutoscalingExamplesUse) {
  minute(1, 10);
  minute(5, 25);
  EXPECT_EQ(values("visible / 4"), Values({2.5, 6.25})) << "the backlog per worker";
  EXPECT_EQ(values("CEIL(visible / 4)"), Values({3, 7}));
  EXPECT_EQ(values("SUM(METRICS())"), Values({11, 30}));
  EXPECT_EQ(values("SUM([sent, visible])"), Values({11, 30}));
  EXPECT_EQ(values("AVG(METRICS('vis'))"), Values({10, 25}));
  EXPECT_EQ(values("MAX(METRICS())"), Values({10, 25}));
  EXPECT_EQ(values("visible - MIN(visible)"), Values({0, 15}));
  EXPECT_EQ(values("IF(visible > 20, visible / sent, 0)"), Values({0, 5}));
  EXPECT_EQ(values("sent / PERIOD(sent)"), Values({1.0 / 60, 5.0 / 60}));
  EXPECT_EQ(values("DIFF(sent)"), Values({4}));
  EXPECT_EQ(values("RATE(sent) * 60"), Values({4}));
  EXPECT_EQ(values("RUNNING_SUM(sent)"), Values({1, 6}));
  EXPECT_EQ(values("ABS(FLOOR(-sent / 2))"), Values({1, 3}));
  EXPECT_EQ(values("TIME_SERIES(SUM(sent))"), Values({6, 6}));
  EXPECT_EQ(values("FIRST(SORT(METRICS(), SUM, DESC))"), Values({10, 25}));
  EXPECT_EQ(values("METRIC_COUNT(METRICS()) * sent"), Values({2, 10}));
}

TEST_F(CloudwatchTest, FillPutsValuesWhereThereAreNone) {
  minute(2, 0);
  gap();
  gap();
  minute(5, 0);
  gap();
  EXPECT_EQ(values("sent"), Values({2, 5}));
  EXPECT_EQ(values("FILL(sent, 0)"), Values({2, 0, 0, 5, 0}));
  EXPECT_EQ(values("FILL(sent, REPEAT)"), Values({2, 2, 2, 5, 5}));
  EXPECT_EQ(values("FILL(sent, LINEAR)"), Values({2, 3, 4, 5}));
  EXPECT_EQ(values("FILL(METRICS('sent'), 1)"), Values({2, 1, 1, 5, 1}));
}

TEST_F(CloudwatchTest, ACallForALotIsExecutedInTurns) {
  constexpr std::size_t kMinutes = 2'000;
  constexpr std::size_t kQueries = 100;
  for (std::size_t i = 0; i < kMinutes; ++i) minute(1, 10);
  GetMetricData request = data();
  EXPECT_TRUE(execute(request));
  EXPECT_EQ(turns_, 1U);
  request.queries.clear();
  for (std::size_t i = 0; i < kQueries; ++i)
    request.queries.push_back(metric("m" + std::to_string(i), "NumberOfMessagesSent", "Sum", 3600));
  MetricDataQuery all;
  all.id = "all";
  all.expression = "SUM(METRICS())";
  request.queries.push_back(all);
  const auto result = execute(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GE(turns_, kQueries * kMinutes / kPointsATurn);
  EXPECT_LE(turns_, 2 * kQueries * kMinutes / kPointsATurn) << "a turn is worth while";
  const auto& results = std::get<GetMetricDataResult>(*result).results;
  ASSERT_EQ(results.size(), kQueries + 1);
  EXPECT_EQ(std::accumulate(results[0].values.begin(), results[0].values.end(), 0.0), kMinutes);
  EXPECT_EQ(std::accumulate(results.back().values.begin(), results.back().values.end(), 0.0),
            kQueries * kMinutes);
}

TEST_F(CloudwatchTest, WhatACallHoldsBetweenItsTurnsIsKnown) {
  for (int i = 0; i < 1'000; ++i) minute(1, 10);
  GetMetricData wanted = data();
  wanted.queries.clear();
  for (int i = 0; i < 50; ++i)
    wanted.queries.push_back(metric("m" + std::to_string(i), "NumberOfMessagesSent"));
  const Request request = wanted;
  Executor executor(request, kMe, begin_of(minute_));
  ASSERT_FALSE(executor.advance(*history_));
  EXPECT_GE(executor.held(), kPointsATurn * 16 * 9 / 10);
  EXPECT_LE(executor.held(), kPointsATurn * 16 * 11 / 10);
}

TEST_F(CloudwatchTest, AWrongExpressionIsRefusedWithItsPlace) {
  minute(1, 1);
  EXPECT_EQ(error("sent +"), "Error in expression 'e1': it ends too early at character 7.");
  EXPECT_EQ(error("e1 + 1"), "Error in expression 'e1': it refers to itself.");
  EXPECT_TRUE(error("m9").contains("m9 is not the id of a query"));
  EXPECT_TRUE(error("FOO(sent)").contains("the function FOO is not supported"));
  EXPECT_TRUE(error("SUM(sent)").contains("it is a number and not a time series"));
  EXPECT_TRUE(error("(sent").contains("')' is missing"));
  EXPECT_TRUE(error("IF(sent)").contains("IF does not take 1 arguments"));
  EXPECT_TRUE(error(std::string(200, '(')).contains("nested too deeply"));
  EXPECT_TRUE(error(std::string(3'000, '1')).contains("longer than"));
}

TEST_F(CloudwatchTest, AShortExpressionCannotFillTheMemory) {
  minute(1, 1);
  GetMetricData request = data("FILL(sent, 0)");
  request.start = Instant();
  const auto result = execute(request);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().message.contains("more than 1000000 points"));
}

TEST_F(CloudwatchTest, PagesHaveAllValuesOnce) {
  for (int i = 0; i < 10; ++i) minute(static_cast<std::uint64_t>(i), 1);
  GetMetricData request = data();
  request.max_datapoints = 7;
  std::vector<double> sent;
  std::size_t visible = 0;
  std::size_t pages = 0;
  do {
    auto result = execute(request);
    ASSERT_TRUE(result) << result.error().message;
    auto page = std::get<GetMetricDataResult>(*result);
    std::size_t count = 0;
    for (const MetricDataResult& one : page.results) {
      count += one.values.size();
      if (one.id == "sent") sent.insert(sent.end(), one.values.begin(), one.values.end());
      if (one.id == "visible") visible += one.values.size();
    }
    EXPECT_LE(count, 7U);
    request.next_token = page.next_token;
    ++pages;
  } while (request.next_token);
  EXPECT_EQ(pages, 3U);
  EXPECT_EQ(sent, Values({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(visible, 10U);
  request.next_token = "bm9uc2Vuc2U=";
  EXPECT_EQ(execute(request).error().code, ErrorCode::kInvalidNextToken);
  request.next_token.reset();
  const auto first = execute(request);
  ASSERT_TRUE(first);
  request.next_token = std::get<GetMetricDataResult>(*first).next_token;
  EXPECT_TRUE(execute(request));
  MetricStat& stat = *request.queries[0].metric_stat;
  stat.metric->dimensions[0].value = "another";
  EXPECT_FALSE(execute(request)) << "a token is for one request only";
  stat.metric->dimensions[0].value = "jobs";
  stat.period = 300;
  EXPECT_FALSE(execute(request));
}

TEST_F(CloudwatchTest, StatisticsOfAPeriod) {
  minute(1, 10);
  minute(5, 20);
  GetMetricStatistics request = statistics("NumberOfMessagesSent");
  request.period = 300;
  request.statistics = {"SampleCount", "Average", "Sum", "Minimum", "Maximum"};
  const auto result = execute(request);
  ASSERT_TRUE(result);
  const auto& points = std::get<GetMetricStatisticsResult>(*result).datapoints;
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].sum, 6);
  EXPECT_EQ(points[0].average, 3);
  EXPECT_EQ(points[0].minimum, 1);
  EXPECT_EQ(points[0].maximum, 5);
  EXPECT_EQ(points[0].sample_count, 2);
  EXPECT_EQ(points[0].unit, "Count");
}

TEST_F(CloudwatchTest, PercentilesOfSizes) {
  minute(100, 0);
  for (int i = 0; i < 5; ++i) jobs_.sizes.add(40'000, begin_of(minute_));
  jobs_.totals.sent += 5;
  jobs_.totals.sent_bytes += 200'000;
  minute(95, 0);
  GetMetricStatistics request = statistics("SentMessageSize");
  request.statistics.clear();
  request.extended_statistics = {"p50", "p95", "p99.5"};
  request.period = 300;
  const auto result = execute(request);
  ASSERT_TRUE(result) << result.error().message;
  const auto& points = std::get<GetMetricStatisticsResult>(*result).datapoints;
  ASSERT_EQ(points.size(), 1U);
  EXPECT_NEAR(points[0].extended[0].second, 100, 15);
  EXPECT_NEAR(points[0].extended[1].second, 100, 15);
  EXPECT_NEAR(points[0].extended[2].second, 40'000, 5'000);
  EXPECT_EQ(points[0].unit, "Bytes");
}

TEST_F(CloudwatchTest, WhatIsAskedForWronglyIsRefusedAsOnAws) {
  minute(1, 1);
  const auto refused = [&](auto change) {
    GetMetricStatistics request = statistics("NumberOfMessagesSent");
    change(request);
    const auto result = execute(request);
    EXPECT_FALSE(result);
    return result ? ErrorCode::kInternalFailure : result.error().code;
  };
  using Code = ErrorCode;
  using Stats = GetMetricStatistics;
  EXPECT_EQ(refused([](Stats& r) { r.name.reset(); }), Code::kMissingParameter);
  EXPECT_EQ(refused([](Stats& r) { r.period = 61; }), Code::kInvalidParameterValue);
  EXPECT_EQ(refused([](Stats& r) { r.statistics = {"Median"}; }), Code::kInvalidParameterValue);
  EXPECT_EQ(refused([](Stats& r) { r.statistics.clear(); }), Code::kInvalidParameterCombination);
  EXPECT_EQ(refused([](Stats& r) { r.end = r.start; }), Code::kInvalidParameterCombination);
  EXPECT_EQ(refused([](Stats& r) { r.end = *r.start + std::chrono::hours(25); }),
            Code::kInvalidParameterCombination);
}

TEST_F(CloudwatchTest, WhatIsNotHereHasNoValues) {
  minute(1, 1);
  const auto empty = [&](auto change) {
    GetMetricStatistics request = statistics("NumberOfMessagesSent");
    change(request);
    const auto result = execute(request);
    return result && std::get<GetMetricStatisticsResult>(*result).datapoints.empty();
  };
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.space = "AWS/EC2"; }));
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.name = "CPUUtilization"; }));
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.dimensions[0].value = "other"; }));
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.dimensions.clear(); }));
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.unit = "Bytes"; }));
  EXPECT_TRUE(empty([](GetMetricStatistics& r) { r.period = 30; }));
  EXPECT_FALSE(empty([](GetMetricStatistics&) {}));
  const auto other = execute(statistics("NumberOfMessagesSent"), {"111111111111", "us-east-1"});
  EXPECT_TRUE(std::get<GetMetricStatisticsResult>(*other).datapoints.empty());
}

TEST_F(CloudwatchTest, ListsMetricsInPages) {
  for (int i = 0; i < 100; ++i) {
    history::Sample sample = jobs_;
    sample.queue.name = "queue-" + std::to_string(i);
    sample.totals.sent = 1;
    sample.totals.sent_bytes = 1;
    ASSERT_TRUE(history_->record({minute_, minute_}, std::vector{sample}));
  }
  ListMetrics request;
  request.space = "AWS/SQS";
  std::set<std::pair<std::string, std::string>> seen;
  std::size_t pages = 0;
  do {
    const auto result = execute(request);
    ASSERT_TRUE(result) << result.error().message;
    const auto& page = std::get<ListMetricsResult>(*result);
    for (const ListedMetric& metric : page.metrics)
      EXPECT_TRUE(seen.emplace(metric.queue, metric.name).second) << metric.queue;
    request.next_token = page.next_token;
    ++pages;
  } while (request.next_token);
  EXPECT_EQ(pages, 2U);
  EXPECT_EQ(seen.size(), 900U) << "nine of each";
  request.name = "SentMessageSize";
  request.dimensions = {{"QueueName", "queue-7"}};
  EXPECT_EQ(std::get<ListMetricsResult>(*execute(request)).metrics.size(), 1U);
  request.dimensions = {{"Region", std::nullopt}};
  EXPECT_TRUE(std::get<ListMetricsResult>(*execute(request)).metrics.empty());
}

TEST_F(CloudwatchTest, QueriesAreChecked) {
  minute(1, 1);
  const auto refused = [&](auto change) {
    GetMetricData request = data();
    change(request);
    const auto result = execute(request);
    return result ? std::string() : result.error().message;
  };
  EXPECT_TRUE(refused([](GetMetricData& r) { r.queries[0].id = "Sent"; }).contains("pattern"));
  EXPECT_TRUE(refused([](GetMetricData& r) { r.queries[0].id = "visible"; }).contains("unique"));
  EXPECT_TRUE(refused([](GetMetricData& r) { r.queries[0].expression = "1"; }).contains("either"));
  EXPECT_TRUE(refused([](GetMetricData& r) { r.queries.clear(); }).contains("required"));
  EXPECT_TRUE(refused([](GetMetricData& r) { r.max_datapoints = 0; }).contains("MaxDatapoints"));
  EXPECT_TRUE(refused([](GetMetricData& r) { r.scan_by = "Up"; }).contains("ScanBy"));
  EXPECT_TRUE(
      refused([](GetMetricData& r) { r.queries[0].metric_stat->stat = "tm90"; }).contains("Stat"));
  EXPECT_TRUE(refused([](GetMetricData& r) {
                for (auto& query : r.queries) query.return_data = false;
              }).contains("ReturnData"));
}

}  // namespace
}  // namespace stanchion::cloudwatch
