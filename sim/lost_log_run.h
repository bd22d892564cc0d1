// One world of a fleet of which a log loses its end, or everything, or is restored, at a random moment,
// while clients call and all else goes wrong that does in a FleetRun. What was acknowledged is gone then,
// so no promise to clients is looked at afterwards, but what the fleet makes of it: nobody goes on with
// another past, no store that has more is replaced (F8), replicas that follow agree (F1), and in the end
// each shard is served, or given to nobody because somebody has what its log has lost, or because the
// log has a hole.
#pragma once

#include <cstdint>

#include "sim/fleet_run.h"

namespace stanchion::sim {

struct LostLogOutcome : FleetOutcome {
  bool held_back = false;  // A shard is given up somewhere in the end.
};

LostLogOutcome run_lost_log(std::uint64_t seed, const FleetRules& rules = {}, bool verbose = false);

}  // namespace stanchion::sim
