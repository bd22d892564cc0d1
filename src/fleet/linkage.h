// Which nodes are linked with each other well enough to own shards. An owner that the others do not
// reach, as one with another secret, would let every request for its shards fail at them.
//
//   LK1  Two nodes are apart if either says that it has no link with the other, and, for who decides
//        upon it, has said so for kLinkGrace in which both were up: not at a blip, nor before links
//        could be made. A node that does not say, of an earlier release, has a link with all.
//   LK2  A node is well linked if it is linked with more than half of the nodes that are alive, itself
//        counted.
//   LK3  If none of these may own shards, as when two nodes are apart and there is no third, the nodes
//        of one piece are: of a node that may own shards and those that it is linked with. It is the
//        largest piece; of several the one that owns most shards; of these the one of the first name.
//
// LK3, because somebody must own, and who reaches one owner should reach them all: if all stayed where
// they are, requests would fail at every node, for ever. Whoever is in the piece serves everything;
// the others know that they are not, and say so. By the shards that it owns the piece stays the same
// one while the links do (WA3 in coordinator.h).
//
// Pure functions.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "fleet/control.h"

namespace stanchion::fleet {

// LK1, as their last beats say.
bool are_apart(const ControlState& state, const NodeName& one, const NodeName& other);
// The same for kLinkGrace.
bool are_apart(const ControlState& state, const NodeName& one, const NodeName& other,
               SteadyInstant now);

using Apart = std::function<bool(const NodeName&, const NodeName&)>;

// LK2 and LK3. `owners`: those of the nodes that are alive which may own shards otherwise.
std::set<NodeName> well_linked(const ControlState& state, const std::set<NodeName>& alive,
                               const std::set<NodeName>& owners, const Apart& apart);

// Why there is no link between the node and the other one, for a person.
std::string why_apart(const ControlState& state, const NodeName& node, const NodeName& other);
// The same for those of `alive` that it has no link with.
std::string why_apart(const ControlState& state, const NodeName& node,
                      const std::set<NodeName>& alive);

}  // namespace stanchion::fleet
