// The records of the control log: what nodes and operators tell all nodes of a fleet. What follows
// from them is in control.h, how they are written in control_codec.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/ids.h"

namespace stanchion::fleet {

using NodeName = std::string;
// The ordinal of a coordinator's term, and of the assignments of a shard.
using Term = Strong<struct TermTag>;
using AssignmentNo = Strong<struct AssignmentNoTag>;

// "I am here", twice a second.
struct Beat {
  NodeName node;
  std::uint64_t process = 0;  // Drawn at each start.
  std::string zone;
  std::string address;    // Where other nodes reach it.
  std::string version{};  // Of its program.
  Instant clock{};        // What it takes for the time.
  // The newest format of a shard's log that it can read.
  std::uint32_t format = 0;
  // It is about to end, and comes back soon: it takes no shard, but stays a replica.
  bool draining = false;
  bool ready = false;  // It follows or serves everything that it is to have.
  // By shard: the last record that it has read, the last one that its store contains, and, while it
  // serves the shard, which time this is: a number that is never used again. 0: it does not.
  struct Reached {
    Position applied;
    Position saved;
    std::uint64_t service = 0;

    friend bool operator==(const Reached&, const Reached&) = default;
  };
  std::map<ShardIndex, Reached> reached{};
  // Which beat of its process this is: the first has 1.
  std::uint64_t count = 0;
  // Shards that it is to have and cannot, each with the reason.
  std::map<ShardIndex, std::string> given_up{};
  // The nodes that it has a link with: both have proved to be of the fleet, and answer. None: it does
  // not say, as those of earlier releases do not.
  std::optional<std::set<NodeName>> linked{};
  // Why it has none with others, as far as it knows.
  std::map<NodeName, std::string> unlinked{};
  // Of the shards that it has given up, those whose logs have other records than its stores, or fewer.
  std::set<ShardIndex> other_past{};
  // Shards that it owns and whose logs do not take what it writes; none of those that it has given up.
  struct Stall {
    Instant since;    // By its clock.
    std::string why;  // For a person.

    friend bool operator==(const Stall&, const Stall&) = default;
  };
  std::map<ShardIndex, Stall> stalled{};

  friend bool operator==(const Beat&, const Beat&) = default;
};

// "I am the coordinator of this term."
struct CoordinatorClaim {
  Term term;
  NodeName node;
  std::uint64_t attempt = 0;  // Different for each claim that this node makes.

  friend bool operator==(const CoordinatorClaim&, const CoordinatorClaim&) = default;
};

// Who has a shard. The first is its owner, the others follow it.
struct Assignment {
  Term term;
  ShardIndex shard;
  AssignmentNo number;  // Higher than those of all earlier terms.
  NodeName owner;
  std::vector<NodeName> standbys{};
  NodeName previous{};             // The last owner that is another; empty: there was none.
  std::uint64_t applied_move = 0;  // The last Move that was carried out.

  bool includes(const NodeName& node) const;
  std::vector<NodeName> replicas() const;

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

// "I serve this shard no longer", after an assignment to somebody else.
struct Release {
  NodeName node;
  ShardIndex shard;
  AssignmentNo number;  // The assignment that it gives way to.

  friend bool operator==(const Release&, const Release&) = default;
};

// What the fleet is, once and for all. The first one counts.
struct FleetMetadata {
  std::uint64_t id = 0;  // Drawn once; every entry of the fleet's logs has it.
  std::string name;
  std::uint32_t shards = 0;
  std::uint32_t format = 0;  // Of the logs of the shards.
  Instant created{};

  friend bool operator==(const FleetMetadata&, const FleetMetadata&) = default;
};

// An operator asks: the node shall own nothing, and when there are others that can have its
// replicas, follow nothing. It is kept until it is taken back.
struct Drain {
  NodeName node;
  bool on = true;

  friend bool operator==(const Drain&, const Drain&) = default;
};

// An operator asks: the node shall own the shard as soon as it has followed it. Applied once.
struct Move {
  std::uint64_t id = 0;  // Drawn; not 0.
  ShardIndex shard;
  NodeName to;
  std::string by{};  // For a person.

  friend bool operator==(const Move&, const Move&) = default;
};

// An operator's word that the node will not come back. If it is heard of again, it is a new one.
struct Forget {
  NodeName node;

  friend bool operator==(const Forget&, const Forget&) = default;
};

// An operator's word that an entry of the shard's log, which cannot be read, is of no effect. It is
// never taken back.
struct Skip {
  ShardIndex shard;
  std::uint64_t offset = 0;
  std::string by{};  // For a person.

  friend bool operator==(const Skip&, const Skip&) = default;
};

using ControlRecord = std::variant<Beat, CoordinatorClaim, Assignment, Release, FleetMetadata,
                                   Drain, Move, Forget, Skip>;

}  // namespace stanchion::fleet
