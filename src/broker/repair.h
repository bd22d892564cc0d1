// Repairs the store of a shard: what is readable of it goes into a new store, with the journal
// behind it, and takes its place; the damaged one stays beside it.
//
//   store, damaged ─salvage─▶ store.new ─journal─▶ store.new ─loaded once more─▶ exchanged
//
// Whatever fails before the exchange has changed nothing. The exchange is one step.
//
// While no server runs.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "broker/data_directory.h"
#include "engine/store/salvage.h"
#include "model/ids.h"

namespace stanchion::broker {

struct ShardRepair {
  engine::SalvageReport found;
  std::string damage;          // Of a file; empty: every file is as it was written.
  std::uint64_t left_out = 0;  // Times that the journal spoke of messages that are lost.
  std::string set_aside_as;    // Where the damaged store is now; empty: nothing was changed.

  bool damaged() const { return !damage.empty() || found.damaged(); }
};

// A shard that is sound, or without a store, stays as it is; so does every shard if this is but a
// look. REQUIRES: `data` was opened with its lock.
Result<ShardRepair> repair_shard(const DataDirectory& data, ShardIndex shard, bool only_look);

}  // namespace stanchion::broker
