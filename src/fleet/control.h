// What the nodes of a fleet know about it: the state that follows from the control log, an ordered
// list of records to which every node may append.
//
//   FC1  The state is a function of the records, so all nodes that have read the same have the same.
//        Only who is alive and what is served is a node's own opinion: what was heard of lately, by
//        its own clock.
//   FC2  A node becomes coordinator by the first claim of the highest term. Of the assignments of a
//        shard the last one of the highest term counts.
//   FC3  A record may be missing if a later one has the same key (control_codec.h): the state is the
//        same. So of each kind either the last record of a key counts, or no two have the same key.
//
// Nothing here is needed for safety: who may write a shard's log is decided in that log (LG1 to LG3
// in journal/shared_log.h). Pure bookkeeping, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "fleet/control_record.h"
#include "model/ids.h"

namespace stanchion::fleet {

class ControlState {
 public:
  explicit ControlState(std::uint32_t shards) : shards_(shards) {}

  struct Node {
    Beat beat;            // The last one.
    SteadyInstant heard;  // When that was read here.
    // Its clock beside the steady one here, as of the beat that was fastest lately: one that was under
    // way for long makes a clock look late.
    Duration clock_ahead;
    SteadyInstant clock_seen;
    std::map<ShardIndex, SteadyInstant> given_up;    // Since when.
    std::map<ShardIndex, SteadyInstant> other_past;  // The same for those with another past.
    // When it was first heard of, or again after it was taken for dead, or as another process.
    SteadyInstant up;
    std::map<NodeName, SteadyInstant>
        unlinked;  // Since when it says that it has no link with them.
  };
  struct Shard {
    std::optional<Assignment> assignment;
    // By node: it has given way to this assignment.
    std::map<NodeName, AssignmentNo> released;
    std::optional<Move> requested_move;  // The last one.
    std::set<std::uint64_t> skipped;     // Offsets of its log.
    // When its owner last said that it serves it; before that, when it was first assigned.
    SteadyInstant served;

    // Whether the owner before has given way to the present one, or there was none.
    bool is_released() const;
    bool has_open_move() const;
  };

  void apply(const ControlRecord& record, SteadyInstant now);

  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(shards_.size()); }
  const Shard& shard(ShardIndex index) const { return shards_[index.value()]; }
  const std::map<NodeName, Node>& nodes() const { return nodes_; }
  const Node* find(const NodeName& name) const;
  const std::optional<FleetMetadata>& metadata() const { return metadata_; }
  bool is_drained(const NodeName& node) const { return drained_.contains(node); }
  bool is_forgotten(const NodeName& node) const { return forgotten_.contains(node); }
  Term term() const { return term_; }
  const NodeName& coordinator() const { return coordinator_; }

  // The newest format of a shard's log that all nodes read, also those that are away: they may come
  // back. 0 if none is known.
  std::uint32_t format_of_all() const;

  // The connection to the node broke: it is dead unless it is heard of soon.
  void suspect(const NodeName& node, SteadyInstant now);
  // Whether the node was heard of lately.
  bool is_alive(const NodeName& node, SteadyInstant now) const;
  // Whether its owner is gone, has given it up, or has not served it for longer than a change of
  // owners takes: while it loads, copies a store, or claims in vain, its requests are not answered
  // either.
  bool is_unserved(ShardIndex shard, SteadyInstant now) const;
  // Nodes that are alive and have other records of this shard than its log, or more: what they have
  // may be all that is left of what was acknowledged.
  std::vector<NodeName> with_other_past(ShardIndex shard, SteadyInstant now) const;
  // The records up to here are in the stores of all replicas of the shard that can follow it, of
  // which there are at least two; 0: no such thing is known. Nobody needs them in the log: who has
  // given the shard up and comes back later copies a store. Only who has another past keeps its own:
  // it is waited for some time, because its broker may be behind the others.
  Position saved_by_all(ShardIndex shard, SteadyInstant now) const;

 private:
  void take(const Beat& beat, SteadyInstant now);
  void take(const CoordinatorClaim& claim, SteadyInstant now);
  void take(const Assignment& assignment, SteadyInstant now);
  void take(const Release& release, SteadyInstant now);
  void take(const FleetMetadata& metadata, SteadyInstant now);
  void take(const Drain& drain, SteadyInstant now);
  void take(const Move& move, SteadyInstant now);
  void take(const Forget& forget, SteadyInstant now);
  void take(const Skip& skip, SteadyInstant now);

  std::vector<Shard> shards_;
  std::map<NodeName, Node> nodes_;
  std::optional<FleetMetadata> metadata_;
  std::set<NodeName> drained_;
  std::set<NodeName> forgotten_;  // And not heard of since.
  Term term_;
  NodeName coordinator_;
};

}  // namespace stanchion::fleet
