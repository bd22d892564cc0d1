// The shards that this node owns and whose logs do not take what it writes: since when, and why.
//
//   taken ─ something that was sent waits for longer than that takes ─▶ stalled ─ the log takes ─▶ taken
//                                                                          └─ it has another owner, or
//                                                                             was given up ─▶ (left)
//
// A shard stays stalled while its replica begins anew from its store and until its claim was taken: only
// then is it known that the log takes anything. When Kafka's client is replaced, that happens every time.
//
// Pure bookkeeping. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.h"
#include "fleet/control.h"
#include "journal/shared_journal.h"
#include "os/timekeeper.h"

namespace stanchion::fleet {

class Stalls {
 public:
  struct Look {
    bool owned = false;    // The shard is to be served here, and was not given up.
    bool serving = false;  // The log has taken its claim.
    std::optional<journal::LogStall> stall{};
  };
  // What the node's log should have. The same shard does not begin again and again there.
  enum class News { kNone, kBegan, kTaken, kLeft };
  struct Change {
    News news = News::kNone;
    Duration lasted{};
  };

  Change look_at(ShardIndex shard, const Look& look, const os::TimeReading& now);

  const std::map<ShardIndex, Beat::Stall>& all() const { return stalled_; }

 private:
  struct Told {
    SteadyInstant began{};              // The stall.
    std::optional<SteadyInstant> at{};  // When the log was last told of one.
    bool told = false;                  // Of this one.
  };

  Change end(ShardIndex shard, News news, SteadyInstant now);

  std::map<ShardIndex, Beat::Stall> stalled_;
  std::map<ShardIndex, Told> told_;  // Also of those that have ended.
};

// For a person. `stall` is null when it has ended. REQUIRES: there is news.
std::string line_about(ShardIndex shard, const Stalls::Change& change, const Beat::Stall* stall);

// The shards whose owners say so, as far as they are alive.
struct StalledShard {
  NodeName owner;
  Beat::Stall stall;
};
std::map<ShardIndex, StalledShard> stalled_shards(const ControlState& state, SteadyInstant now);

}  // namespace stanchion::fleet
