// One queue: where each of its messages is, and when that changes by itself.
//
//   send ─▶ delayed ─time─▶ ready ─receive─▶ in flight ─delete─▶ gone
//                             ▲                 │
//                             └───── time ──────┴─ received too often ─▶ outbox ─▶ another queue
//
// A Queue changes only by the calls below, each of which is one fact or the passing of time. It
// decides nothing: whether a call is right was decided before the fact was written.
//
// Where a message is kept, in memory or in the store, is the matter of Stock.
//
//   Q1  A live message is in exactly one state; counts() adds up to the messages in memory and the
//       members of cold chunks.
//   Q2  Ready messages wait in their lane. Delayed ones are in timers (and, on FIFO queues, also in
//       their lane's line). Those in flight are in timers only.
//   Q3  A lane's locks are its messages in flight plus, on FIFO queues, those under way to another
//       queue; there they are its blockers.
//   Q4  A lane may be received from exactly if LaneSet says so (S1): on FIFO queues if its head is
//       ready and none of its blockers is earlier. Idle lanes are gone (S2), and each has the place
//       that it should have (S3, S4).
//   Q5  Seqs only grow, and no live message has a Seq that was not given yet or was purged.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/deduplication.h"
#include "engine/move_task.h"
#include "engine/receive_attempts.h"
#include "engine/stock.h"
#include "model/ids.h"
#include "model/queue_attributes.h"
#include "model/request.h"

namespace stanchion::engine {

// Where a receive should look next.
struct Next {
  Message* message = nullptr;
  const Lane* lane = nullptr;  // Without a message: the lane's next one is not in memory.

  explicit operator bool() const { return lane != nullptr; }
  bool is_cold() const { return message == nullptr || !message->content; }
};

// The lane of a FIFO queue of which a receive took the last message: more may follow from it,
// though only up to what was away before.
struct Hold {
  Hold() = default;
  explicit Hold(const Lane& held) : lane(&held), until(held.blocked_from()) {}

  const Lane* lane = nullptr;
  Seq until;
};

struct Holdings;

enum class Presence { kInMemory, kAskedFor, kBehindAnother };

class Queue {
 public:
  Queue(QueueId id, QueueRef ref, QueueAttributes attributes, StringMap tags, Instant created,
        Memory& memory);

  const QueueId id;
  const QueueRef ref;
  const std::string arn;
  const Instant created;
  StringMap tags;
  std::vector<MoveTask> tasks;               // Oldest first; at most the last one is running.
  std::uint32_t heap_index = kNotInHeap;     // In the engine's heap of deadlines.
  std::uint32_t unsaved_index = kNotInHeap;  // Among the queues that a checkpoint must write.

  const QueueAttributes& attributes() const { return attributes_; }
  Instant modified() const { return modified_; }
  bool fifo() const { return attributes_.fifo; }
  Seq next_seq() const { return next_seq_; }
  std::optional<Instant> last_purge() const { return last_purge_; }
  const Counts& counts() const { return stock_->counts; }
  std::size_t lane_count() const { return stock_->lanes.size(); }
  std::size_t noisy_lane_count() const { return stock_->lanes.noisy_count(); }
  Message* find(Seq seq) const { return stock_->messages.find(seq); }
  bool was_purged(Seq seq) const { return seq < first_unpurged_; }
  bool has_receivable() const { return stock_->lanes.next() != nullptr; }

  // Those in memory, in order of Seq. The visitor may not change the queue.
  template <class Visitor>
  void for_each_message(Visitor&& visit) const {
    stock_->messages.for_each([&](const Message& message) { visit(message); });
  }

  // When the oldest message came into the queue; nullopt if there is none.
  std::optional<Instant> oldest_entered() const;

  // The next message that a receive should take: on FIFO queues the next one of the lane that this
  // receive already holds, if it has one that it may take; otherwise the head of the next lane.
  Next next_to_receive(const Hold& held = {}) const;

  // FIFO: more of the lane can be received once this message, which is leaving, has arrived.
  bool has_more_behind(const Message& leaving) const;

  // The next message was asked for and has not come yet.
  bool waits_for_read() const;

  // Asks for what next_to_receive() found missing, or for what will be missing soon.
  void want(const Next& next);
  void read_ahead(const Lane& lane) { stock_->read_ahead(lane); }

  // Messages that only the store knows have expired, but it is not known which: counts and heads
  // are not to be relied on until they are.
  bool stalled() const { return stalled_; }

  // Whether a live message is in memory; it is asked for if not and if it can be found.
  Presence look_for(Seq seq, bool with_content);
  // Whether messages that a new delay would hold back are not too many to come into memory.
  bool may_set_delay(std::int64_t delay_seconds, Instant now) const;
  // All of them are in memory; if not, they are asked for.
  bool can_set_delay(std::int64_t delay_seconds, Instant now);

  // FIFO only.
  void expect_original(const Hash128& key) const;
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
  void departure_settled(Message& message);
  void departure_refused(std::unique_ptr<Message> message, Instant now);
  void set_attributes(QueueAttributes attributes, Instant now);
  [[nodiscard]] std::unique_ptr<Stock> purge(Instant now);

  // Something that was asked for has come.
  Status install(const ColdRead& read, std::vector<StoredMessage> found, Instant now);
  Stock& stock() { return *stock_; }
  const Stock& stock() const { return *stock_; }

  // Decides what the checkpoint that was begun writes of what differs from the last one, and writes
  // all but the chunks; see Stock.
  void begin_save();
  // The ranges in which a queue that is no more may have left something.
  void erase_all(Batch& batch) const;

  // Recovery: the queue as save() wrote it, without what is in it; then, one by one, what is.
  static Result<std::unique_ptr<Queue>> load(QueueId id, std::string_view value, Memory& memory);
  Status load_stranger(Seq seq, std::string_view value);
  Status load_originals(std::string_view value, Instant at);
  Status load_attempt(std::string_view value);
  Status load_departure(Message& message, Seq home);
  Status load_place(LaneName lane, std::string_view value);
  void loaded(Instant at);

  // Time.
  void advance(Instant now);
  // Whether time alone has changed something that a client can see, since this was last asked.
  bool take_changed_by_time() { return std::exchange(changed_by_time_, false); }
  Instant next_deadline() const;

  void add_to(Holdings& holdings) const;

  // Ends the process if an invariant does not hold. Walks everything.
  void check_invariants() const;

  // Ends the process unless every lane of this FIFO queue is blocked by its messages in flight and
  // by those that `leaving(lane)` names, and by no others.
  template <class Leaving>
  void check_blockers(Leaving&& leaving) const {
    std::map<const Lane*, std::set<Seq>> away;
    stock_->messages.for_each([&](const Message& m) {
      if (m.state == State::kInFlight) away[m.lane].insert(m.seq);
    });
    stock_->lanes.for_each([&](const Lane& lane) {
      std::set<Seq>& expected = away[&lane];
      expected.merge(leaving(lane));
      std::set<Seq> blockers;
      for (const Message* m = lane.first_blocker; m != nullptr; m = m->next)
        blockers.insert(m->seq);
      CHECK(blockers == expected && lane.locks == blockers.size(), "Q3: blockers");
    });
  }

  // FIFO: the groups that stand in line, the one to receive from next first. Walks everything.
  std::vector<std::string> line() const;

  // Everything that is a function of the facts and the time, fairness aside. `read` brings what is
  // not in memory.
  using ReadNow = std::function<std::vector<StoredMessage>(const KeyRange&)>;
  void fingerprint(std::string& out, const ReadNow& read) const;

 private:
  // What only FIFO queues remember.
  struct FifoMemory {
    DeduplicationWindow deduplication;
    ReceiveAttempts attempts;
  };
  std::size_t& count_of(State state);
  void set_state(Message& message, State state);
  void come_due(Message& message, Instant now);
  void take_out_of_place(Message& message, Instant now);
  void release_lock(Message& message, Instant now);
  bool has_nothing_waiting(const Lane& lane, Instant now) const;
  std::vector<Chunk*> cold_under_delay(std::int64_t delay_seconds, Instant now) const;
  void apply_delay_to_waiting(Instant now);
  void expire_cold(Instant now);
  Instant next_cold_expiry() const;
  Message* next_to_expire() const;
  Instant next_expiry() const;

  QueueAttributes attributes_;
  Instant modified_;
  Seq next_seq_{1};
  Seq first_unpurged_{1};
  std::optional<Instant> last_purge_;

  Memory& memory_;
  std::unique_ptr<Stock> stock_;
  Instant held_until_{};  // If the stock is held: whoever waits has given up by then.
  bool stalled_ = false;
  bool changed_by_time_ = false;
  Instant advanced_{};                   // When cold messages were last looked at for their expiry.
  bool saved_ = false;                   // The store knows the queue …
  std::uint32_t saved_incarnation_ = 0;  // … and has things of its incarnations from this one on.
  std::unique_ptr<FifoMemory> fifo_memory_;
};

}  // namespace stanchion::engine
