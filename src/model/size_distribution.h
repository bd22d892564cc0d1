// How large messages are: their number by size, in buckets that are at most a quarter wider than
// their lower end, with the exact smallest and largest.
//
// Few queues have messages of many different sizes, so only buckets that count something take
// memory, eight bytes each, and there are at most kBuckets of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"

namespace stanchion {

class SizeDistribution {
 public:
  struct Bucket {
    std::uint32_t index = 0;
    std::uint32_t count = 0;
    friend bool operator==(const Bucket&, const Bucket&) = default;
  };

  // Sizes below 8 have a bucket each; above, four share a power of two, up to 2 MiB.
  static constexpr std::uint32_t kBuckets = 80;
  static std::uint32_t bucket_of(std::uint64_t size);
  // The sizes of a bucket: from its lower end up to, but not including, that of the next.
  static std::uint64_t lower_end(std::uint32_t index);

  void add(std::uint64_t size);
  void add(const SizeDistribution& other);

  bool empty() const { return buckets_.empty(); }
  std::uint64_t count() const;
  // REQUIRES: not empty.
  std::uint64_t min() const { return min_; }
  std::uint64_t max() const { return max_; }
  std::span<const Bucket> buckets() const { return buckets_; }  // In order of index.

  // From what was stored; buckets that are not in order, empty or beyond the last are refused.
  static bool make(std::uint64_t min, std::uint64_t max, std::vector<Bucket> buckets,
                   SizeDistribution& out);

  friend bool operator==(const SizeDistribution&, const SizeDistribution&) = default;

 private:
  Bucket& bucket(std::uint32_t index);

  std::vector<Bucket> buckets_;
  std::uint64_t min_ = UINT64_MAX;
  std::uint64_t max_ = 0;
};

// Minutes since 1970 by the server's time.
using Minute = std::int64_t;
constexpr Minute minute_of(Instant at) {
  return to_millis(at) / 60'000;
}
constexpr Instant begin_of(Minute minute) {
  return from_millis(minute * 60'000);
}

// The sizes of the last two minutes in which messages came: what happened in the minute that has
// just ended can be read while the next one goes on. Follows from the facts and their times alone.
class RecentSizes {
 public:
  void add(std::uint64_t size, Instant at) {
    const Minute minute = minute_of(at);
    if (minute != latest_.minute) begin(minute);
    latest_.sizes.add(size);
  }

  // Those of the minutes from `first` to `last`, both included.
  SizeDistribution between(Minute first, Minute last) const;

 private:
  struct OfMinute {
    Minute minute = -1;
    SizeDistribution sizes;
  };
  void begin(Minute minute);

  OfMinute latest_;
  OfMinute before_;
};

}  // namespace stanchion
