// What goes wrong in a fleet besides nodes that die, pause, are cut off and lose their disks: drawn from a
// stream of its own, so that worlds without it stay as they were.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/fleet.h"
#include "sim/random.h"

namespace stanchion::sim {

struct FleetTrouble {
  FleetTrouble() = default;  // There is none.
  explicit FleetTrouble(Random random);

  void apply(FleetOptions& fleet) const;
  // Calls a function once in this many seconds, on average, until the faults end; 0: never.
  using Every = std::function<void(int seconds, std::function<void()> what)>;
  void schedule(Fleet& fleet, const Every& every) const;

  std::uint64_t seed = 0;  // 0: there is none.
  LogTrouble log;
  bool slow_copies = false;
  int partition_every = 0, pair_every = 0, stale_every = 0, litter_every = 0, strike_every = 0,
      clock_every = 0, isolate_every = 0;
};

}  // namespace stanchion::sim
