// How much memory calls take that are answered, though hardly anything larger would be.
//
// The sanitizers have `new` and `delete` of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "cloudwatch/execute.h"
#include "cloudwatch/functions.h"
#include "history/open.h"

namespace {

// Of everything in this program that comes from `new`.
std::atomic<std::size_t> now_used{0}, most_used{0};

void note_more(void* memory) {
  const std::size_t used = now_used += ::malloc_usable_size(memory);
  std::size_t most = most_used;
  while (used > most && !most_used.compare_exchange_weak(most, used)) {
  }
}

void give_back(void* memory) {
  if (memory == nullptr) return;
  now_used -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  note_more(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace stanchion::cloudwatch {
namespace {

constexpr Minute kFirst = 29'000'000 / history::kMinutesADay * history::kMinutesADay;
const Caller kMe{"000000000000", "us-east-1"};
constexpr std::size_t kPointBytes = 16;

class PeakTest : public testing::Test {
 protected:
  static constexpr Minute kMinutes = 1'900;

  PeakTest() {
    auto opened = history::open_history("", begin_of(kFirst), std::size_t{1} << 20);
    EXPECT_TRUE(opened);
    history_ = std::move(*opened);
    history::Sample jobs;
    jobs.queue = {kMe.account, kMe.region, "jobs"};
    jobs.created = begin_of(kFirst);
    for (Minute i = 0; i < kMinutes; ++i) {
      ++jobs.totals.sent;
      EXPECT_TRUE(history_->record({kFirst + i, kFirst + i}, std::vector{jobs}));
    }
  }

  void add_metrics(int count, std::int64_t period = 60) {
    for (int i = 0; i < count; ++i) {
      MetricDataQuery query;
      query.id = "m" + std::to_string(request_.queries.size());
      query.metric_stat.emplace();
      query.metric_stat->metric.emplace();
      query.metric_stat->metric->space = "AWS/SQS";
      query.metric_stat->metric->name = "NumberOfMessagesSent";
      query.metric_stat->metric->dimensions.push_back({"QueueName", "jobs"});
      query.metric_stat->period = period;
      query.metric_stat->stat = "Sum";
      request_.queries.push_back(query);
    }
  }

  void add_expression(const std::string& expression) {
    MetricDataQuery query;
    query.id = "e" + std::to_string(request_.queries.size());
    query.expression = expression;
    request_.queries.push_back(query);
  }

  // Executes the call; what it took at most, in bytes.
  std::size_t peak(bool succeeds) {
    request_.start = begin_of(kFirst + kMinutes - span_);
    request_.end = begin_of(kFirst + kMinutes);
    const Request request = request_;
    const std::size_t before = now_used;
    most_used = before;
    Executor executor(request, kMe, begin_of(kFirst + kMinutes));
    std::optional<Answer<Result>> answer;
    while (!answer) answer = executor.advance(*history_);
    EXPECT_EQ(answer->has_value(), succeeds) << (succeeds ? answer->error().message : "");
    return most_used - before;
  }

  std::unique_ptr<history::History> history_;
  GetMetricData request_;
  Minute span_ = kMinutes;
};

// All that it has read, and the page.
TEST_F(PeakTest, AsManyMetricsAsThereMayBe) {
  add_metrics(500);
  EXPECT_LE(peak(true), 500 * kMinutes * kPointBytes + (std::size_t{4} << 20));
}

TEST_F(PeakTest, MetricsThatAreCopiedAndAddedUp) {
  add_metrics(260);
  add_expression("SUM(METRICS())");
  EXPECT_LE(peak(true), kPointsMax * kPointBytes + (std::size_t{4} << 20));
}

// As many points in time as points.
TEST_F(PeakTest, ASeriesThatIsFilledForMonthsAndAddedUp) {
  add_metrics(1);
  add_expression("FILL(m0, 1)");
  add_expression("SUM([e1])");
  span_ = 330'000;
  EXPECT_LE(peak(true), kPointsMax * kPointBytes + (std::size_t{4} << 20));
}

// What is too much is noticed before or soon after it was made.
TEST_F(PeakTest, WhatIsRefused) {
  add_metrics(1);
  add_expression("FILL(m0, 1)");
  add_expression("SUM([e1])");
  span_ = 495'000;
  EXPECT_LE(peak(false), 2 * kPointsMax * kPointBytes);
  request_.queries.clear();
  add_metrics(499);
  add_expression("[METRICS(), METRICS()]");
  span_ = kMinutes;
  EXPECT_LE(peak(false), 2 * kPointsMax * kPointBytes);
}

}  // namespace
}  // namespace stanchion::cloudwatch
#endif
