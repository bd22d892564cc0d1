#include "model/size_distribution.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace stanchion {
namespace {

constexpr std::uint32_t kSingle = 8;  // Sizes with a bucket of their own.
constexpr int kFirstPower = 3;        // 2^3 is the first of the others.
constexpr int kLastPower = 20;
constexpr std::uint32_t kPerPower = 4;

static_assert(kSingle + (kLastPower - kFirstPower + 1) * kPerPower == SizeDistribution::kBuckets);

std::uint32_t sum_of(std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  return kMost - a < b ? kMost : a + b;
}

}  // namespace

std::uint32_t SizeDistribution::bucket_of(std::uint64_t size) {
  if (size < kSingle) return static_cast<std::uint32_t>(size);
  const int power = static_cast<int>(std::bit_width(size)) - 1;
  if (power > kLastPower) return kBuckets - 1;
  const auto quarter = static_cast<std::uint32_t>(size >> (power - 2)) % kPerPower;
  return kSingle + static_cast<std::uint32_t>(power - kFirstPower) * kPerPower + quarter;
}

std::uint64_t SizeDistribution::lower_end(std::uint32_t index) {
  if (index < kSingle) return index;
  const std::uint32_t power = kFirstPower + (index - kSingle) / kPerPower;
  return std::uint64_t{kPerPower + (index - kSingle) % kPerPower} << (power - 2);
}

SizeDistribution::Bucket& SizeDistribution::bucket(std::uint32_t index) {
  const auto at = std::ranges::lower_bound(buckets_, index, {}, &Bucket::index);
  if (at != buckets_.end() && at->index == index) return *at;
  return *buckets_.insert(at, {index, 0});
}

void SizeDistribution::add(std::uint64_t size) {
  Bucket& of = bucket(bucket_of(size));
  of.count = sum_of(of.count, 1);
  min_ = std::min(min_, size);
  max_ = std::max(max_, size);
}

void SizeDistribution::add(const SizeDistribution& other) {
  for (const Bucket& one : other.buckets_) {
    Bucket& of = bucket(one.index);
    of.count = sum_of(of.count, one.count);
  }
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

std::uint64_t SizeDistribution::count() const {
  std::uint64_t sum = 0;
  for (const Bucket& one : buckets_) sum += one.count;
  return sum;
}

bool SizeDistribution::make(std::uint64_t min, std::uint64_t max, std::vector<Bucket> buckets,
                            SizeDistribution& out) {
  if (buckets.empty() || min > max) return false;
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (buckets[i].count == 0 || buckets[i].index >= kBuckets ||
        (i > 0 && buckets[i].index <= buckets[i - 1].index))
      return false;
  if (bucket_of(min) != buckets.front().index || bucket_of(max) != buckets.back().index)
    return false;
  out.buckets_ = std::move(buckets);
  out.min_ = min;
  out.max_ = max;
  return true;
}

void RecentSizes::begin(Minute minute) {
  before_ = std::exchange(latest_, {});
  latest_.minute = minute;
}

SizeDistribution RecentSizes::between(Minute first, Minute last) const {
  SizeDistribution sum;
  for (const OfMinute* one : {&before_, &latest_})
    if (one->minute >= first && one->minute <= last && !one->sizes.empty()) sum.add(one->sizes);
  return sum;
}

}  // namespace stanchion
