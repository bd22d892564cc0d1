#include "fleet/linkage.h"

#include <algorithm>
#include <tuple>

#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

// How many nodes a person is told of.
constexpr std::size_t kToldMax = 3;

bool says_apart(const ControlState::Node& node, const NodeName& other) {
  return node.beat.linked && !node.beat.linked->contains(other);
}

std::set<NodeName> linked_with(const NodeName& node, const std::set<NodeName>& alive,
                               const Apart& apart) {
  std::set<NodeName> linked;
  for (const NodeName& other : alive)
    if (other == node || !apart(node, other)) linked.insert(other);
  return linked;
}

}  // namespace

bool are_apart(const ControlState& state, const NodeName& one, const NodeName& other) {
  const ControlState::Node *a = state.find(one), *b = state.find(other);
  return a != nullptr && b != nullptr && (says_apart(*a, other) || says_apart(*b, one));
}

bool are_apart(const ControlState& state, const NodeName& one, const NodeName& other,
               SteadyInstant now) {
  const ControlState::Node *a = state.find(one), *b = state.find(other);
  if (a == nullptr || b == nullptr) return false;
  const SteadyInstant both_up = std::max(a->up, b->up);
  const auto has_said = [&](const ControlState::Node& node, const NodeName& of) {
    const auto since = node.unlinked.find(of);
    return since != node.unlinked.end() && now - std::max(since->second, both_up) > kLinkGrace;
  };
  return has_said(*a, other) || has_said(*b, one);
}

std::set<NodeName> well_linked(const ControlState& state, const std::set<NodeName>& alive,
                               const std::set<NodeName>& owners, const Apart& apart) {
  if (owners.empty()) return alive;  // There is nobody to choose.
  std::set<NodeName> with_most;
  bool may_own = false;
  for (const NodeName& node : alive) {
    if (2 * linked_with(node, alive, apart).size() <= alive.size()) continue;
    with_most.insert(node);
    may_own = may_own || owners.contains(node);
  }
  if (may_own) return with_most;
  std::set<NodeName> best;
  std::size_t best_owned = 0;
  for (const NodeName& node : owners) {
    std::set<NodeName> piece = linked_with(node, alive, apart);
    std::size_t owned = 0;
    for (std::uint32_t i = 0; i < state.shard_count(); ++i)
      if (const auto& assignment = state.shard(ShardIndex(i)).assignment)
        owned += piece.contains(assignment->owner);
    if (std::tuple(piece.size(), owned) <= std::tuple(best.size(), best_owned)) continue;
    best = std::move(piece);
    best_owned = owned;
  }
  return best;
}

std::string why_apart(const ControlState& state, const NodeName& node, const NodeName& other) {
  const auto said_by = [&](const NodeName& one, const NodeName& of) -> std::string {
    const ControlState::Node* found = state.find(one);
    if (found == nullptr) return "";
    const auto why = found->beat.unlinked.find(of);
    return why == found->beat.unlinked.end() ? "" : why->second;
  };
  if (std::string here = said_by(node, other); !here.empty()) return here;
  const std::string there = said_by(other, node);
  return there.empty() ? "no link" : "it says: " + there;
}

std::string why_apart(const ControlState& state, const NodeName& node,
                      const std::set<NodeName>& alive) {
  std::string text;
  std::size_t told = 0;
  for (const NodeName& other : alive) {
    if (other == node || !are_apart(state, node, other)) continue;
    if (++told > kToldMax) return text + "; and others";
    text += (text.empty() ? "" : "; ") + other + ": " + why_apart(state, node, other);
  }
  return text;
}

}  // namespace stanchion::fleet
