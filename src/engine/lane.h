// A lane: one ordered list of messages that wait to be received. A FIFO group, a tenant of a fair
// queue, or the one plain lane of messages without a group.
//
//   sent ─▶ line of chunks ┐
//                          ├─▶ head (the lower Seq of the two) ─▶ received
//   came back ─▶ returned ─┘
//
//   L1  The line of chunks is in order of Seq (see chunk.h); new messages join at its end.
//   L2  A message that returns (after a receive, or from a refused move) goes to `returned`, a heap
//       by Seq, so that each of a hundred thousand expired receives costs O(log n) wherever it
//       belongs.
//   L3  waiting = members of all chunks + messages in returned; `filled` has the chunks with
//       members, in order of Seq. Between those may be any number of others, which only messages in
//       flight or delayed ones keep alive.
//   L4  On FIFO queues the blockers are linked in order of Seq. `locks` counts exactly these.
//
// On FIFO queues delayed messages wait in their lane's line, because nothing may overtake them; on
// standard queues they join the line when they are due.
#pragma once

#include <boost/intrusive/set.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "base/time.h"
#include "engine/chunk.h"
#include "engine/message.h"
#include "model/ids.h"

namespace stanchion::engine {

// A sum that halves every kBusyHalfLife, so that recent events count more than old ones.
class RecentSum {
 public:
  void add(std::uint64_t amount, Instant now);
  std::uint64_t at(Instant now) const;

 private:
  std::uint64_t value_ = 0;
  std::int64_t epoch_ = 0;
};

// Where a FIFO lane stands in the queue's line: behind the lanes of all messages that had come when
// it joined, and behind those that rejoined the line before it.
struct Place {
  Seq after;                // The newest message when it joined; none: it is not in the line.
  std::uint64_t order = 0;  // 0: that message was the lane's own first one.

  explicit operator bool() const { return after != Seq(); }
  friend auto operator<=>(const Place&, const Place&) = default;
};

using BirthHook =
    boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                      boost::intrusive::optimize_size<true>>;

struct Lane {
  Lane(std::string_view name, Seq born_with) : group(name), born(born_with) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Adds a message to, and removes it from, the returned ones.
  void add_returned(Message& message);
  void remove_returned(Message& message);

  // The Seq of the message to receive next.
  // REQUIRES: waiting > 0.
  Seq head_seq() const;

  // The message itself; nullptr if it is not in memory, or if nothing waits.
  Message* head() const;

  // FIFO: a message that was taken (in flight or leaving) holds back all later ones of the lane.
  void block(Message& taken);
  void unblock(Message& taken);
  // Whether the head is held back. REQUIRES: waiting > 0.
  bool is_blocked() const { return first_blocker != nullptr && first_blocker->seq < head_seq(); }
  // Messages after this one are held back; the highest Seq if none is.
  Seq blocked_from() const {
    return first_blocker == nullptr ? Seq(UINT64_MAX) : first_blocker->seq;
  }

  // FIFO: whether the message, which is leaving, is all that holds back the head.
  bool has_more_behind(const Message& leaving) const;

  // The first chunk with members, and the next one behind it; nullptr if there is none.
  Chunk* front() const { return filled.empty() ? nullptr : const_cast<Chunk*>(&*filled.begin()); }
  Chunk* next_filled(const Chunk& chunk) const {
    const auto next = std::next(filled.iterator_to(chunk));
    return next == filled.end() ? nullptr : const_cast<Chunk*>(&*next);
  }
  // The last chunk with members that begins at this message or before it; nullptr if there is none.
  Chunk* last_filled_by(Seq seq) const {
    const auto behind = filled.upper_bound(seq);
    return behind == filled.begin() ? nullptr : const_cast<Chunk*>(&*std::prev(behind));
  }

  // The first chunk that may have a message behind `after`; nullptr if there is none.
  Chunk* first_chunk_behind(Seq after) const;

  bool idle() const { return waiting == 0 && locks == 0 && delayed == 0; }

  // L1 to L4 and C1 to C3 hold.
  bool is_sound() const;

  struct ByFrom {
    using type = Seq;
    const type& operator()(const Chunk& chunk) const {
      ++chunk.looks;
      return chunk.from;
    }
  };
  using FilledChunks = boost::intrusive::set<
      Chunk, boost::intrusive::member_hook<Chunk, FilledHook, &Chunk::filled_hook>,
      boost::intrusive::key_of_value<ByFrom>, boost::intrusive::constant_time_size<false>>;
  using Returned = IndexedHeap<Message, std::uint64_t, &Message::heap_index>;

  const std::string group;
  // The message with which it began, or that of its first chunk if it was loaded: the order in
  // which lanes are looked at. 0: the plain lane.
  const Seq born;
  BirthHook birth_hook;

  // Changed by Stock and its parts only.
  Chunk* first_chunk = nullptr;  // Owned.
  Chunk* last_chunk = nullptr;
  FilledChunks filled;
  std::unique_ptr<Returned> returned;  // Made when it is first needed; most lanes never need it.
  std::uint32_t waiting = 0;
  std::uint32_t locks = 0;    // Messages in flight and, on FIFO queues, those that are leaving.
  std::uint32_t delayed = 0;  // Standard queues: messages that join when they are due.

  // FIFO queues only, changed by block() and unblock().
  Message* first_blocker = nullptr;  // Linked by the pointers that also link members of a chunk.
  Message* last_blocker = nullptr;

  // From here on changed by LaneSet only.
  std::uint32_t heap_index = kNoIndex;     // Index in LaneSet::eligible_.
  Place place;                             // FIFO queues only.
  std::uint32_t unsaved_index = kNoIndex;  // Index among those whose place a checkpoint must write.
  bool place_saved = false;                // The store has a place for this lane.
  // Just loaded: without a place in the store it stands where its head does, once it is known whether
  // the head is delayed.
  bool restoring = false;
  // When a message of it was last delayed until. A chunk that has left memory knows it no longer,
  // but the store may.
  Instant fell_due;

  // Fair queues only; see LaneSet.
  std::uint64_t turn = 0;
  RecentSum busy;
  Instant last_sent;
  std::uint32_t noisy_index = kNoIndex;  // Index among the queue's noisy lanes.
};

}  // namespace stanchion::engine
