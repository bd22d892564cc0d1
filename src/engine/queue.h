// One queue: where each of its messages is, and when that changes by itself.
//
//   send ─▶ delayed ─time─▶ ready ─receive─▶ in flight ─delete─▶ gone
//                             ▲                 │
//                             └───── time ──────┴─ received too often ─▶ outbox ─▶ dead-letter
//                             queue
//
// A Queue changes only by the calls below, each of which is one fact or the passing of time. It
// decides nothing: whether a call is right was decided before the fact was written.
//
//   Q1  A live message is in messages_ and in exactly one state; counts() adds up to messages_.
//   Q2  Ready messages wait in their lane. Delayed ones are in timers_ (and, on FIFO queues, also
//   in
//       their lane's line). Those in flight are in timers_ only.
//   Q3  A lane's locks are its messages in flight plus, on FIFO queues, those under way to another
//       queue.
//   Q4  A lane may be received from exactly if LaneSet says so (S1), and idle lanes are gone (S2).
//   Q5  Seqs only grow, and no live message has a Seq that was not given yet or was purged.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/deduplication.h"
#include "engine/lane_set.h"
#include "engine/message_table.h"
#include "engine/move_task.h"
#include "engine/receive_attempts.h"
#include "model/ids.h"
#include "model/queue_attributes.h"
#include "model/request.h"

namespace stanchion::engine {

struct Counts {
  std::size_t visible = 0;
  std::size_t in_flight = 0;
  std::size_t delayed = 0;

  friend bool operator==(const Counts&, const Counts&) = default;
};

class Queue {
 public:
  Queue(QueueId id, QueueRef ref, QueueAttributes attributes, StringMap tags, Instant created);

  const QueueId id;
  const QueueRef ref;
  const std::string arn;
  const Instant created;
  StringMap tags;
  std::vector<MoveTask> tasks;            // Oldest first; at most the last one is running.
  std::uint32_t heap_index = kNotInHeap;  // In the engine's heap of deadlines.

  const QueueAttributes& attributes() const { return attributes_; }
  Instant modified() const { return modified_; }
  bool fifo() const { return attributes_.fifo; }
  Seq next_seq() const { return next_seq_; }
  std::optional<Instant> last_purge() const { return last_purge_; }
  const Counts& counts() const { return counts_; }
  std::size_t lane_count() const { return lanes_->size(); }
  std::size_t noisy_lane_count() const { return lanes_->noisy_count(); }
  Message* find(Seq seq) const { return messages_.find(seq); }
  bool was_purged(Seq seq) const { return seq < first_unpurged_; }
  bool has_receivable() const { return lanes_->next() != nullptr; }

  // In order of Seq. The visitor may not change the queue.
  template <class Visitor>
  void for_each_message(Visitor&& visit) const {
    messages_.for_each([&](const Message& message) { visit(message); });
  }

  // When the oldest message came into the queue; nullopt if there is none.
  std::optional<Instant> oldest_entered() const;

  // The next message that a receive should take: on FIFO queues the next one of the lane that this
  // receive already holds, if it has one that is ready; otherwise the head of the next lane.
  Message* next_to_receive(const Lane* held) const;

  // FIFO only.
  const DeduplicationWindow::Original* find_original(const Hash128& key) const;
  const ReceiveAttempt* find_attempt(std::string_view id) const;

  // Facts.
  Message& enter(std::unique_ptr<Message> message, Instant due, Instant now);
  void remember_original(const Hash128& key, const Message& message, Instant now);
  void receive(Message& message, Instant visible_again, Instant now);
  void remember_attempt(const std::string& id, ReceiveAttempt attempt);
  void change_visibility(Message& message, Instant visible_again, Instant now);
  void remove(Message& message, Instant now);
  std::unique_ptr<Message> depart(Message& message, Instant now);
  void departure_settled(const Message& message);
  void departure_refused(std::unique_ptr<Message> message, Instant now);
  void set_attributes(QueueAttributes attributes, Instant now);
  void purge(Instant now);

  // Time.
  void advance(Instant now);
  Instant next_deadline() const;

  // Ends the process if an invariant does not hold. Walks everything.
  void check_invariants() const;

  // Ends the process unless every lane is locked by its messages in flight and by as many others as
  // `leaving(lane)` says.
  template <class Leaving>
  void check_locks(Leaving&& leaving) const {
    std::map<const Lane*, std::uint32_t> in_flight;
    messages_.for_each([&](const Message& m) {
      if (m.state == State::kInFlight) ++in_flight[m.lane];
    });
    lanes_->for_each([&](const Lane& lane) {
      CHECK(lane.locks == in_flight[&lane] + leaving(lane), "Q3: locks are accounted for");
    });
  }

  // A digest of everything that is a function of the facts and the time, fairness aside.
  void fingerprint(std::string& out) const;

  // Bytes of memory, in total.
  std::size_t footprint() const;

 private:
  // What only FIFO queues remember.
  struct FifoMemory {
    DeduplicationWindow deduplication;
    ReceiveAttempts attempts;
  };
  struct Due {
    Instant at;
    Seq seq;
    friend auto operator<=>(const Due&, const Due&) = default;
  };

  std::size_t& count_of(State state);
  void set_state(Message& message, State state);
  void come_due(Message& message, Instant now);
  void take_out_of_place(Message& message, Instant now);
  void release_lock(Lane& lane, const Message& message, Instant now);
  void apply_delay_to_waiting(Instant now);
  Message* next_to_expire() const;
  Instant next_expiry() const;

  QueueAttributes attributes_;
  Instant modified_;
  Seq next_seq_{1};
  Seq first_unpurged_{1};
  std::optional<Instant> last_purge_;

  MessageTable messages_;
  std::optional<LaneSet> lanes_;
  IndexedHeap<Message, Due, &Message::heap_index> timers_;
  // Messages whose retention clock started before they came, so that they expire out of turn.
  IndexedHeap<Message, Due, &Message::early_index> early_;
  Counts counts_;
  std::unique_ptr<FifoMemory> fifo_memory_;
};

}  // namespace stanchion::engine
