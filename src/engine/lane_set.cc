#include "engine/lane_set.h"

#include <algorithm>

#include "model/limits.h"

namespace stanchion::engine {
namespace {

// Rank::order of a noisy lane: above every turn, then by messages in flight.
constexpr std::uint64_t kNoisyBit = std::uint64_t{1} << 63;
constexpr int kInFlightShift = 40;

// Below this much recent work on a queue, shares of it say nothing.
constexpr std::uint64_t kBusyMillisMin = 1'000;

}  // namespace

Lane& LaneSet::of(std::string_view group) {
  if (group.empty()) return plain_;
  if (Lane* lane = find(group)) return *lane;
  auto lane = std::make_unique<Lane>(group);
  Lane& made = *lane;
  lanes_.emplace(std::string_view(made.group), std::move(lane));
  return made;
}

Lane* LaneSet::find(std::string_view group) {
  if (group.empty()) return &plain_;
  const auto found = lanes_.find(group);
  return found == lanes_.end() ? nullptr : found->second.get();
}

bool LaneSet::may_be_received_from(const Lane& lane) const {
  if (lane.waiting == 0) return false;
  if (!fifo_) return true;
  if (lane.locks > 0) return false;
  const Message* head = lane.head();
  return head == nullptr || head->state == State::kReady;  // What is cold is ready.
}

void LaneSet::refresh(Lane& lane) {
  if (may_be_received_from(lane)) {
    // A lane that had nothing to give does not save up turns.
    if (!is_eligible(lane)) lane.turn = std::max(lane.turn, turn_of_newcomer());
    eligible_.set(lane, rank_of(lane));
    return;
  }
  if (is_eligible(lane)) eligible_.remove(lane);
  if (!lane.idle() || &lane == &plain_) return;
  set_noisy(lane, false);
  if (lane.first_chunk == nullptr) {
    lanes_.erase(lanes_.find(std::string_view(lane.group)));
    return;
  }
  // Kept for messages that are leaving; who comes next is a newcomer all the same.
  lane.turn = 0;
  lane.busy = {};
  lane.last_sent = {};
}

// After a restart a lane may be far behind the others, because turns are not kept: a newcomer is
// then no worse off than that lane.
std::uint64_t LaneSet::turn_of_newcomer() const {
  if (eligible_.empty() || eligible_.top().noisy_index != kNotInHeap) return turn_;
  return std::min(turn_, eligible_.top().turn);
}

void LaneSet::served(Lane& lane, std::size_t total_in_flight, Instant now) {
  if (fifo_) return;
  turn_ = std::max(turn_, lane.turn);
  ++lane.turn;
  judge(lane, total_in_flight, now);
  if (noisy_.empty()) return;
  Lane& other = *noisy_[++next_noisy_ % noisy_.size()];
  if (&other == &lane) return;
  judge(other, total_in_flight, now);
  if (is_eligible(other)) eligible_.set(other, rank_of(other));
}

void LaneSet::released(Lane& lane, Duration busy, std::size_t total_in_flight, Instant now) {
  if (fifo_) return;
  const auto millis = static_cast<std::uint64_t>(std::max<std::int64_t>(0, busy.count()));
  lane.busy.add(millis, now);
  busy_.add(millis, now);
  judge(lane, total_in_flight, now);
}

LaneSet::Rank LaneSet::rank_of(const Lane& lane) const {
  const std::uint64_t head = lane.head_seq().value();
  if (fifo_) return {0, head};
  if (lane.noisy_index == kNotInHeap) return {lane.turn, head};
  return {kNoisyBit | std::uint64_t{lane.locks} << kInFlightShift, head};
}

void LaneSet::judge(Lane& lane, std::size_t total_in_flight, Instant now) {
  if (&lane == &plain_) return;
  const bool crowds = lane.locks >= limits::kNoisyInFlightMin &&
                      lane.locks * 100ULL > total_in_flight * limits::kNoisySharePercent;
  const std::uint64_t all = busy_.at(now);
  const bool dwells =
      all >= kBusyMillisMin && lane.busy.at(now) * 100 > all * limits::kNoisySharePercent;
  const bool sends = now - lane.last_sent < limits::kNoisySilenceMax;
  set_noisy(lane, sends && (crowds || dwells));
}

void LaneSet::set_noisy(Lane& lane, bool noisy) {
  if (noisy == (lane.noisy_index != kNotInHeap)) return;
  if (noisy) {
    lane.noisy_index = static_cast<std::uint32_t>(noisy_.size());
    noisy_.push_back(&lane);
    return;
  }
  noisy_.back()->noisy_index = lane.noisy_index;
  noisy_[lane.noisy_index] = noisy_.back();
  noisy_.pop_back();
  lane.noisy_index = kNotInHeap;
  // Having been passed over earns no turns.
  lane.turn = std::max(lane.turn, turn_);
}

}  // namespace stanchion::engine
