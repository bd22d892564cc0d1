// The state of each message of a stock: how many there are in each, when that changes by itself,
// and how many hold back others of their lane.
//
//   enter ─▶ delayed, ready or in flight ─▶ leave
//                  ▲ change │
//                  └────────┘
//
// Messages that are only in the store are ready, and only counted here.
//
//   Q1  A live message is in exactly one state; counts() adds up to the messages in memory and the
//       members of cold chunks.
//   Q2  Messages that are delayed or in flight are in timers_, by when they are due; no others are.
//       Those in memory whose retention began before they came are in early_, by when it began.
//   Q3  A lane's locks are its messages in flight plus, on FIFO queues, those under way to another
//       queue; on FIFO queues all of these are its blockers. Lanes with locks are counted.
#pragma once

#include <compare>
#include <cstddef>

#include "base/time.h"
#include "engine/indexed_heap.h"
#include "engine/lane.h"
#include "engine/message.h"
#include "engine/message_table.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Counts {
  std::size_t visible = 0;
  std::size_t in_flight = 0;
  std::size_t delayed = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
};

class MessageStates {
 public:
  explicit MessageStates(bool fifo) : fifo_(fifo) {}

  const Counts& counts() const { return counts_; }

  // A message is counted in its state from now on, and no longer.
  void enter(Message& message);
  void leave(Message& message);
  // From its state to this one; unless that is ready, it is due then.
  void change(Message& message, State state, Instant due);
  // It stays in flight, until another time.
  void reschedule(Message& message, Instant due);

  // Ready messages came into the store alone, or left it.
  void add_cold(std::size_t messages) { counts_.visible += messages; }
  void remove_cold(std::size_t messages);
  // A ready message was counted among those that are only in the store, and is in memory from now
  // on, …
  void came_in(Message& message);
  // … or the other way round.
  void went_out(Message& message);

  // The message is away: it holds back others of its lane, on FIFO queues the later ones.
  void lock(Message& message);
  void unlock(Message& message);
  std::size_t locked_lanes() const { return locked_lanes_; }

  // The first message to fall due, among those delayed and in flight, and when.
  Instant next_due() const { return timers_.empty() ? kNever : timers_.top_key().at; }
  Message& first_due() const { return timers_.top(); }
  // The message in memory that expires first; nullptr if there is none.
  Message* first_to_expire(const MessageTable& messages) const;

  // Ends the process if Q1 or Q2 does not hold for these messages in memory and so many others.
  // Visits all of the former.
  void check_invariants(const MessageTable& messages, std::size_t cold) const;

 private:
  struct Due {
    Instant at;
    Seq seq;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  std::size_t& count_of(State state);
  void note_early(Message& message);
  void forget_early(Message& message);

  const bool fifo_;
  Counts counts_;
  std::size_t locked_lanes_ = 0;
  IndexedHeap<Message, Due, &Message::heap_index> timers_;
  IndexedHeap<Message, Due, &Message::early_index> early_;
};

}  // namespace stanchion::engine
