#include "worker/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kTick = 10;  // Seconds between two figures of a curve, and between two looks.
constexpr double kPerWorker = 20;

// Messages a second, every ten seconds, of services with such loads.
const std::vector<double> kSteady(180, 95);
const std::vector<double> kIdle(180, 0);

std::vector<double> spike() {
  std::vector<double> curve(180, 20);
  const double peak[] = {90, 310, 640, 710, 690, 705, 660, 420, 180, 60};
  std::copy(std::begin(peak), std::end(peak), curve.begin() + 30);
  return curve;
}
std::vector<double> ramp() {
  std::vector<double> curve;
  for (int i = 0; i < 180; ++i) curve.push_back(10 + 3.5 * std::min(i, 120));
  return curve;
}
std::vector<double> sawtooth() {
  std::vector<double> curve;
  for (int i = 0; i < 180; ++i) curve.push_back(60 + 12 * (i % 12));
  return curve;
}

struct Played {
  std::vector<std::size_t> workers;
  std::vector<double> waiting;
  int grown = 0;
  int shrunk = 0;
};

// A queue in front of workers of which each completes kPerWorker a second; new ones begin two looks
// after they were advised.
Played play(const std::vector<double>& curve, ScalingOptions options) {
  options.per_worker = kPerWorker;
  ScalingAdvisor advisor(options);
  Played run;
  std::vector<std::size_t> advised(2, options.workers_min);
  double waiting = 0;
  double completed = 0;
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const auto running = static_cast<double>(std::min(advised[i], advised[i + 1]));
    const double done = std::min(waiting + curve[i] * kTick, running * kPerWorker * kTick);
    waiting += curve[i] * kTick - done;
    completed += done;
    const LoadFigures figures{.at = seconds(static_cast<int>(i) * 10),
                              .visible = static_cast<std::uint64_t>(waiting),
                              .completed = static_cast<std::uint64_t>(completed)};
    const std::size_t now = advised.back();
    const std::size_t next = advisor.advise(figures, now).workers;
    run.grown += next > now ? 1 : 0;
    run.shrunk += next < now ? 1 : 0;
    advised.push_back(next);
    run.workers.push_back(next);
    run.waiting.push_back(waiting);
  }
  return run;
}

TEST(ScalingAdvisor, ASteadyLoadFindsItsNumberAndKeepsIt) {
  const Played run = play(kSteady, {});
  // 95/s at 80 % of 20/s each are 6; the one more for what waited at first is not worth a change.
  EXPECT_GE(run.workers.back(), 6u);
  EXPECT_LE(run.workers.back(), 7u);
  EXPECT_LE(run.grown, 6);
  EXPECT_LE(run.shrunk, 1);
  EXPECT_EQ(run.waiting.back(), 0);
  for (std::size_t i = 60; i < run.workers.size(); ++i)
    EXPECT_EQ(run.workers[i], run.workers.back()) << i;
}

TEST(ScalingAdvisor, AnIdleQueueHasTheLeastWorkers) {
  const Played run = play(kIdle, {.workers_min = 2});
  EXPECT_EQ(*std::max_element(run.workers.begin(), run.workers.end()), 2u);
  EXPECT_EQ(run.grown + run.shrunk, 0);
}

TEST(ScalingAdvisor, ASpikeIsMetQuicklyAndLetGoSlowly) {
  const Played run = play(spike(), {.workers_max = 50});
  const std::size_t most = *std::max_element(run.workers.begin(), run.workers.end());
  EXPECT_GE(most, 30u);
  EXPECT_LE(most, 50u);
  // Worked off within drain_within of the end of the peak, and given up later.
  EXPECT_EQ(run.waiting[40 + 30], 0);
  EXPECT_EQ(run.workers.back(), 2u);
  EXPECT_LE(run.shrunk, 12);
  for (std::size_t i = 0; i < 30; ++i) EXPECT_LE(run.workers[i], 2u) << i;
}

TEST(ScalingAdvisor, ARampIsFollowedWithoutALargeBacklog) {
  const Played run = play(ramp(), {});
  EXPECT_EQ(run.shrunk, 0);
  // 430/s at 80 % of 20/s each.
  EXPECT_NEAR(static_cast<double>(run.workers.back()), 27, 1);
  // Less than a minute of the load at its end.
  EXPECT_LT(*std::max_element(run.waiting.begin(), run.waiting.end()), 430 * 60);
  EXPECT_EQ(run.waiting.back(), 0);
}

TEST(ScalingAdvisor, ASawtoothDoesNotMakeItSwing) {
  const Played run = play(sawtooth(), {});
  EXPECT_LE(run.shrunk, 2) << "the teeth are two minutes long, less than shrink_after";
  std::vector<std::size_t> later(run.workers.begin() + 60, run.workers.end());
  const auto [least, most] = std::minmax_element(later.begin(), later.end());
  EXPECT_LE(*most - *least, 2u);
}

TEST(ScalingAdvisor, StaysWithinItsBounds) {
  const Played run = play(std::vector<double>(100, 100'000), {.workers_min = 3, .workers_max = 7});
  EXPECT_EQ(run.workers.front(), 6u) << "at most twice as many by one piece of advice";
  EXPECT_EQ(run.workers.back(), 7u);
  ScalingAdvisor advisor({.workers_min = 3, .workers_max = 7});
  EXPECT_EQ(advisor.advise({}, 0).workers, 3u);
  EXPECT_EQ(advisor.advise({.at = seconds(10)}, 90).workers, 7u);
}

TEST(ScalingAdvisor, SaysWhy) {
  ScalingAdvisor advisor({.per_worker = 10, .drain_within = seconds(10)});
  (void)advisor.advise({}, 1);
  const ScalingAdvice advice = advisor.advise({.at = seconds(10), .visible = 1'000}, 1);
  EXPECT_EQ(advice.workers, 2u);
  EXPECT_EQ(advice.reason, "grows: 100.0 messages/s arrive, 1000 wait");
}

TEST(LoadWatch, SaysThatMoreArriveOnlyIfTheBacklogGrowsForSomeTime) {
  LoadWatch watch({.growing_looks = 3, .growth_min = 100});
  const auto look = [&](std::uint64_t visible) { return watch.look({.visible = visible}).any(); };
  EXPECT_FALSE(look(1'000)) << "a backlog that was there before is no arrival";
  EXPECT_FALSE(look(1'100));
  EXPECT_FALSE(look(1'200));
  EXPECT_TRUE(look(1'300));
  EXPECT_TRUE(look(1'301));
  EXPECT_FALSE(look(1'200));
  EXPECT_FALSE(look(1'201));
  EXPECT_FALSE(look(1'202));
  EXPECT_FALSE(look(1'203)) << "growth that is no more than noise";
}

TEST(LoadWatch, KnowsTheLimitOfInFlightAndTheAge) {
  LoadWatch watch({.age_max = seconds(60)});
  EXPECT_FALSE(watch.look({.in_flight = 95'999}).in_flight_near_limit);
  EXPECT_TRUE(watch.look({.in_flight = 96'000}).in_flight_near_limit);
  EXPECT_FALSE(watch.look({.oldest = seconds(60)}).too_old);
  EXPECT_TRUE(watch.look({.oldest = milliseconds(60'001)}).too_old);
}

}  // namespace
}  // namespace stanchion::worker
