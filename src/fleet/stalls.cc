#include "fleet/stalls.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "fleet/control_codec.h"
#include "fleet/limits.h"

namespace stanchion::fleet {

Stalls::Change Stalls::look_at(ShardIndex shard, const Look& look, const os::TimeReading& now) {
  if (!look.owned) return end(shard, News::kLeft, now.steady);
  if (!look.stall) return look.serving ? end(shard, News::kTaken, now.steady) : Change();
  Told& told = told_[shard];
  const auto [stall, is_new] = stalled_.try_emplace(shard);
  if (is_new) {
    stall->second.since = now.now - look.stall->waiting;
    told.began = now.steady - look.stall->waiting;
    told.told = false;
  }
  stall->second.why = control_reason(look.stall->why);
  if (told.told || (told.at && now.steady - *told.at < kTellStallAgain)) return {};
  told.told = true;
  told.at = now.steady;
  return {News::kBegan, now.steady - told.began};
}

Stalls::Change Stalls::end(ShardIndex shard, News news, SteadyInstant now) {
  if (stalled_.erase(shard) == 0) return {};
  Told& told = told_[shard];
  if (!std::exchange(told.told, false)) return {};
  return {news, now - told.began};
}

std::string line_about(ShardIndex shard, const Stalls::Change& change, const Beat::Stall* stall) {
  const auto lasted = std::chrono::duration_cast<std::chrono::seconds>(change.lasted).count();
  if (stall != nullptr)
    return fmt::format("shard {} is stalled: Kafka has not taken what was written {} s ago: {}",
                       shard.value(), lasted, stall->why);
  return fmt::format("shard {} is no longer stalled, after {} s: {}", shard.value(), lasted,
                     change.news == Stalls::News::kTaken ? "Kafka takes its writes again"
                                                         : "it was given away or given up");
}

std::map<ShardIndex, StalledShard> stalled_shards(const ControlState& state, SteadyInstant now) {
  std::map<ShardIndex, StalledShard> stalled;
  for (const auto& [name, node] : state.nodes()) {
    if (!state.is_alive(name, now)) continue;
    for (const auto& [shard, stall] : node.beat.stalled) {
      if (shard.value() >= state.shard_count()) continue;
      const auto& assignment = state.shard(shard).assignment;
      if (assignment && assignment->owner == name)
        stalled.emplace(shard, StalledShard{name, stall});
    }
  }
  return stalled;
}

}  // namespace stanchion::fleet
