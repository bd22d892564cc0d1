// The shards of a fleet that other nodes serve, or nobody at the moment. Calls come on the loop of
// the shard concerned.
#pragma once

#include <functional>
#include <string_view>

#include "broker/parked_polls.h"
#include "engine/engine.h"
#include "model/ids.h"
#include "model/request.h"

namespace stanchion::broker {

class RemoteShards {
 public:
  virtual ~RemoteShards() = default;

  // As Shard::submit(); `respond` is called on the shard's loop.
  virtual void submit(ShardIndex shard, Request&& request, const engine::Neighbours& neighbours,
                      Ticket ticket, Respond respond, Guard guard) = 0;
  virtual void cancel(ShardIndex shard, Ticket ticket) = 0;

  // As Shard::contribute(); `then` is called on the shard's loop. A shard that cannot be asked adds
  // nothing, and `known` is false.
  using Contributed = std::move_only_function<void(engine::Neighbours neighbours, bool known)>;
  virtual void contribute(ShardIndex shard, const engine::Needs& needs,
                          engine::Neighbours neighbours, Contributed then) = 0;

  // A shard that was served here is owned by somebody else now.
  virtual void lost(ShardIndex shard, std::string_view why) = 0;

  // The source repeats a transfer until it has the verdict, so that both may be lost.
  virtual void deliver(ShardIndex shard, Transfer transfer, SourceEpoch epoch) = 0;
  virtual void tell_verdict(ShardIndex shard, const Settlement& settlement) = 0;
};

}  // namespace stanchion::broker
