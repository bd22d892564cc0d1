#include "fleet/warden.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/digest.h"
#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

// How much a node likes a shard: the same everywhere, and if one node comes or goes, few shards
// change their favourite.
std::uint64_t weight(ShardIndex shard, const NodeName& node) {
  return xxh3_64(std::to_string(shard.value()) + "/" + node);
}

class Planner {
 public:
  Planner(const ControlState& state, SteadyInstant now) : state_(state), now_(now) {
    for (const auto& [name, node] : state.nodes()) {
      if (!state.is_alive(name, now)) continue;
      alive_.insert(name);
      if (!node.beat.draining && clock_is_good(state, name, now)) fit_.insert(name);
    }
    for (std::uint32_t i = 0; i < state.shard_count(); ++i)
      if (const auto& assignment = state.shard(ShardIndex(i)).assignment)
        ++owned_[assignment->owner];
  }

  std::vector<Assignment> plan() {
    for (std::uint32_t i = 0; i < state_.shard_count(); ++i) plan_shard(ShardIndex(i));
    if (planned_.empty()) balance();
    return std::move(planned_);
  }

 private:
  void plan_shard(ShardIndex shard) {
    const auto& current = state_.shard(shard).assignment;
    if (!current) return found_shard(shard);
    if (fit_.contains(current->owner)) return look_after_standbys(*current);
    // The one that has read most of the log has least to read before it can serve.
    const NodeName* best = nullptr;
    for (const NodeName& standby : current->standbys)
      if (fit_.contains(standby) && applied(standby, shard) &&
          (best == nullptr || *applied(standby, shard) > *applied(*best, shard)))
        best = &standby;
    if (best != nullptr) move(*current, *best);
  }

  // The first assignment: any nodes will do, since there is nothing to copy.
  void found_shard(ShardIndex shard) {
    // A fleet that has just begun waits until all who are to be replicas are there.
    std::vector<NodeName> chosen = choose(shard, fit_, {});
    if (chosen.size() < std::min(kReplicas, state_.nodes().size())) return;
    Assignment made = next_of(shard);
    made.owner = chosen.front();
    made.standbys.assign(chosen.begin() + 1, chosen.end());
    planned_.push_back(std::move(made));
  }

  // A standby that will not come back soon is replaced.
  void look_after_standbys(const Assignment& current) {
    std::vector<NodeName> stay;
    for (const NodeName& standby : current.standbys) {
      const ControlState::Node* node = state_.find(standby);
      const bool gone = node == nullptr || now_ - node->heard > kReplaceAfter;
      if (!gone) stay.push_back(standby);
    }
    std::vector<NodeName> kept{current.owner};
    kept.insert(kept.end(), stay.begin(), stay.end());
    const std::vector<NodeName> chosen = choose(current.shard, alive_, kept);
    // One that is gone stays a replica as long as there is nobody to take its place: its store may
    // be the last copy of something.
    if (chosen.size() < current.standbys.size() + 1 ||
        std::ranges::is_permutation(chosen, current.replicas()))
      return;
    Assignment made = next_of(current.shard);
    made.owner = current.owner;
    made.standbys.assign(chosen.begin() + 1, chosen.end());
    planned_.push_back(std::move(made));
  }

  // `kept` and as many of `from` as are missing, those in new zones first.
  std::vector<NodeName> choose(ShardIndex shard, const std::set<NodeName>& from,
                               std::vector<NodeName> kept) const {
    std::vector<NodeName> others;
    for (const NodeName& name : from)
      if (std::ranges::find(kept, name) == kept.end()) others.push_back(name);
    std::ranges::sort(others, std::greater<>(),
                      [&](const NodeName& name) { return weight(shard, name); });
    for (const bool new_zone : {true, false})
      for (const NodeName& name : others) {
        if (kept.size() >= kReplicas) break;
        if (std::ranges::find(kept, name) != kept.end()) continue;
        const bool is_new = std::ranges::none_of(
            kept, [&](const NodeName& other) { return zone(other) == zone(name); });
        if (is_new || !new_zone) kept.push_back(name);
      }
    return kept;
  }

  // One shard at a time goes from the node with most shards to a standby with at least two fewer.
  void balance() {
    for (std::uint32_t i = 0; i < state_.shard_count(); ++i) {
      const auto& current = state_.shard(ShardIndex(i)).assignment;
      if (!current || !fit_.contains(current->owner)) continue;
      for (const NodeName& standby : current->standbys)
        if (fit_.contains(standby) && owned_[standby] + 2 <= owned_[current->owner] &&
            is_caught_up(standby, *current))
          return move(*current, standby);
    }
  }

  void move(const Assignment& current, const NodeName& to) {
    Assignment made = next_of(current.shard);
    made.owner = to;
    for (const NodeName& name : current.replicas())
      if (name != to) made.standbys.push_back(name);
    planned_.push_back(std::move(made));
  }

  Assignment next_of(ShardIndex shard) const {
    const auto& current = state_.shard(shard).assignment;
    return {.term = state_.term(),
            .shard = shard,
            .number = (current ? current->number : AssignmentNo()).next(),
            .owner = {},
            .standbys = {}};
  }

  // The last record that the node has read; none: it does not follow the shard yet.
  std::optional<Position> applied(const NodeName& name, ShardIndex shard) const {
    const ControlState::Node* node = state_.find(name);
    if (node == nullptr) return std::nullopt;
    const auto found = node->beat.reached.find(shard);
    if (found == node->beat.reached.end()) return std::nullopt;
    return found->second.applied;
  }

  bool is_caught_up(const NodeName& standby, const Assignment& current) const {
    const auto there = applied(standby, current.shard),
               here = applied(current.owner, current.shard);
    return there && here && there->value() + kCaughtUp >= here->value();
  }

  std::string zone(const NodeName& name) const {
    const ControlState::Node* node = state_.find(name);
    return node == nullptr ? "" : node->beat.zone;
  }

  const ControlState& state_;
  const SteadyInstant now_;
  std::set<NodeName> alive_;
  std::set<NodeName> fit_;  // To own a shard.
  std::map<NodeName, std::size_t> owned_;
  std::vector<Assignment> planned_;
};

}  // namespace

std::vector<Assignment> plan_assignments(const ControlState& state, SteadyInstant now) {
  return Planner(state, now).plan();
}

bool clock_is_good(const ControlState& state, const NodeName& name, SteadyInstant now) {
  const ControlState::Node* node = state.find(name);
  if (node == nullptr) return false;
  std::size_t near = 0, all = 0;
  for (const auto& [other, its] : state.nodes()) {
    if (!state.is_alive(other, now)) continue;
    ++all;
    // Both as they would be now.
    const Duration difference =
        (node->beat.clock + (now - node->heard)) - (its.beat.clock + (now - its.heard));
    if (difference >= -kClockOffMax && difference <= kClockOffMax) ++near;
  }
  return 2 * near > all || all <= 2;
}

}  // namespace stanchion::fleet
