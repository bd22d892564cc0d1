// The random numbers of a simulated world: everything that happens in it is a function of one seed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace stanchion::sim {

// SplitMix64: small, fast, and good enough to choose what happens next.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  std::uint64_t below(std::uint64_t n) {
    CHECK(n > 0, "a choice needs something to choose from");
    return next() % n;
  }

  // From `least` to `most`, both included.
  template <class T>
  T between(T least, T most) {
    return static_cast<T>(least +
                          static_cast<T>(below(static_cast<std::uint64_t>(most - least) + 1)));
  }

  bool chance(unsigned percent) { return below(100) < percent; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }

  // An independent stream: drawing more numbers from one does not change the other.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace stanchion::sim
