#include "fleet/coordinator.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "base/digest.h"
#include "fleet/limits.h"
#include "fleet/linkage.h"

namespace stanchion::fleet {
namespace {

// How much a node likes a shard: the same everywhere, and if one node comes or goes, few shards
// change their favourite.
std::uint64_t weight(ShardIndex shard, const NodeName& node) {
  return xxh3_64(std::to_string(shard.value()) + "/" + node);
}

// Assignments of a later term have higher numbers, whatever the coordinator of an earlier one did
// after its successor had read the log.
constexpr int kTermShift = 24;

// Those that may own shards as far as links do not matter.
std::set<NodeName> possible_owners(const ControlState& state, const std::set<NodeName>& alive,
                                   SteadyInstant now) {
  std::set<NodeName> owners;
  for (const NodeName& name : alive)
    if (!state.is_drained(name) && !state.find(name)->beat.draining &&
        clock_is_good(state, name, now))
      owners.insert(name);
  return owners;
}

std::set<NodeName> both(const std::set<NodeName>& some, const std::set<NodeName>& others) {
  std::set<NodeName> in_both;
  std::ranges::set_intersection(some, others, std::inserter(in_both, in_both.end()));
  return in_both;
}

class Planner {
 public:
  Planner(const ControlState& state, SteadyInstant now) : state_(state), now_(now) {
    const std::set<NodeName> alive = alive_nodes(state, now);
    for (const NodeName& name : alive)
      if (!state.is_drained(name)) hosts_.insert(name);
    const std::set<NodeName> owners = possible_owners(state, alive, now);
    fit_ = both(owners, well_linked(state, now));
    linked_ = well_linked(state, alive, owners, [&](const NodeName& one, const NodeName& other) {
      return are_apart(state, one, other);
    });
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
    if (is_held_back(*current)) return;
    if (fit_.contains(current->owner) && !has_given_up(current->owner, shard)) {
      if (!apply_requested_move(*current)) look_after_standbys(*current);
      return;
    }
    // One that has its links, and of these the one that has read most of the log: it has least to
    // read before it can serve.
    const auto worth = [&](const NodeName& standby) {
      return std::pair(linked_.contains(standby), *applied(standby, shard));
    };
    const NodeName* best = nullptr;
    for (const NodeName& standby : current->standbys)
      if (fit_.contains(standby) && applied(standby, shard) &&
          (best == nullptr || worth(standby) > worth(*best)))
        best = &standby;
    if (best != nullptr) {
      move(*current, *best);
    } else if (state_.is_alive(current->owner, now_)) {
      look_after_standbys(*current);  // So that somebody can take over from an owner that is unfit.
    }
  }

  // Whether something was decided because an operator wants the shard elsewhere.
  bool apply_requested_move(const Assignment& current) {
    const ControlState::Shard& shard = state_.shard(current.shard);
    if (!shard.has_open_move()) return false;
    const NodeName& to = shard.requested_move->to;
    if (to == current.owner || (current.includes(to) && is_caught_up(to, current))) {
      if (to != current.owner && !may_get(to)) return false;
      move(current, to);
      planned_.back().applied_move = shard.requested_move->id;
      return true;
    }
    if (current.includes(to) || !fit_.contains(to)) return false;
    Assignment made = next_of(current.shard, current.owner);
    made.standbys = current.standbys;
    made.standbys.push_back(to);
    planned_.push_back(std::move(made));
    return true;
  }

  // The first assignment: any nodes will do, since there is nothing to copy.
  void found_shard(ShardIndex shard) {
    // A fleet that has just begun waits until all who are to be replicas are there.
    std::vector<NodeName> chosen = choose(shard, fit_, {});
    if (chosen.empty()) return;
    chosen = choose(shard, hosts_, {chosen.front()});
    const auto expected = std::ranges::count_if(
        state_.nodes(), [&](const auto& node) { return !state_.is_drained(node.first); });
    if (chosen.size() < std::min(kReplicas, static_cast<std::size_t>(expected))) return;
    Assignment made = next_of(shard, chosen.front());
    made.standbys.assign(chosen.begin() + 1, chosen.end());
    planned_.push_back(std::move(made));
  }

  void look_after_standbys(const Assignment& current) {
    std::vector<NodeName> kept, gone, doubting;
    for (const NodeName& name : current.replicas()) {
      if (name != current.owner && state_.is_forgotten(name)) continue;
      const bool doubts = has_other_past(name, current.shard);
      (name == current.owner ? kept
       : doubts              ? doubting
                             : (is_gone(name, current.shard) ? gone : kept))
          .push_back(name);
    }
    // One that is drained goes on until another can do without it.
    std::vector<NodeName> leaving;
    for (const NodeName& name : kept)
      if (name != current.owner && state_.is_drained(name)) leaving.push_back(name);
    std::erase_if(kept, [&](const NodeName& name) {
      return std::ranges::find(leaving, name) != leaving.end();
    });
    std::vector<NodeName> chosen = choose(current.shard, hosts_, kept);
    if (!has_enough(chosen, current)) chosen.insert(chosen.end(), leaving.begin(), leaving.end());
    drop_surplus(chosen, current);
    // One that is gone stays a replica as long as there is nobody to take its place: its store may
    // be the last copy of something.
    for (const NodeName& name : gone)
      if (chosen.size() < kReplicas) chosen.push_back(name);
    chosen.insert(chosen.end(), doubting.begin(), doubting.end());
    if (std::ranges::is_permutation(chosen, current.replicas())) return;
    Assignment made = next_of(current.shard, current.owner);
    made.standbys.assign(chosen.begin() + 1, chosen.end());
    planned_.push_back(std::move(made));
  }

  // WA7: whether it goes to nobody, because somebody doubts its log and nobody serves it.
  bool is_held_back(const Assignment& current) const {
    const ControlState::Node* owner = state_.find(current.owner);
    if (owner != nullptr && state_.is_alive(current.owner, now_)) {
      const auto reached = owner->beat.reached.find(current.shard);
      if (reached != owner->beat.reached.end() && reached->second.service != 0) return false;
    }
    return !state_.with_other_past(current.shard, now_).empty();
  }

  bool has_other_past(const NodeName& name, ShardIndex shard) const {
    return std::ranges::count(state_.with_other_past(shard, now_), name) > 0;
  }

  // It is away for long, or has given the shard up for long.
  bool is_gone(const NodeName& name, ShardIndex shard) const {
    const ControlState::Node* node = state_.find(name);
    if (node == nullptr || now_ - node->heard > kReplaceAfter) return true;
    const auto given_up = node->given_up.find(shard);
    return given_up != node->given_up.end() && now_ - given_up->second > kReplaceAfter;
  }

  // Whether there are as many replicas as wanted, and all have followed.
  bool has_enough(const std::vector<NodeName>& replicas, const Assignment& current) const {
    return replicas.size() >= kReplicas && std::ranges::all_of(replicas, [&](const auto& name) {
             return name == current.owner || is_caught_up(name, current);
           });
  }

  // After a move to a node that was no replica there is one too many. One that shares its zone with
  // another goes first.
  void drop_surplus(std::vector<NodeName>& replicas, const Assignment& current) const {
    if (replicas.size() <= kReplicas || state_.shard(current.shard).has_open_move() ||
        !has_enough(replicas, current))
      return;
    const auto shares_zone = [&](const NodeName& name) {
      return std::ranges::count_if(
                 replicas, [&](const NodeName& other) { return zone(other) == zone(name); }) > 1;
    };
    const auto worst = std::ranges::min_element(
        replicas.begin() + 1, replicas.end(), {}, [&](const NodeName& name) {
          return std::pair(!shares_zone(name), weight(current.shard, name));
        });
    replicas.erase(worst);
  }

  // `kept` and as many of `from` as are missing, those in new zones first, and of these those that
  // can copy a store from another node, if there is one to copy.
  std::vector<NodeName> choose(ShardIndex shard, const std::set<NodeName>& from,
                               std::vector<NodeName> kept) const {
    const bool is_first = !state_.shard(shard).assignment;
    std::vector<NodeName> others;
    for (const NodeName& name : from)
      if (std::ranges::find(kept, name) == kept.end() && !has_given_up(name, shard))
        others.push_back(name);
    std::ranges::sort(others, std::greater<>(), [&](const NodeName& name) {
      return std::pair(is_first || linked_.contains(name), weight(shard, name));
    });
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
      if (!current || !fit_.contains(current->owner) || is_requested(*current) ||
          is_held_back(*current))
        continue;
      for (const NodeName& standby : current->standbys)
        if (may_get(standby) && owned_[standby] + 2 <= owned_[current->owner] &&
            is_caught_up(standby, *current))
          return move(*current, standby);
    }
  }

  // WA6.
  bool may_get(const NodeName& name) const { return fit_.contains(name) && linked_.contains(name); }

  // An operator put the shard where it is.
  bool is_requested(const Assignment& current) const {
    const auto& requested_move = state_.shard(current.shard).requested_move;
    return requested_move && requested_move->to == current.owner;
  }

  void move(const Assignment& current, const NodeName& to) {
    Assignment made = next_of(current.shard, to);
    for (const NodeName& name : current.replicas())
      if (name != to && !state_.is_forgotten(name)) made.standbys.push_back(name);
    planned_.push_back(std::move(made));
  }

  Assignment next_of(ShardIndex shard, const NodeName& owner) const {
    Assignment made{.term = state_.term(),
                    .shard = shard,
                    .number = AssignmentNo(state_.term().value() << kTermShift).next(),
                    .owner = owner};
    const auto& current = state_.shard(shard).assignment;
    if (!current) return made;
    made.number = std::max(made.number, current->number.next());
    made.previous = current->owner == owner ? current->previous : current->owner;
    made.applied_move = current->applied_move;
    return made;
  }

  // The last record that the node has read; none: it does not follow the shard yet.
  std::optional<Position> applied(const NodeName& name, ShardIndex shard) const {
    const ControlState::Node* node = state_.find(name);
    if (node == nullptr) return std::nullopt;
    const auto found = node->beat.reached.find(shard);
    if (found == node->beat.reached.end()) return std::nullopt;
    return found->second.applied;
  }

  bool has_given_up(const NodeName& name, ShardIndex shard) const {
    const ControlState::Node* node = state_.find(name);
    return node != nullptr && node->beat.given_up.contains(shard);
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
  std::set<NodeName> hosts_;   // Those that may get another replica.
  std::set<NodeName> fit_;     // To own a shard.
  std::set<NodeName> linked_;  // Well, as their last beats say.
  std::map<NodeName, std::size_t> owned_;
  std::vector<Assignment> planned_;
};

}  // namespace

std::vector<Assignment> plan_assignments(const ControlState& state, SteadyInstant now) {
  return Planner(state, now).plan();
}

std::string why_held_back(const std::vector<NodeName>& with_other_past) {
  if (with_other_past.empty()) return "";
  std::string names;
  for (const NodeName& name : with_other_past) names += (names.empty() ? "" : ", ") + name;
  return names +
         (with_other_past.size() == 1 ? " has other records than its log, or more"
                                      : " have other records than its log, or more") +
         ": what the log has lost may be only there";
}

std::map<ShardIndex, std::string> unserved_shards(const ControlState& state, SteadyInstant now) {
  std::map<ShardIndex, std::string> unserved;
  for (std::uint32_t i = 0; i < state.shard_count(); ++i)
    if (const ShardIndex shard(i); state.is_unserved(shard, now))
      unserved.emplace(shard, why_held_back(state.with_other_past(shard, now)));
  return unserved;
}

std::set<NodeName> alive_nodes(const ControlState& state, SteadyInstant now) {
  std::set<NodeName> alive;
  for (const auto& [name, node] : state.nodes())
    if (state.is_alive(name, now)) alive.insert(name);
  return alive;
}

std::set<NodeName> well_linked(const ControlState& state, SteadyInstant now) {
  const std::set<NodeName> alive = alive_nodes(state, now);
  return well_linked(state, alive, possible_owners(state, alive, now),
                     [&](const NodeName& one, const NodeName& other) {
                       return are_apart(state, one, other, now);
                     });
}

bool clock_is_good(const ControlState& state, const NodeName& name, SteadyInstant now) {
  const ControlState::Node* node = state.find(name);
  if (node == nullptr) return false;
  std::size_t near = 0, all = 0;
  for (const auto& [other, its] : state.nodes()) {
    if (!state.is_alive(other, now)) continue;
    ++all;
    const Duration difference = node->clock_ahead - its.clock_ahead;
    if (difference >= -kClockOffMax && difference <= kClockOffMax) ++near;
  }
  return 2 * near > all || all <= 2;
}

}  // namespace stanchion::fleet
