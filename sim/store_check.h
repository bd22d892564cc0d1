// F3 of a simulated fleet: a store contains what the records up to its checkpoint say.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/ids.h"
#include "store/store.h"

namespace stanchion::sim {

// Throws a Violation if the store of the shard is not what the first records of `history` make, as many
// as it says that it has.
void check_store(const store::Store& store, ShardIndex shard, const engine::MemoryOptions& memory,
                 const std::vector<std::string>& history);

}  // namespace stanchion::sim
