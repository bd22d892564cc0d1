#include "worker/limits.h"

#include <gtest/gtest.h>

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart(seconds(1000));

TEST(RateLimit, WithoutARateThereIsAlwaysRoom) {
  RateLimit rate(0);
  EXPECT_GT(rate.available(kStart), 1'000'000u);
  EXPECT_EQ(rate.next(kStart), std::nullopt);
}

TEST(RateLimit, NoSecondHasMoreThanTheRateAfterTheFirstOne) {
  RateLimit rate(5);
  std::size_t taken = 0;
  for (int ms = 0; ms <= 10'000; ms += 10) {
    const std::size_t now = rate.available(kStart + milliseconds(ms));
    rate.take(now);
    rate.settle(now, now);
    taken += now;
  }
  EXPECT_EQ(taken, 5u + 50u);
}

TEST(RateLimit, ALongPollDoesNotSaveUpTokensBesideThoseItHolds) {
  RateLimit rate(5);
  ASSERT_EQ(rate.available(kStart), 5u);
  rate.take(5);
  EXPECT_EQ(rate.available(kStart + seconds(20)), 0u);
  EXPECT_EQ(rate.next(kStart + seconds(20)), std::nullopt) << "only the end of the poll helps";
  rate.settle(5, 3);
  EXPECT_EQ(rate.available(kStart + seconds(20)), 2u);
}

TEST(RateLimit, SaysWhenTheNextTokenComes) {
  RateLimit rate(0.5);
  ASSERT_EQ(rate.available(kStart), 1u);
  rate.take(1);
  rate.settle(1, 1);
  ASSERT_EQ(rate.available(kStart), 0u);
  EXPECT_EQ(rate.next(kStart), kStart + seconds(2));
  EXPECT_EQ(rate.available(kStart + seconds(2)), 1u);
}

TEST(FailureThrottle, HalvesTheConcurrencyWhileJobsFailAndRestoresItWhenTheyDoNot) {
  FailureThrottle throttle(0.5);
  EXPECT_EQ(throttle.allowed(64), 64u);
  EXPECT_EQ(throttle.pause(), milliseconds(0));
  for (int i = 0; i < 2 * FailureThrottle::kRound; ++i) throttle.record(true);
  EXPECT_EQ(throttle.allowed(64), 16u);
  EXPECT_GT(throttle.pause(), milliseconds(0));
  for (int i = 0; i < 100 * FailureThrottle::kRound; ++i) throttle.record(true);
  EXPECT_EQ(throttle.allowed(64), 1u) << "it always goes on with one";
  for (int i = 0; i < FailureThrottle::kLevelMax * FailureThrottle::kRound; ++i)
    throttle.record(false);
  EXPECT_EQ(throttle.allowed(64), 64u);
  EXPECT_EQ(throttle.pause(), milliseconds(0));
}

TEST(FailureThrottle, AShareBelowTheLimitChangesNothing) {
  FailureThrottle throttle(0.5);
  for (int i = 0; i < 1'000; ++i) throttle.record(i % 10 < 4);
  EXPECT_EQ(throttle.allowed(64), 64u);
}

TEST(Backoff, DoublesWithEveryDeliveryUpToItsLimit) {
  const BackoffOptions options{.base = seconds(2), .max = seconds(60)};
  EXPECT_EQ(backoff_delay(options, 1, 1.0), seconds(2));
  EXPECT_EQ(backoff_delay(options, 3, 1.0), seconds(8));
  EXPECT_EQ(backoff_delay(options, 3, 0.5), seconds(4));
  EXPECT_EQ(backoff_delay(options, 1'000'000, 1.0), seconds(60));
  EXPECT_EQ(backoff_delay(options, 5, 0.0), seconds(0));
}

}  // namespace
}  // namespace stanchion::worker
