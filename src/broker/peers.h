// How a shard reaches the other shards and the process that it lives in.
#pragma once

#include <string_view>

#include "base/result.h"
#include "broker/admission.h"
#include "broker/waiting_room.h"
#include "engine/engine.h"
#include "model/ids.h"

namespace stanchion::broker {

// Calls arrive on the thread of the target's loop.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual ShardIndex shard_of(const QueueRef& queue) const = 0;
  virtual void deliver(ShardIndex to, Transfer transfer, SourceEpoch epoch) = 0;
  virtual void tell_verdict(ShardIndex to, const Settlement& settlement) = 0;
  // The journal failed: nothing may be acknowledged any more. Ends the process in the server.
  virtual void fatal(ShardIndex shard, const Failure& failure) = 0;
  // Somebody else owns the shard's log. Nothing is served here any more; requests for which nothing
  // was decided are passed to send_on().
  virtual void moved(ShardIndex /*shard*/, std::string_view /*why*/) {}
  virtual void send_on(ShardIndex shard, Job&& job);
  // A queue was set aside because some of its messages cannot be read, or is no longer.
  virtual void damaged(const QueueRef& /*queue*/, const Failure& /*why*/) {}
  virtual void healed(const QueueRef& /*queue*/) {}
};

inline void Peers::send_on(ShardIndex, Job&& job) {
  job.respond(shard_has_moved());
}

}  // namespace stanchion::broker
