#include "engine/lane_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "engine/store/sense.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

// Rank::order of a noisy lane: above every turn, then by messages in flight.
constexpr std::uint64_t kNoisyBit = std::uint64_t{1} << 63;
constexpr int kInFlightShift = 40;

// The allocator's overhead for a string.
constexpr std::size_t kAllocationOverhead = 8;

// Below this much recent work on a queue, shares of it mean nothing.
constexpr std::uint64_t kBusyMillisMin = 1'000;

// A lane with its slots in the map and in the heap, both of which are some two thirds full; and its
// name, if it is not stored inline.
std::size_t memory_of(const Lane& lane) {
  constexpr std::size_t kPlaces =
      (sizeof(std::string_view) + 2 * sizeof(Lane*) + 2 * sizeof(std::uint64_t)) * 3 / 2;
  constexpr std::size_t kNameInPlace = 15;
  const std::size_t name = lane.group.size();
  return sizeof(Lane) + kPlaces + (name > kNameInPlace ? name + kAllocationOverhead : 0);
}

}  // namespace

Lane& LaneSet::of(std::string_view group, Seq first) {
  if (group.empty()) return plain_;
  if (Lane* lane = find(group)) return *lane;
  auto lane = std::make_unique<Lane>(group, first);
  Lane& made = *lane;
  // Without a search, except while lanes are loaded.
  births_.insert(births_.end(), made);
  lanes_.emplace(std::string_view(made.group), std::move(lane));
  share_.add(memory_of(made));
  return made;
}

Lane* LaneSet::find(std::string_view group) {
  return const_cast<Lane*>(std::as_const(*this).find(group));
}

const Lane* LaneSet::find(std::string_view group) const {
  if (group.empty()) return &plain_;
  const auto found = lanes_.find(group);
  return found == lanes_.end() ? nullptr : found->second.get();
}

const Lane* LaneSet::first_born_from(Seq first) const {
  if (first == Seq()) return &plain_;
  const auto found = births_.lower_bound(first);
  return found == births_.end() ? nullptr : &*found;
}

const Lane* LaneSet::next_born(const Lane& lane) const {
  const auto next = &lane == &plain_ ? births_.begin() : std::next(births_.iterator_to(lane));
  return next == births_.end() ? nullptr : &*next;
}

std::uint32_t LaneSet::busy_percent(const Lane& lane, Instant now) const {
  const std::uint64_t all = busy_.at(now);
  return all == 0 ? 0 : static_cast<std::uint32_t>(lane.busy.at(now) * 100 / all);
}

std::size_t LaneSet::bytes() const {
  std::size_t sum = 0;
  for (const auto& [group, lane] : lanes_) sum += memory_of(*lane);
  return sum;
}

bool LaneSet::may_be_received_from(const Lane& lane) const {
  if (lane.waiting == 0) return false;
  if (!fifo_) return true;
  if (lane.restoring || lane.is_blocked()) return false;
  const Message* head = lane.head();
  return head == nullptr || head->state == State::kReady;  // Cold messages are always ready.
}

void LaneSet::refresh(Lane& lane) {
  if (fifo_ ? keep_place(lane) : lane.waiting > 0) {
    // A lane without messages does not save up turns.
    if (!fifo_ && !is_eligible(lane)) lane.turn = std::max(lane.turn, turn_of_newcomer());
    eligible_.set(lane, rank_of(lane));
    return;
  }
  if (is_eligible(lane)) eligible_.remove(lane);
  if (!lane.idle() || &lane == &plain_) return;
  set_noisy(lane, false);
  if (lane.first_chunk == nullptr) {
    forget_saved_place(lane);
    share_.subtract(memory_of(lane));
    births_.erase(births_.iterator_to(lane));
    lanes_.erase(lanes_.find(std::string_view(lane.group)));
    return;
  }
  // The lane is kept for messages that are leaving; but the next message treats it as a newcomer.
  lane.turn = 0;
  lane.busy = {};
  lane.last_sent = {};
}

bool LaneSet::pass_over(Lane& lane) {
  if (!is_eligible(lane)) return false;
  eligible_.remove(lane);
  return true;
}

void LaneSet::take_back(Lane& lane) {
  if (!is_eligible(lane)) eligible_.push(lane, rank_of(lane));
}

// Updates the lane's place in the line. Returns whether the lane may be received from: the same as
// may_be_received_from(), but looks at the head only once.
bool LaneSet::keep_place(Lane& lane) {
  CHECK(!is_pending(lane), "a place is written before it changes");
  const Place before = lane.place;
  bool may = false;
  Seq head;
  if (lane.waiting > 0) head = lane.head_seq();
  // Nothing waits, or an earlier message is away: the lane leaves the line.
  if (lane.waiting == 0 || lane.blocked_from() < head) {
    lane.place = {};
  } else {
    const Message* message = lane.head();
    may = message == nullptr || message->state == State::kReady;
    // A lane joins at the back. A lane just loaded without a saved place has that of its head, as
    // it had before the restart.
    if (may && !lane.place)
      lane.place = lane.restoring ? Place{head, 0} : Place{newest_, ++joined_};
  }
  lane.restoring = false;
  const bool must_save = lane.place && (!may || lane.place != Place{head, 0});
  if (must_save ? lane.place != before || !lane.place_saved : lane.place_saved) unsaved_.add(lane);
  return may;
}

// Most lanes are not touched between their first message and their last: then the place follows
// from the head.
bool LaneSet::must_save_place(const Lane& lane) const {
  if (!lane.place) return false;
  return !may_be_received_from(lane) || lane.place != Place{lane.head_seq(), 0};
}

void LaneSet::forget_saved_place(Lane& lane) {
  CHECK(!is_pending(lane), "a place is written before it changes");
  if (lane.place_saved) erased_places_.insert(lane_name(lane.group));
  unsaved_.remove(lane);
}

// A start treats a head that falls due at the very instant of the checkpoint as still delayed,
// because it may have been.
bool LaneSet::falls_due_at(const Lane& lane, Instant at) {
  if (lane.waiting == 0) return false;
  if (const Message* head = lane.head()) return head->due >= at;
  return std::max(lane.front()->cold->summary.due_max, lane.fell_due) >= at;
}

void LaneSet::begin_save() {
  unsaved_.begin();
  CHECK(pending_erased_.empty(), "one checkpoint at a time");
  pending_erased_.swap(erased_places_);
}

void LaneSet::save_place(Lane& lane, Batch& batch, StockName stock, Instant at) {
  unsaved_.remove(lane);
  const bool must = must_save_place(lane);
  const bool for_now = !must && lane.place && falls_due_at(lane, at);
  if (for_now) unsaved_.add(lane);  // The next checkpoint erases it.
  const bool had = std::exchange(lane.place_saved, must || for_now);
  if (!had && !lane.place_saved) return;
  const LaneName name = lane_name(lane.group);
  if (!lane.place_saved) {
    pending_erased_.insert(name);
    return;
  }
  Put put{place_key(stock, name), {}, nullptr};
  ByteWriter writer(put.head);
  writer.u64(lane.place.after.value());
  writer.u64(lane.place.order);
  batch.puts.push_back(std::move(put));
  pending_erased_.erase(name);  // An earlier lane had this name.
}

// Erased are those that none of the pending lanes is about to write.
void LaneSet::save_next(Batch& batch, StockName stock, Instant at) {
  if (unsaved_.has_pending()) return save_place(unsaved_.first_pending(), batch, stock, at);
  batch.erased.push_back(place_key(stock, *pending_erased_.begin()));
  pending_erased_.erase(pending_erased_.begin());
}

Status LaneSet::load_place(Lane& lane, std::string_view value) {
  ByteReader reader(value);
  lane.place.after = Seq(reader.u64());
  lane.place.order = reader.u64();
  if (!fifo_ || !reader.ok() || !reader.at_end() || !lane.place)
    return makes_no_sense("the place of a group");
  lane.place_saved = true;
  joined_ = std::max(joined_, lane.place.order);
  return {};
}

void LaneSet::loaded(Seq newest, Instant at) {
  newest_ = newest;
  // Lanes that turn out to be idle are removed during the loop, so the loop uses a copy.
  std::vector<Lane*> lanes{&plain_};
  for (const auto& [group, lane] : lanes_) lanes.push_back(lane.get());
  for (Lane* lane : lanes) {
    lane->restoring = fifo_;
    // Whether the head is delayed is known only when it has been read; until then the lane waits.
    const bool unknown = fifo_ && lane->waiting > 0 && lane->head() == nullptr &&
                         lane->front()->cold->summary.due_max > at;
    if (!unknown) refresh(*lane);
  }
}

bool LaneSet::is_in_place(const Lane& lane) const {
  if (!fifo_) return !lane.place;
  const bool held_back = lane.waiting == 0 || lane.is_blocked();
  if (lane.place ? held_back : may_be_received_from(lane)) return false;
  return must_save_place(lane) == lane.place_saved || unsaved_.is_unsaved(lane) ||
         unsaved_.is_pending(lane);
}

// After a restart a lane may be far behind the others, because turns are not saved: a newcomer is
// then no worse off than that lane.
std::uint64_t LaneSet::turn_of_newcomer() const {
  if (eligible_.empty() || noisy_.holds(eligible_.top())) return turn_;
  return std::min(turn_, eligible_.top().turn);
}

void LaneSet::served(Lane& lane, std::size_t total_in_flight, Instant now) {
  if (fifo_) return;
  turn_ = std::max(turn_, lane.turn);
  ++lane.turn;
  judge(lane, total_in_flight, now);
  if (noisy_.empty()) return;
  Lane& other = noisy_[++next_noisy_ % noisy_.size()];
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
  if (fifo_) return {lane.place.after.value(), lane.place.order};
  const std::uint64_t head = lane.head_seq().value();
  if (!noisy_.holds(lane)) return {lane.turn, head};
  return {kNoisyBit | std::uint64_t{lane.locks} << kInFlightShift, head};
}

// A tenant is noisy if it occupies many consumers now, or has occupied them for most of the recent
// time, and is still sending.
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
  if (noisy == noisy_.holds(lane)) return;
  if (noisy) return noisy_.add(lane);
  noisy_.remove(lane);
  // Having been passed over while noisy earns no turns.
  lane.turn = std::max(lane.turn, turn_);
}

std::vector<std::string> line_of(const LaneSet& lanes) {
  std::map<Place, std::string> places;
  lanes.for_each([&](const Lane& lane) {
    if (lane.place) CHECK(places.emplace(lane.place, lane.group).second, "a place is taken once");
  });
  std::vector<std::string> groups;
  for (auto& [place, group] : places) groups.push_back(std::move(group));
  return groups;
}

}  // namespace stanchion::engine
