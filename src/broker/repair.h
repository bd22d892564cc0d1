// Repairs the store of a shard: its readable entries go into a new store, the journal is applied,
// and the new store takes its place; the damaged one is kept beside it.
//
//   store, damaged ─salvage─▶ store.new ─journal─▶ store.new ─loaded once more─▶ exchanged
//
// A failure before the exchange has changed nothing. The exchange is atomic.
//
// Only while no server runs.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "broker/data_directory.h"
#include "engine/salvage.h"
#include "model/ids.h"

namespace stanchion::broker {

struct ShardRepair {
  engine::SalvageReport found;
  std::string damage;  // Of a file; empty: no file is damaged.
  // A whole table cannot be read. If it had the newest list of a queue's messages, an older one was
  // taken for it, and more messages may be lost than are known.
  bool tables_lost = false;
  std::uint64_t left_out = 0;  // How often the journal referred to lost messages.
  std::string set_aside_as;    // Where the damaged store is now; empty: nothing was changed.
  std::string may_be_undone;   // By a loss of power, and why; empty: the repair is durable.

  bool damaged() const { return !damage.empty() || found.damaged(); }
};

// A shard whose store is sound, or that has none, stays as it is; so does every shard in a dry run.
// Fails if no server would start on the shard all the same, because the journal is damaged, does not
// reach back to the checkpoint, or is not there.
// REQUIRES: `data` was opened with its lock.
Result<ShardRepair> repair_shard(const DataDirectory& data, ShardIndex shard, bool only_look);

}  // namespace stanchion::broker
