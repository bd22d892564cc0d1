// One world of a fleet from beginning to end: clients and faults, then peace, then every queue is
// emptied and what comes out is compared with what must.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/auditor.h"
#include "sim/fleet.h"

namespace stanchion::sim {

struct FleetOutcome {
  std::uint64_t seed = 0;
  std::uint64_t hash = 0;
  std::uint64_t requests = 0;
  std::uint64_t events = 0;
  Auditor::Statistics audit;
  Fleet::Statistics fleet;
  std::optional<std::string> violation;
  std::vector<std::string> last_lines;
};

// For a person.
std::string describe(const Fleet::Statistics& fleet);
std::string report(const FleetOutcome& outcome);

FleetOutcome run_fleet(std::uint64_t seed, const FleetRules& rules = {}, bool verbose = false);

}  // namespace stanchion::sim
