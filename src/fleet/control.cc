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
  const Duration ahead = beat.clock.time_since_epoch() - now.time_since_epoch();
  const auto [known, first] = nodes_.try_emplace(beat.node);
  Node& node = known->second;
  // Its process before may have had another time.
  const bool is_another = first || beat.process != node.beat.process;
  if (is_another || now - node.heard > kDeadAfter) node.up = now;
  node.beat = beat;
  node.heard = now;
  std::erase_if(node.given_up, [&](const auto& one) { return !beat.given_up.contains(one.first); });
  for (const auto& [shard, why] : beat.given_up) node.given_up.try_emplace(shard, now);
  std::erase_if(node.other_past, [&](const auto& o) { return !beat.other_past.contains(o.first); });
  for (const ShardIndex shard : beat.other_past) node.other_past.try_emplace(shard, now);
  if (is_another || ahead >= node.clock_ahead || now - node.clock_seen > kClockMemory) {
    node.clock_ahead = ahead;
    node.clock_seen = now;
  }
  std::erase_if(node.unlinked, [&](const auto& one) {
    return !beat.linked || beat.linked->contains(one.first) || !nodes_.contains(one.first);
  });
  for (const auto& [other, its] : nodes_)
    if (beat.linked && other != beat.node && !beat.linked->contains(other))
      node.unlinked.try_emplace(other, now);
  for (const auto& [index, reached] : beat.reached) {
    if (reached.service == 0 || index.value() >= shards_.size()) continue;
    Shard& shard = shards_[index.value()];
    if (shard.assignment && shard.assignment->owner == beat.node) shard.served = now;
  }
  forgotten_.erase(beat.node);
}

void ControlState::take(const CoordinatorClaim& claim, SteadyInstant) {
  if (claim.term <= term_) return;
  term_ = claim.term;
  coordinator_ = claim.node;
}

void ControlState::take(const Assignment& assignment, SteadyInstant now) {
  if (assignment.shard.value() >= shards_.size()) return;
  Shard& shard = shards_[assignment.shard.value()];
  // The coordinator of an earlier term did not know of this one.
  if (shard.assignment && assignment.term < shard.assignment->term) return;
  if (!shard.assignment) shard.served = now;
  shard.assignment = assignment;
}

void ControlState::take(const Release& release, SteadyInstant) {
  if (release.shard.value() >= shards_.size()) return;
  shards_[release.shard.value()].released[release.node] = release.number;
}

void ControlState::take(const FleetMetadata& metadata, SteadyInstant) {
  if (!metadata_) metadata_ = metadata;
}

void ControlState::take(const Drain& drain, SteadyInstant) {
  drain.on ? (void)drained_.insert(drain.node) : (void)drained_.erase(drain.node);
}

void ControlState::take(const Move& move, SteadyInstant) {
  if (move.shard.value() < shards_.size()) shards_[move.shard.value()].requested_move = move;
}

void ControlState::take(const Forget& forget, SteadyInstant) {
  nodes_.erase(forget.node);
  forgotten_.insert(forget.node);
}

void ControlState::take(const Skip& skip, SteadyInstant) {
  if (skip.shard.value() >= shards_.size()) return;
  shards_[skip.shard.value()].skipped.insert(skip.offset);
}

bool ControlState::Shard::is_released() const {
  if (!assignment || assignment->previous.empty()) return true;
  const auto given_way = released.find(assignment->previous);
  return given_way != released.end() && given_way->second >= assignment->number;
}

bool ControlState::Shard::has_open_move() const {
  return requested_move && !(assignment && assignment->applied_move == requested_move->id);
}

const ControlState::Node* ControlState::find(const NodeName& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::uint32_t ControlState::format_of_all() const {
  std::uint32_t least = 0;
  for (const auto& [name, node] : nodes_)
    least = least == 0 ? node.beat.format : std::min(least, node.beat.format);
  return least;
}

void ControlState::suspect(const NodeName& name, SteadyInstant now) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  SteadyInstant& heard = found->second.heard;
  heard = std::min(heard, now - (kDeadAfter - kDeadAfterBreak));
}

bool ControlState::is_alive(const NodeName& name, SteadyInstant now) const {
  const Node* node = find(name);
  return node != nullptr && now - node->heard <= kDeadAfter;
}

bool ControlState::is_unserved(ShardIndex index, SteadyInstant now) const {
  const auto& assignment = shard(index).assignment;
  return !assignment || !is_alive(assignment->owner, now) ||
         find(assignment->owner)->beat.given_up.contains(index) ||
         now - shard(index).served > kUnservedAfter;
}

std::vector<NodeName> ControlState::with_other_past(ShardIndex shard, SteadyInstant now) const {
  std::vector<NodeName> found;
  for (const auto& [name, node] : nodes_)
    if (is_alive(name, now) && node.beat.other_past.contains(shard)) found.push_back(name);
  return found;
}

Position ControlState::saved_by_all(ShardIndex index, SteadyInstant now) const {
  const auto& assignment = shard(index).assignment;
  if (!assignment) return Position();
  std::size_t counted = 0;
  Position least(UINT64_MAX);
  for (const NodeName& name : assignment->replicas()) {
    const Node* node = find(name);
    if (node != nullptr && node->beat.given_up.contains(index)) {
      const auto since = node->other_past.find(index);
      if (since != node->other_past.end() && now - since->second <= kOtherPastWait)
        return Position();
      continue;
    }
    const auto reached = node == nullptr ? std::map<ShardIndex, Beat::Reached>::const_iterator()
                                         : node->beat.reached.find(index);
    if (node == nullptr || reached == node->beat.reached.end()) return Position();
    least = std::min(least, reached->second.saved);
    ++counted;
  }
  return counted < 2 ? Position() : least;
}

}  // namespace stanchion::fleet
