// What a shard of a fleet is made of when its log is founded anew: which of several stores, and what
// of the old log, if that is still there.
//
//   RB1  A shard has one past. Two stores at the same position, or a store and the log, that have
//        other digests of it (LG4) are refused: somebody has to say which one counts.
//   RB2  Nothing that could be used is left out silently: a log that goes on behind a gap is refused.
//   RB3  No number of a transfer is used for two messages, and none is taken for accepted that the
//        destination may have refused: such a message is back in its queue, and may be there twice
//        rather than not at all.
//
// Pure bookkeeping.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "journal/shared_log.h"
#include "model/ids.h"

namespace stanchion::fleet_admin {

// The store of a shard in the directory of a node.
struct FoundStore {
  std::string directory;
  Position checkpoint;  // Its last record; 0: it has none.
  std::optional<journal::LogDigest> digest;
  Instant at;  // Of the checkpoint.
};

// What the old log of a shard still has: the records from `first` up to `last`.
struct FoundLog {
  Position first;
  Position last;
  // Of all records up to this one: wherever a store has its checkpoint, if the log says so.
  std::map<Position, journal::LogDigest> digests;
  std::string problem;  // Why nothing can be read behind `last`; empty: there is nothing.
};

struct ShardPlan {
  std::size_t store = 0;  // Its place among those found.
  // Whether the old log goes on where the store ends, so that its records behind that are used.
  bool goes_on = false;
};

// `log`: none if there is none, or it is not to be used. There is a store at least.
Result<ShardPlan> plan_shard(const std::vector<FoundStore>& stores,
                             const std::optional<FoundLog>& log);

// What a shard knows of transfers between shards.
struct TransferBooks {
  TransferNo next;                                           // Of those that leave it.
  std::vector<std::pair<TransferNo, ShardIndex>> under_way;  // And where each goes.
  struct Source {
    TransferNo settled_below;
    TransferNo end;
  };
  std::map<ShardIndex, Source> sources;  // What came from each shard.
};

TransferBooks books_of(const engine::Engine& engine, std::uint32_t shards);

// RB3: what has to be written to a shard's log, because others know more than it does.
struct TransferMending {
  std::optional<TransferNo> resume_at;
  std::vector<TransferNo> refused;
};

TransferMending mend_transfers(ShardIndex shard, const std::vector<TransferBooks>& books);

}  // namespace stanchion::fleet_admin
