// The way of a shard to the other shards and to the process that it lives in.
#pragma once

#include "base/result.h"
#include "engine/engine.h"
#include "model/ids.h"

namespace stanchion::broker {

// A call may come back on any thread that is the target's loop.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual ShardIndex shard_of(const QueueRef& queue) const = 0;
  virtual void deliver(ShardIndex to, Transfer transfer) = 0;
  virtual void tell_verdict(ShardIndex to, TransferNo number, TransferVerdict verdict) = 0;
  // The journal failed: nothing may be acknowledged any more. Ends the process in the server.
  virtual void fatal(ShardIndex shard, const Failure& failure) = 0;
  // A queue was set aside because something of it cannot be read, or has got over that.
  virtual void damaged(const QueueRef& /*queue*/, const Failure& /*why*/) {}
  virtual void healed(const QueueRef& /*queue*/) {}
};

}  // namespace stanchion::broker
