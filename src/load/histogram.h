// A histogram of durations in the manner of HdrHistogram: buckets that grow with the value, so that
// nanoseconds and minutes fit into 30 KB and every percentile is right to within 1.6 %.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stanchion::load {

class Histogram {
 public:
  using Nanos = std::chrono::nanoseconds;

  void add(Nanos value) {
    const auto n = static_cast<std::uint64_t>(std::max<Nanos::rep>(value.count(), 0));
    ++buckets_[index_of(n)];
    ++count_;
    sum_ += n;
    min_ = std::min(min_, n);
    max_ = std::max(max_, n);
  }

  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  std::uint64_t count() const { return count_; }
  Nanos min() const { return Nanos(count_ == 0 ? 0 : static_cast<Nanos::rep>(min_)); }
  Nanos max() const { return Nanos(static_cast<Nanos::rep>(max_)); }
  Nanos mean() const { return Nanos(count_ == 0 ? 0 : static_cast<Nanos::rep>(sum_ / count_)); }

  // The smallest value that at least the given share of all values, from 0 to 1, does not exceed:
  // the upper end of its bucket, and never more than the largest value seen.
  Nanos percentile(double share) const {
    if (count_ == 0) return Nanos(0);
    const auto wanted = std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(share * static_cast<double>(count_) + 0.999999));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= wanted) return Nanos(static_cast<Nanos::rep>(std::min(upper_end(i), max_)));
    }
    return max();
  }

 private:
  // Values below 128 have a bucket each. Above, the seven leading bits of a value are its place
  // among the 64 buckets of its power of two.
  static constexpr unsigned kBits = 7;
  static constexpr std::size_t kHalf = std::size_t{1} << (kBits - 1);
  static constexpr std::size_t kBuckets = (64 - kBits + 2) * kHalf;

  static std::size_t index_of(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > kBits ? width - kBits : 0;
    return shift * kHalf + static_cast<std::size_t>(value >> shift);
  }

  static std::uint64_t upper_end(std::size_t index) {
    if (index < 2 * kHalf) return index;
    const std::size_t shift = index / kHalf - 1;
    const std::uint64_t lead = index - shift * kHalf;
    return ((lead + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
};

}  // namespace stanchion::load
