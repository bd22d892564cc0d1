#include "sim/fleet_trouble.h"

namespace stanchion::sim {

FleetTrouble::FleetTrouble(Random random) {
  if (random.chance(40)) return;
  seed = random.next() | 1;
  log.one_under_way = random.chance(70);
  if (log.one_under_way) {
    log.anew = random.pick<unsigned>({0, 3, 20});
    log.fatal = random.pick<unsigned>({0, 0, 1});
  }
  log.late = random.pick<unsigned>({0, 0, 5, 30});
  if (random.chance(50)) {
    log.control_lost = random.pick<unsigned>({0, 5, 20});
    log.control_late = random.pick<unsigned>({0, 5, 20});
    log.control_doubled = random.pick<unsigned>({0, 10});
    log.control_again = random.pick<unsigned>({0, 10});
  }
  slow_copies = random.chance(60);
  partition_every = random.pick<int>({0, 5, 20});
  pair_every = random.pick<int>({0, 5, 20});
  stale_every = random.pick<int>({0, 0, 5, 20});
  litter_every = random.pick<int>({0, 0, 5});
  strike_every = random.pick<int>({0, 0, 5});
  clock_every = random.pick<int>({0, 5});
  isolate_every = random.pick<int>({0, 0, 20});
  log.clock_is_behind = random.chance(20);
  log.verdicts_lost = random.pick<unsigned>({0, 0, 10});
}

void FleetTrouble::apply(FleetOptions& fleet) const {
  fleet.trouble = log;
  fleet.trouble_seed = seed;
  fleet.slow_copies = slow_copies;
}

void FleetTrouble::schedule(Fleet& fleet, const Every& every) const {
  every(partition_every, [&fleet] { fleet.cut_partitions(); });
  every(pair_every, [&fleet] { fleet.cut_pair(); });
  every(stale_every, [&fleet] { fleet.read_from_stale_broker(); });
  every(litter_every, [&fleet] { fleet.litter(); });
  every(strike_every, [&fleet] { fleet.strike(); });
  every(clock_every, [&fleet] { fleet.set_clock(); });
  every(isolate_every, [&fleet] { fleet.isolate(); });
}

}  // namespace stanchion::sim
