// How a shard reaches the other shards and the process that it lives in.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/engine.h"
#include "model/ids.h"

namespace stanchion::broker {

// Calls arrive on the thread of the target's loop.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual ShardIndex shard_of(const QueueRef& queue) const = 0;
  virtual void deliver(ShardIndex to, Transfer transfer) = 0;
  virtual void tell_verdict(ShardIndex to, TransferNo number, TransferVerdict verdict) = 0;
  // The journal failed: nothing may be acknowledged any more. Ends the process in the server.
  virtual void fatal(ShardIndex shard, const Failure& failure) = 0;
  // Somebody else owns the shard's log. Nothing is served here any more.
  virtual void moved(ShardIndex /*shard*/, std::string_view /*why*/) {}
  // A queue was set aside because some of its messages cannot be read, or is no longer.
  virtual void damaged(const QueueRef& /*queue*/, const Failure& /*why*/) {}
  virtual void healed(const QueueRef& /*queue*/) {}
};

}  // namespace stanchion::broker
