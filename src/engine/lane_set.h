// The lanes of a queue, and the choice of the next one to receive from.
//
// The kinds of queue differ only here: in how the next lane is chosen, and in when a lane is
// locked.
//
//   standard  Lanes take turns, so a tenant that just arrived is served among the next few. Tenants
//             that keep the consumers busy are noisy and come after all quiet ones, those with the
//             fewest messages in flight first; at each receive one of them is judged again, so that
//             none is treated as noisy for longer than it is. No locks. Messages without a group
//             share one plain lane, which is never noisy. With a single lane this means oldest
//             first.
//   FIFO      Lanes stand in a line. A lane joins it at the back when its head is ready and no
//             earlier message of it is away (in flight, or leaving for another queue); later
//             messages that are away do not matter. It keeps its place until its head is held back,
//             because a message was taken, or until nothing waits any more. A delayed head is not
//             received, but does not cost the lane its place.
//
//   S1  A lane is in eligible_ exactly if it may be received from.
//   S2  A lane with nothing waiting, in flight, delayed or leaving does not exist (except the plain
//       one).
//   S3  FIFO: a lane that may be received from has a place; one whose head is held back, or in
//       which nothing waits, has none.
//   S4  FIFO: a place that does not follow from the lane's head is in the store, or the lane is in
//       unsaved_.
//
// The lanes whose places the checkpoint under way has yet to write are pending. A lane is written,
// by save_place(), before anything changes on which its place depends.
#pragma once

#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/indexed_list.h"
#include "engine/lane.h"
#include "engine/memory_share.h"
#include "engine/store/store_keys.h"
#include "engine/unsaved_list.h"

namespace stanchion::engine {

class LaneSet {
 public:
  // The memory of the lanes is added to the share.
  LaneSet(bool fifo, MemoryShare& share) : fifo_(fifo), plain_("", Seq()), share_(share) {}

  // The lane of a group, created with this message if need be. The empty group is the plain lane.
  Lane& of(std::string_view group, Seq first);
  Lane* find(std::string_view group);
  const Lane* find(std::string_view group) const;

  // The lane to receive from next; nullptr if no lane has anything to give.
  Lane* next() const { return eligible_.empty() ? nullptr : &eligible_.top(); }
  // Until take_back(), next() does not name this lane, and S1 does not hold for it. False if it could
  // not be received from anyway.
  bool pass_over(Lane& lane);
  void take_back(Lane& lane);

  // To be called after any change in what waits in the lane, in its locks, or in its head's state.
  // Drops the lane if it is idle.
  void refresh(Lane& lane);

  // When a message of the lane is due was changed, perhaps to this very instant: the next checkpoint
  // has to look at the lane's place.
  void due_changed(Lane& lane) {
    if (fifo_ && lane.place) unsaved_.add(lane);
  }

  // A message of the lane was delayed until now.
  void fell_due(Lane& lane, Instant due) {
    if (fifo_) lane.fell_due = due;
  }

  // A message was added to the lane.
  void sent(Lane& lane, Seq seq, Instant now) {
    lane.last_sent = now;
    newest_ = seq;
  }
  // The message is ready, and nothing waits before it.
  void begins(Lane& lane) {
    if (fifo_) lane.place = {newest_, 0};
  }

  // A message of the lane was handed to a consumer; total counts the queue's messages in flight.
  void served(Lane& lane, std::size_t total_in_flight, Instant now);

  // A message of the lane occupied a consumer for this long and no longer does.
  void released(Lane& lane, Duration busy, std::size_t total_in_flight, Instant now);

  // A checkpoint writes the places that changed since the last one: begin_save() fixes which. `at`
  // is the instant of the checkpoint.
  void begin_save();
  bool has_pending() const { return unsaved_.has_pending() || !pending_erased_.empty(); }
  bool is_pending(const Lane& lane) const { return unsaved_.is_pending(lane); }
  void save_place(Lane& lane, Batch& batch, StockName stock, Instant at);
  // Writes one of those that are pending, or erases one. REQUIRES: has_pending().
  void save_next(Batch& batch, StockName stock, Instant at);
  // Recovery: load_place() for each saved place; then, when everything else is loaded, loaded().
  Status load_place(Lane& lane, std::string_view value);
  void forget_place(LaneName lane) { erased_places_.insert(lane); }
  void loaded(Seq newest, Instant at);

  std::size_t size() const { return lanes_.size(); }
  std::size_t bytes() const;  // Walks over all lanes.
  std::size_t noisy_count() const { return noisy_.size(); }
  bool is_noisy(const Lane& lane) const { return noisy_.holds(lane); }
  const Lane& noisy(std::size_t index) const { return noisy_[index]; }

  template <class Visitor>
  void for_each(Visitor&& visit) const {
    visit(plain_);
    for (const auto& [group, lane] : lanes_) visit(*lane);
  }

  // The lanes in the order in which they began, the plain one first: the first of those that began
  // with this message or later, and the next one; nullptr if there is none.
  const Lane* first_born_from(Seq first) const;
  const Lane* next_born(const Lane& lane) const;
  // The lane's part of the time for which messages occupied consumers recently, in percent.
  std::uint32_t busy_percent(const Lane& lane, Instant now) const;

  bool may_be_received_from(const Lane& lane) const;
  bool is_eligible(const Lane& lane) const { return Eligible::holds(lane); }
  bool is_sound() const { return eligible_.is_sound(); }

  // S3 and S4 hold.
  bool is_in_place(const Lane& lane) const;

 private:
  // Quiet lanes by turn, then noisy ones by messages in flight; ties go to the oldest head. FIFO
  // lanes by their places.
  struct Rank {
    std::uint64_t order = 0;
    std::uint64_t head = 0;
    friend auto operator<=>(const Rank&, const Rank&) = default;
  };
  using Eligible = IndexedHeap<Lane, Rank, &Lane::heap_index>;

  struct ByBirth {
    using type = Seq;
    const type& operator()(const Lane& lane) const { return lane.born; }
  };
  // No two have the same birth, unless they come from a damaged store.
  using Births = boost::intrusive::multiset<
      Lane, boost::intrusive::member_hook<Lane, BirthHook, &Lane::birth_hook>,
      boost::intrusive::key_of_value<ByBirth>, boost::intrusive::constant_time_size<false>>;

  Rank rank_of(const Lane& lane) const;
  bool keep_place(Lane& lane);
  bool must_save_place(const Lane& lane) const;
  static bool falls_due_at(const Lane& lane, Instant at);
  void forget_saved_place(Lane& lane);
  std::uint64_t turn_of_newcomer() const;
  void judge(Lane& lane, std::size_t total_in_flight, Instant now);
  void set_noisy(Lane& lane, bool noisy);

  const bool fifo_;
  Lane plain_;
  MemoryShare& share_;
  boost::unordered_flat_map<std::string_view, std::unique_ptr<Lane>> lanes_;
  Births births_;  // All of lanes_.
  Eligible eligible_;

  // FIFO.
  Seq newest_;                // The last message that came.
  std::uint64_t joined_ = 0;  // Counts lanes that rejoined the line.
  UnsavedList<Lane, &Lane::unsaved_index> unsaved_;
  std::set<LaneName> erased_places_;
  std::set<LaneName> pending_erased_;  // Those that the checkpoint under way has yet to erase.

  // Fair queues.
  std::uint64_t turn_ = 0;
  RecentSum busy_;
  IndexedList<Lane, &Lane::noisy_index> noisy_;
  std::size_t next_noisy_ = 0;  // The next noisy lane to be judged again.
};

// FIFO: the groups in the line, the one to receive from next first. Visits all lanes.
std::vector<std::string> line_of(const LaneSet& lanes);

}  // namespace stanchion::engine
