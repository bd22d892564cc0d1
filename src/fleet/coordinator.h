// What the coordinator decides: which nodes have each shard. A pure function of what is known.
//
//   WA1  A shard that has records is given only to a node that has followed it: others would have
//        to copy a store first.
//   WA2  Replicas are in different zones as far as there are zones.
//   WA3  While nothing changes, nothing is decided.
//   WA4  A replica is given up by plan only when enough others have followed as far, unless its
//        node is dead for long, or an operator has said that it will not come back.
//   WA5  A shard that its owner has given up goes to a standby that follows it, if there is one.
//   WA6  An owner is well linked with the other nodes (linkage.h): one that is not any more hands
//        its shards over to standbys that are, where there are any. A shard goes by plan only to a
//        node that has its links now.
//   WA7  While a node that is alive has other records of a shard than its log, or more, and nobody
//        serves the shard, it is given to nobody: who knows less would go on with what is left of
//        the log. That node stays a replica, beside as many as are wanted, so that it goes on
//        saying so.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fleet/control.h"

namespace stanchion::fleet {

// The assignments to be made now, by the coordinator of the state's term.
std::vector<Assignment> plan_assignments(const ControlState& state, SteadyInstant now);

// For a person: why a shard is given to nobody, WA7; empty: it is not held back for these nodes.
std::string why_held_back(const std::vector<NodeName>& with_other_past);

// The shards that nobody serves, each with the reason why it is given to nobody, WA7, or none.
std::map<ShardIndex, std::string> unserved_shards(const ControlState& state, SteadyInstant now);

// Whether the clock of this node is near enough to those of the others, of which more than half are
// within kClockOffMax of it.
bool clock_is_good(const ControlState& state, const NodeName& node, SteadyInstant now);

// The nodes that are alive.
std::set<NodeName> alive_nodes(const ControlState& state, SteadyInstant now);
// Those of them that are linked well enough to own shards, WA6.
std::set<NodeName> well_linked(const ControlState& state, SteadyInstant now);

}  // namespace stanchion::fleet
