// `stanchion inspect --shard` and `--control`: what the logs of a fleet hold, in Kafka, without
// changing them.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/fleet_target.h"

namespace stanchion::cli {

struct InspectLogSettings {
  FleetFlags fleet;
  std::optional<std::uint32_t> shard;  // None: the control log.
  std::uint64_t from = 0;              // Entries before this offset are not printed.
  std::uint64_t limit = UINT64_MAX;    // So many are printed.
  bool facts = false;
  bool json = false;
};

// Returns 0 if everything is readable, 1 if something is damaged or Kafka does not show it.
int inspect_log(const InspectLogSettings& settings);

}  // namespace stanchion::cli
