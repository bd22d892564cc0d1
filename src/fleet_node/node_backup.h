// A copy of what a node has of its fleet, while it goes on.
//
//   each shard that it follows or serves ─ checkpoint ─▶ INTO/shard-NNN/store
//   each other one                                    ─▶ INTO/shard-NNN, empty
//
// A shard is copied when the node has read of its log what was there when the backup began. So
// everything is in the copy that was acknowledged before that, by whichever node. All shards are copied
// at about the same moment, but not at one: what moves from one shard to another just then may be in
// the copies of both, or of none.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/node.h"
#include "fleet_node/replica_stores.h"

namespace stanchion::fleet_node {

class NodeBackup : public std::enable_shared_from_this<NodeBackup> {
 public:
  using Done = std::move_only_function<void(Status)>;

  // `into` must not exist; `ends` are those of the shards' logs. Calls `done` once, on any thread, when
  // nothing is copied any more. Node and stores must outlive the loops.
  static void begin(fleet::Node& node, ReplicaStores& stores,
                    const std::vector<journal::LogOffset>& ends, std::string into, Done done);

 private:
  NodeBackup(fleet::Node& node, ReplicaStores& stores, std::size_t shards, std::string into,
             Done done)
      : node_(node),
        stores_(stores),
        into_(std::move(into)),
        uncopied_(shards),
        done_(std::move(done)) {}

  class Outcome;
  void copy(ShardIndex shard, journal::LogOffset end);
  void copied(ShardIndex shard, const Status& status);
  std::string path_of(ShardIndex shard) const;

  fleet::Node& node_;
  ReplicaStores& stores_;
  const std::string into_;
  std::atomic<std::size_t> uncopied_;
  std::atomic<bool> any_ = false;  // A shard is here.
  std::mutex mutex_;
  Status outcome_;  // The first failure. Guarded by mutex_.
  Done done_;
};

}  // namespace stanchion::fleet_node
