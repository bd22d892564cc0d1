// A copy of what a node has of its fleet, one shard after another, while it goes on.
//
//   each shard that it follows or serves ─ checkpoint ─▶ INTO/shard-NNN/store
//   each other one                                    ─▶ INTO/shard-NNN, empty
//
// The shards are copied as they are at different moments, as they are in the directories of nodes that
// were stopped: whoever rebuilds a fleet from them knows what to do.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "fleet/node.h"
#include "member/store_shelf.h"

namespace stanchion::member {

class NodeBackup : public std::enable_shared_from_this<NodeBackup> {
 public:
  using Done = std::move_only_function<void(Status)>;

  // `into` must not exist. Calls `done` once, on any thread, when nothing is copied any more; never if
  // the loops stop before that. Node and shelf must outlive the loops.
  static void begin(fleet::Node& node, StoreShelf& shelf, std::string into, Done done);

 private:
  NodeBackup(fleet::Node& node, StoreShelf& shelf, std::string into, Done done)
      : node_(node), shelf_(shelf), into_(std::move(into)), done_(std::move(done)) {}

  class Outcome;
  void go_on_with(std::uint32_t shard);
  void copy(ShardIndex shard);
  void copied(ShardIndex shard, const Status& status);
  std::string path_of(ShardIndex shard) const;

  fleet::Node& node_;
  StoreShelf& shelf_;
  const std::string into_;
  Done done_;
  bool any_ = false;  // A shard was copied.
};

}  // namespace stanchion::member
