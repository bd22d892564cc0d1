#include "fleet/control.h"

#include <algorithm>

#include "fleet/limits.h"

namespace stanchion::fleet {

bool Assignment::includes(const NodeName& node) const {
  return owner == node || std::ranges::find(standbys, node) != standbys.end();
}

std::vector<NodeName> Assignment::replicas() const {
  std::vector<NodeName> all{owner};
  all.insert(all.end(), standbys.begin(), standbys.end());
  return all;
}

void ControlState::apply(const ControlRecord& record, SteadyInstant now) {
  std::visit([&](const auto& one) { take(one, now); }, record);
}

void ControlState::take(const Beat& beat, SteadyInstant now) {
  nodes_[beat.node] = {beat, now};
}

void ControlState::take(const WardenClaim& claim, SteadyInstant) {
  if (claim.term <= term_) return;
  term_ = claim.term;
  warden_ = claim.node;
}

void ControlState::take(const Assignment& assignment, SteadyInstant) {
  if (assignment.term != term_ || assignment.shard.value() >= shards_.size()) return;
  Shard& shard = shards_[assignment.shard.value()];
  const AssignmentNo last = shard.assignment ? shard.assignment->number : AssignmentNo();
  if (assignment.number != last.next()) return;
  if (shard.assignment && shard.assignment->owner != assignment.owner)
    shard.previous_owner = shard.assignment->owner;
  shard.assignment = assignment;
}

void ControlState::take(const Release& release, SteadyInstant) {
  if (release.shard.value() >= shards_.size()) return;
  Shard& shard = shards_[release.shard.value()];
  if (release.node == shard.previous_owner)
    shard.released = std::max(shard.released, release.number);
}

const ControlState::Node* ControlState::find(const NodeName& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool ControlState::is_alive(const NodeName& name, SteadyInstant now) const {
  const Node* node = find(name);
  return node != nullptr && now - node->heard <= kDeadAfter;
}

Position ControlState::saved_by_all(ShardIndex index) const {
  const auto& assignment = shard(index).assignment;
  if (!assignment) return Position();
  const std::vector<NodeName> replicas = assignment->replicas();
  if (replicas.size() < 2) return Position();
  Position least(UINT64_MAX);
  for (const NodeName& name : replicas) {
    const Node* node = find(name);
    const auto reached = node == nullptr ? std::map<ShardIndex, Beat::Reached>::const_iterator()
                                         : node->beat.reached.find(index);
    if (node == nullptr || reached == node->beat.reached.end()) return Position();
    least = std::min(least, reached->second.saved);
  }
  return least;
}

}  // namespace stanchion::fleet
