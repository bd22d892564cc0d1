#include "model/size_distribution.h"

#include <gtest/gtest.h>

namespace stanchion {
namespace {

using namespace std::chrono_literals;

TEST(SizeDistribution, EverySizeIsInTheBucketThatHoldsIt) {
  for (std::uint64_t size = 0; size < 1 << 21; size += size / 100 + 1) {
    const std::uint32_t index = SizeDistribution::bucket_of(size);
    ASSERT_LT(index, SizeDistribution::kBuckets);
    EXPECT_LE(SizeDistribution::lower_end(index), size);
    EXPECT_GT(SizeDistribution::lower_end(index + 1), size);
    EXPECT_LE(SizeDistribution::lower_end(index + 1) * 4,
              SizeDistribution::lower_end(index) * 5 + 4)
        << "a quarter wide";
  }
  EXPECT_EQ(SizeDistribution::bucket_of(UINT64_MAX), SizeDistribution::kBuckets - 1);
}

TEST(SizeDistribution, CountsAndAddsUp) {
  SizeDistribution one;
  one.add(100);
  one.add(100);
  one.add(5);
  SizeDistribution other;
  other.add(1'000'000);
  other.add(one);
  EXPECT_EQ(other.count(), 4U);
  EXPECT_EQ(other.min(), 5U);
  EXPECT_EQ(other.max(), 1'000'000U);
  EXPECT_EQ(other.buckets().size(), 3U);
}

TEST(SizeDistribution, IsMadeOnlyOfWhatMakesSense) {
  SizeDistribution out;
  EXPECT_TRUE(SizeDistribution::make(1, 2, {{1, 3}, {2, 1}}, out));
  EXPECT_EQ(out.count(), 4U);
  EXPECT_FALSE(SizeDistribution::make(2, 1, {{1, 3}, {2, 1}}, out));
  EXPECT_FALSE(SizeDistribution::make(1, 2, {{2, 3}, {1, 1}}, out));
  EXPECT_FALSE(SizeDistribution::make(1, 2, {{1, 0}, {2, 1}}, out));
  EXPECT_FALSE(SizeDistribution::make(1, 2, {{1, 1}, {SizeDistribution::kBuckets, 1}}, out));
  EXPECT_FALSE(SizeDistribution::make(1, 2, {}, out));
}

TEST(RecentSizes, TellTheMinuteThatEndedWhileTheNextGoesOn) {
  RecentSizes sizes;
  const Minute first = 100;
  sizes.add(10, begin_of(first) + 59s);
  sizes.add(20, begin_of(first + 1));
  EXPECT_EQ(sizes.between(first, first).max(), 10U);
  EXPECT_EQ(sizes.between(first + 1, first + 1).min(), 20U);
  EXPECT_EQ(sizes.between(first, first + 1).count(), 2U);
  sizes.add(30, begin_of(first + 5));
  EXPECT_TRUE(sizes.between(first, first).empty());
  EXPECT_EQ(sizes.between(first, first + 5).count(), 2U);
}

}  // namespace
}  // namespace stanchion
