// One queue: where each of its messages is, and when that changes by itself.
//
//   send ─▶ delayed ─time─▶ ready ─receive─▶ in flight ─delete─▶ gone
//                             ▲                 │
//                             └───── time ──────┴─ received too often ─▶ outbox ─▶ another queue
//
// A Queue changes only by the calls below, each of which is one fact or the passing of time. It
// decides nothing: whether a call is right was decided before the fact was written.
//
// Where a message is kept, in memory or in the store, is the matter of Stock, which also keeps
// counts, lanes and timers in agreement with the state of each message.
//
//   Q1 to Q4 are the stock's.
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

class Queue {
 public:
  Queue(QueueId id, QueueRef ref, QueueAttributes attributes, StringMap tags, Instant created,
        Memory& memory);

  const QueueId id;
  const QueueRef ref;
  const std::string arn;
  const Instant created;
  StringMap tags;
  std::vector<MoveTask> tasks;             // Oldest first; at most the last one is running.
  std::uint32_t heap_index = kNoIndex;     // In the engine's heap of deadlines.
  std::uint32_t unsaved_index = kNoIndex;  // Among the queues that a checkpoint must write.

  const QueueAttributes& attributes() const { return attributes_; }
  Instant modified() const { return modified_; }
  bool fifo() const { return attributes_.fifo; }
  Seq next_seq() const { return next_seq_; }
  std::optional<Instant> last_purge() const { return last_purge_; }
  const Counts& counts() const { return stock_->counts(); }
  std::size_t lane_count() const { return stock_->lane_count(); }
  std::size_t noisy_lane_count() const { return stock_->noisy_lane_count(); }
  Message* find(Seq seq) const { return stock_->find(seq); }
  bool was_purged(Seq seq) const { return seq < first_unpurged_; }
  bool has_receivable() const { return stock_->has_receivable(); }

  // Those in memory, in order of Seq. The visitor may not change the queue.
  template <class Visitor>
  void for_each_message(Visitor&& visit) const {
    stock_->for_each(visit);
  }

  // When the oldest message came into the queue; nullopt if there is none.
  std::optional<Instant> oldest_entered() const { return stock_->oldest_entered(); }

  // The next message that a receive should take: on FIFO queues the next one of the lane that this
  // receive already holds, if it has one that it may take; otherwise the head of the next lane.
  Next next_to_receive(const Hold& held = {}) const { return stock_->next_to_receive(held); }

  // FIFO: more of the lane can be received once this message, which is leaving, has arrived.
  bool has_more_behind(const Message& leaving) const { return stock_->has_more_behind(leaving); }

  // The next message was asked for and has not come yet.
  bool waits_for_read() const { return stock_->is_wanted(next_to_receive()); }

  // Asks for what next_to_receive() found missing, or for what will be missing soon.
  void want(const Next& next) { stock_->want(next); }
  void read_ahead(const Lane& lane) { stock_->read_ahead(lane); }

  // Messages that only the store knows have expired, but it is not known which: counts and heads
  // are not to be relied on until they are.
  bool stalled() const { return stalled_; }

  // Whether a live message is in memory; it is asked for if not and if it can be found.
  Presence look_for(Seq seq, bool with_content) { return stock_->look_for(seq, with_content); }
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
  Status load_originals(std::string_view value, Instant at);
  Status load_attempt(std::string_view value);
  Status loaded(Instant at);

  // Time.
  void advance(Instant now);
  // Whether time alone has changed something that a client can see, since this was last asked.
  bool take_changed_by_time() { return std::exchange(changed_by_time_, false); }
  Instant next_deadline() const;

  void add_to(Holdings& holdings) const;

  // Ends the process if an invariant does not hold. Walks everything.
  void check_invariants() const;

  // FIFO: the groups that stand in line, the one to receive from next first. Walks everything.
  std::vector<std::string> line() const { return stock_->line(); }

  // Everything that is a function of the facts and the time, fairness aside. `read` brings what is
  // not in memory.
  using ReadNow = Stock::ReadNow;
  void fingerprint(std::string& out, const ReadNow& read) const;

 private:
  // What only FIFO queues remember.
  struct FifoMemory {
    DeduplicationWindow deduplication;
    ReceiveAttempts attempts;
  };
  // What began its retention by then has expired at `now`.
  Instant expired_at(Instant now) const {
    return now - std::chrono::seconds(attributes_.retention_seconds);
  }
  void expire_cold(Instant now);
  Instant next_cold_expiry() const;
  Instant next_expiry() const;
  bool is_possible() const;

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
