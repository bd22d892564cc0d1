// What a decision gets from outside: the time, some randomness, and the record to which it writes
// its facts.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "base/uuid.h"
#include "model/fact.h"
#include "model/ids.h"

namespace stanchion::engine {

// 128 random bits from which a decision derives all the ids it needs.
struct Entropy {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
};

class Random {
 public:
  explicit Random(Entropy seed) : seed_(seed) {}

  // A version 4 UUID, different at each call and for each seed.
  template <class Id>
  Id uuid() {
    ++draws_;
    return {make_uuid(mix(seed_.high + draws_ * kGolden) ^ seed_.low,
                      mix(seed_.low + draws_ * kGolden) ^ seed_.high)};
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

  // The finisher of SplitMix64: a bijection in which every input bit changes every output bit.
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  Entropy seed_;
  std::uint64_t draws_ = 0;
};

struct Decision {
  Instant now;
  Random random;
  RecordWriter& record;
  // Set by the caller if the disk is full, so that what left now could not arrive: then dead letters
  // are handed out once more, or a queue that has nothing else could never be drained.
  bool nothing_leaves = false;
  // Set if something must be read from the store first. The read was requested, and the request is
  // to be executed again when it has ended. Facts that are already in the record count
  // nevertheless.
  bool blocked = false;
  // Set if the decision has moved as many messages as one may, and the request is not done. It is
  // to be executed again soon. Facts that are already in the record count nevertheless.
  bool unfinished = false;
  // Set if a genuine receipt names a message or a delivery that this engine has not come to yet.
  // Then another engine has: this one is behind, because it no longer owns its journal or was
  // restored from an older copy.
  bool newer_receipt_seen = false;
};

}  // namespace stanchion::engine
