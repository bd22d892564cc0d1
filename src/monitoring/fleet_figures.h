// What a node of a fleet tells Prometheus about its part in it.
#pragma once

#include <cstdint>
#include <map>

#include "base/time.h"
#include "model/ids.h"

namespace stanchion::monitoring {

struct FleetFigures {
  bool in_touch = false;  // With the control log.
  std::uint64_t nodes_alive = 0, shards_served = 0, shards_without_owner = 0, shards_given_up = 0,
                shards_stalled = 0;
  // Of the shards that are followed here: how much older the last record is that was applied.
  std::map<ShardIndex, Duration> lags;
  // Of the shards that are served here: from the claim until requests were served.
  std::map<ShardIndex, Duration> promotion_times;
  std::uint64_t claims = 0, promotions = 0, losses = 0, copies = 0;
  std::uint64_t forwarded = 0, held = 0, unknown = 0, given_up = 0;
};

}  // namespace stanchion::monitoring
