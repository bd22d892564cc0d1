// How long things took, counted in buckets with fixed bounds: enough for rates and quantiles over
// any time, in constant memory.
//
// One thread adds, any thread may look.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace stanchion {

struct LatencyCounts {
  // Upper bounds of the buckets, in microseconds; the last bucket has none.
  static constexpr std::array<std::uint64_t, 18> kBounds{
      25,     50,     100,     250,     500,     1'000,     2'500,     5'000,     10'000,
      25'000, 50'000, 100'000, 250'000, 500'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000};

  std::array<std::uint64_t, kBounds.size() + 1> buckets{};
  std::uint64_t micros = 0;  // All together.

  LatencyCounts& operator+=(const LatencyCounts& other) {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    micros += other.micros;
    return *this;
  }
};

// A number that one thread counts up and others read.
class Tally {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Latency {
 public:
  void add(std::chrono::microseconds took) {
    const auto micros = static_cast<std::uint64_t>(took.count() < 0 ? 0 : took.count());
    std::size_t bucket = 0;
    while (bucket < LatencyCounts::kBounds.size() && micros > LatencyCounts::kBounds[bucket])
      ++bucket;
    buckets_[bucket].add();
    micros_.add(micros);
  }

  LatencyCounts counts() const {
    LatencyCounts counts;
    for (std::size_t i = 0; i < buckets_.size(); ++i) counts.buckets[i] = buckets_[i].value();
    counts.micros = micros_.value();
    return counts;
  }

 private:
  std::array<Tally, LatencyCounts::kBounds.size() + 1> buckets_;
  Tally micros_;
};

}  // namespace stanchion
