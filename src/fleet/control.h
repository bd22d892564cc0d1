// What the nodes of a fleet know about it: the state that follows from the control log, an ordered
// list of records to which every node may append.
//
//   FC1  The state is a function of the records, so all nodes that have read the same have the same.
//        Only who is alive is a node's own opinion: who was heard of lately, by its own clock.
//   FC2  Assignments are made by the warden of the highest term; those of an earlier one are void. A
//        node becomes warden by the first claim of a term.
//
// Nothing here is needed for safety: who may write a shard's log is decided in that log (LG1 to LG3
// in journal/shared_log.h). Pure bookkeeping, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/ids.h"

namespace stanchion::fleet {

using NodeName = std::string;
// The ordinal of a wardenship, and of the assignments of a shard.
using Term = Strong<struct TermTag>;
using AssignmentNo = Strong<struct AssignmentNoTag>;

// "I am here", twice a second.
struct Beat {
  NodeName node;
  std::uint64_t process = 0;  // Drawn at each start.
  std::string zone;
  std::string address;  // Where other nodes reach it.
  Instant clock;        // What it takes for the time.
  bool draining = false;
  // By shard: the last record that it has read, the last one that its store contains, and, while it
  // serves the shard, which time this is: a number that is never used again. 0: it does not.
  struct Reached {
    Position applied;
    Position saved;
    std::uint64_t service = 0;
  };
  std::map<ShardIndex, Reached> reached;
};

// "I am the warden of this term."
struct WardenClaim {
  Term term;
  NodeName node;
};

// Who has a shard. The first is its owner, the others follow it.
struct Assignment {
  Term term;
  ShardIndex shard;
  AssignmentNo number;
  NodeName owner;
  std::vector<NodeName> standbys;

  bool includes(const NodeName& node) const;
  std::vector<NodeName> replicas() const;
};

// "I serve this shard no longer", after an assignment to somebody else.
struct Release {
  NodeName node;
  ShardIndex shard;
  AssignmentNo number;  // The assignment that it gives way to.
};

using ControlRecord = std::variant<Beat, WardenClaim, Assignment, Release>;

class ControlState {
 public:
  explicit ControlState(std::uint32_t shards) : shards_(shards) {}

  struct Node {
    Beat beat;            // The last one.
    SteadyInstant heard;  // When that was read here.
  };
  struct Shard {
    std::optional<Assignment> assignment;
    NodeName previous_owner;  // Empty: there was none.
    AssignmentNo released;    // The previous owner has given way to this assignment.
  };

  void apply(const ControlRecord& record, SteadyInstant now);

  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(shards_.size()); }
  const Shard& shard(ShardIndex index) const { return shards_[index.value()]; }
  const std::map<NodeName, Node>& nodes() const { return nodes_; }
  const Node* find(const NodeName& name) const;
  Term term() const { return term_; }
  const NodeName& warden() const { return warden_; }

  // Whether the node was heard of lately.
  bool is_alive(const NodeName& node, SteadyInstant now) const;
  // The records up to here are in the stores of all replicas of the shard, of which there are at
  // least two; 0: no such thing is known. Nobody needs them in the log.
  Position saved_by_all(ShardIndex shard) const;

 private:
  void take(const Beat& beat, SteadyInstant now);
  void take(const WardenClaim& claim, SteadyInstant now);
  void take(const Assignment& assignment, SteadyInstant now);
  void take(const Release& release, SteadyInstant now);

  std::vector<Shard> shards_;
  std::map<NodeName, Node> nodes_;
  Term term_;
  NodeName warden_;
};

}  // namespace stanchion::fleet
