// The messages of a queue since its last purge, in memory or in the store. Its parts own the data:
//
//   states_     how many messages are in each state, and when that changes by itself
//   lanes_      in which lanes they wait, and which of those is next
//   messages_   those that are in memory
//   residency_  how they are evicted and read back; in which chunks they are kept
//   writer_     what the next checkpoint has to write of them
//
// Each call changes all of them together, and leaves them consistent; Queue decides which call comes
// when, in queue.cc. What is written is settled with writer_ before it changes.
//
//   Q1 to Q3 are invariants of MessageStates; besides, ready messages wait in their lane, and so do
//   delayed ones of FIFO queues. Messages in flight stand in no line.
//   Q4  A lane may be received from exactly if LaneSet says so (S1): on FIFO queues if its head is
//       ready and none of its blockers is earlier. Idle lanes do not exist (S2), and each lane has
//       the place that it should have (S3, S4).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/check.h"
#include "base/result.h"
#include "engine/lane_set.h"
#include "engine/memory.h"
#include "engine/memory_share.h"
#include "engine/message_states.h"
#include "engine/message_table.h"
#include "engine/receiving.h"
#include "engine/resident_messages.h"
#include "engine/store/checkpoint_writer.h"
#include "engine/store/residency.h"
#include "engine/store/stock_loader.h"
#include "engine/store/store_keys.h"
#include "engine/watch_figures.h"

namespace stanchion::engine {

// What memory and store hold. Records belong to messages that cannot be evicted: delayed, in
// flight, or returned.
struct Holdings {
  std::size_t queues = 0;
  std::size_t lanes = 0;
  std::size_t chunks = 0;
  std::size_t in_memory = 0;  // Messages with a record in memory …
  std::size_t records = 0;    // … of which these must stay in memory.
  std::size_t cold = 0;       // Messages that are only in the store.
  std::size_t leaving = 0;    // On their way to another queue.
  std::size_t deduplication_ids = 0;
  std::size_t bytes = 0;  // Of messages in memory.
};

class Stock {
 public:
  Stock(StockName name, bool fifo, Memory& memory);
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  // The stock is about to be destroyed, perhaps by another thread: it no longer counts as memory.
  void release_memory();

  StockName name() const { return name_; }
  const Counts& counts() const { return states_.counts(); }
  // Its memory, including lanes and chunks.
  std::size_t bytes() const { return messages_.bytes() + structure_.bytes(); }
  void add_to(Holdings& holdings) const;

  // The message, if it is in memory; else nullptr.
  Message* find(Seq seq) const { return messages_.find(seq); }
  // Messages in memory, in order of Seq. The visitor may not change the stock.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    messages_.table().for_each([&](const Message& message) { visit(message); });
  }

  // When the oldest message came; nullopt if there is none.
  std::optional<Instant> oldest_entered() const;
  // What AWS watches; see WatchFigures.
  WatchFigures watch_figures() const {
    return engine::watch_figures(fifo_, lanes_, states_, messages_.table(), residency_.cold());
  }

  // Receiving: see Queue, which has the same calls.
  bool has_receivable() const { return lanes_.next() != nullptr; }
  Next next_to_receive(const Hold& held) const;
  // Whether a receive that chooses its messages may take this one: on FIFO queues only if it could
  // be the next of any receive, or of the one that holds its lane.
  bool may_be_taken(const Message& message, const Hold& held) const;
  // Whether that is possible of a message that is perhaps not in memory, as the first that the
  // receive takes from its lane or as a later one.
  bool may_come(Seq seq, const std::string& group, bool first) const;

  // Lets next_to_receive() pass over a lane, until those lanes are taken back.
  bool pass_over(Lane& lane) { return lanes_.pass_over(lane); }
  void take_back(Lane& lane) { lanes_.take_back(lane); }

  // The life of a message. Each call moves it from one state to another, and updates the counts,
  // its lane, the timers, and what the next checkpoint has to write.
  //
  // A new message: delayed if `due` is in the future, else ready. Messages whose retention began by
  // `expired` no longer count as waiting, even if it is not known yet which they are.
  Message& insert(std::unique_ptr<Message> message, Instant due, Instant now, Instant expired);
  // From ready to in flight.
  void hand_out(Message& message, Instant visible_again, Instant now);
  // Stays in flight, until another time.
  void reschedule(Message& message, Instant visible_again);
  // From delayed or in flight to ready.
  void make_ready(Message& message, Instant now);
  // FIFO: waiting messages that were never received are delayed by this much from when they came.
  void delay_all(Duration delay, Instant now);
  // Removed, from any state.
  void erase(Message& message, Instant now);
  // From ready to leaving for another queue; on a FIFO queue it keeps its lane locked …
  std::unique_ptr<Message> begin_leaving(Message& message, Instant now);
  // … until it has arrived there,
  void forget_leaving(Message& message);
  // or was refused there, and is ready again.
  void take_back(std::unique_ptr<Message> message);

  // What falls due, and when.
  const MessageStates& states() const { return states_; }
  // The message in memory that expires first; nullptr if there is none.
  Message* first_to_expire() const { return states_.first_to_expire(messages_.table()); }

  // What is in memory of it, and how the rest is read.
  Residency& residency() { return residency_; }
  const Residency& residency() const { return residency_; }
  const LaneSet& lanes() const { return lanes_; }
  // What the next checkpoint has to write.
  CheckpointWriter& writer() { return writer_; }

  // Recovery: what a checkpoint wrote goes to the loader, and then loaded() ends it.
  StockLoader& loader();
  Status loaded(Seq begin, Seq end, Instant at);

  // End the process if an invariant does not hold. Visit the whole stock.
  void check_invariants() const;
  // Every lane of this FIFO queue is blocked by its messages in flight and by those that
  // `leaving(lane)` names, and by no others.
  template <class Leaving>
  void check_blockers(Leaving&& leaving) const {
    std::map<const Lane*, std::set<Seq>> away;
    messages_.table().for_each([&](const Message& m) {
      if (m.state == State::kInFlight) away[m.lane].insert(m.seq);
    });
    lanes_.for_each([&](const Lane& lane) {
      std::set<Seq>& expected = away[&lane];
      expected.merge(leaving(lane));
      std::set<Seq> blockers;
      for (const Message* m = lane.first_blocker; m != nullptr; m = m->next)
        blockers.insert(m->seq);
      CHECK(blockers == expected && lane.locks == blockers.size(), "Q3: blockers");
    });
  }

 private:
  void check_messages() const;
  void check_lanes() const;

  bool has_nothing_waiting(const Lane& lane, Instant expired) const;
  void release(Message& message, Instant now);
  void take_out_of_place(Message& message, Instant now);

  const StockName name_;
  const bool fifo_;
  Memory& memory_;
  ResidentMessages messages_;
  MemoryShare structure_;  // The part of lanes and chunks.
  LaneSet lanes_;
  MessageStates states_;
  CheckpointWriter writer_;
  Residency residency_;
  std::unique_ptr<StockLoader> loader_;  // While the stock is loaded.
};

}  // namespace stanchion::engine
