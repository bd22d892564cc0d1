#include "base/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace stanchion {
namespace {

using std::chrono::microseconds;

std::size_t bucket_of(microseconds took) {
  Latency latency;
  latency.add(took);
  const LatencyCounts counts = latency.counts();
  EXPECT_EQ(std::accumulate(counts.buckets.begin(), counts.buckets.end(), std::uint64_t{0}), 1U);
  return static_cast<std::size_t>(std::ranges::find(counts.buckets, 1U) - counts.buckets.begin());
}

TEST(Latency, EveryBucketHoldsWhatIsUpToItsBound) {
  static_assert(std::ranges::is_sorted(LatencyCounts::kBounds));
  for (std::size_t i = 0; i < LatencyCounts::kBounds.size(); ++i) {
    const microseconds bound(LatencyCounts::kBounds[i]);
    EXPECT_EQ(bucket_of(bound), i);
    EXPECT_EQ(bucket_of(bound + microseconds(1)), i + 1);
  }
}

TEST(Latency, WhatIsBeyondAllBoundsIsInTheLastBucket) {
  EXPECT_EQ(bucket_of(std::chrono::hours(24)), LatencyCounts::kBounds.size());
}

TEST(Latency, AClockThatWentBackCountsAsNoTime) {
  Latency latency;
  latency.add(microseconds(-5));
  EXPECT_EQ(latency.counts().buckets[0], 1U);
  EXPECT_EQ(latency.counts().micros, 0U);
}

TEST(Latency, SeveralAreAddedUp) {
  Latency one, other;
  one.add(microseconds(10));
  other.add(microseconds(20));
  other.add(microseconds(1'000));
  LatencyCounts sum = one.counts();
  sum += other.counts();
  EXPECT_EQ(sum.micros, 1'030U);
  EXPECT_EQ(sum.buckets[0], 2U);
  EXPECT_EQ(sum.buckets[5], 1U);
}

}  // namespace
}  // namespace stanchion
