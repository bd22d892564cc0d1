// One queue: where each of its messages is, and when that changes by itself.
//
//   send ─▶ delayed ─time─▶ ready ─receive─▶ in flight ─delete─▶ gone
//                             ▲                 │
//                             └───── time ──────┴─ received too often ─▶ outbox ─▶ another queue
//
// The messages of a Queue change only by the calls below, each of which is one fact or the passing of
// time. It decides nothing: whether a call is right was decided before the fact was written. Tags,
// tasks and figures are changed by the Engine.
//
// Stock decides where a message is kept, in memory or in the store, and keeps counts, lanes and
// timers consistent with the state of each message.
//
//   Q1 to Q4 are invariants of Stock and its parts.
//   Q5  Seqs only grow, and no live message has a Seq that was not assigned yet or was purged.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "engine/fifo_memory.h"
#include "engine/habits.h"
#include "engine/move_task.h"
#include "engine/stock.h"
#include "model/activity.h"
#include "model/ids.h"
#include "model/queue_attributes.h"
#include "model/request.h"
#include "model/size_distribution.h"

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
  std::vector<MoveTask> tasks;  // Oldest first; at most the last one is running.
  Activity activity;
  RecentSizes sent_sizes;
  Habits habits;
  Instant used{};                          // When a client last called it, as far as is known.
  std::uint32_t heap_index = kNoIndex;     // Index in the engine's heap of deadlines.
  std::uint32_t unsaved_index = kNoIndex;  // Index among the queues that a checkpoint must write.

  const QueueAttributes& attributes() const { return attributes_; }
  Instant modified() const { return modified_; }
  bool fifo() const { return attributes_.fifo; }
  Seq next_seq() const { return next_seq_; }
  std::optional<Instant> last_purge() const { return last_purge_; }
  const Counts& counts() const { return stock_->counts(); }
  // The memory that a queue with these settings takes before anything is in it …
  static std::size_t settings_bytes(const QueueRef& ref, const QueueAttributes& attributes,
                                    const StringMap& tags);
  // … and together with the move tasks that this one remembers.
  std::size_t settings_bytes() const;

  // Its memory: messages, lanes, chunks, and what it remembers of deduplication ids and receive
  // attempts.
  std::size_t bytes() const { return stock_->bytes() + remembered_bytes(); }
  std::size_t remembered_bytes() const { return fifo_memory_ ? fifo_memory_->share.bytes() : 0; }
  std::size_t lane_count() const { return stock_->lanes().size(); }
  std::size_t noisy_lane_count() const { return stock_->lanes().noisy_count(); }
  Message* find(Seq seq) const { return stock_->find(seq); }
  bool was_purged(Seq seq) const { return seq < first_unpurged_; }
  bool has_receivable() const { return stock_->has_receivable(); }

  // Messages in memory, in order of Seq. The visitor may not change the queue.
  template <class Visitor>
  void for_each_message(Visitor&& visit) const {
    stock_->for_each(visit);
  }

  // When the oldest message came into the queue; nullopt if there is none.
  std::optional<Instant> oldest_entered() const { return stock_->oldest_entered(); }

  WatchFigures watch_figures() const { return stock_->watch_figures(); }

  // The next message that a receive should take: on FIFO queues the next one of the lane that this
  // receive already holds, if it may take it; otherwise the head of the next lane.
  Next next_to_receive(const Hold& held = {}) const { return stock_->next_to_receive(held); }

  // FIFO: whether more of the lane can be received once this message, which is leaving, has
  // arrived.
  bool has_more_behind(const Message& leaving) const {
    return leaving.lane->has_more_behind(leaving);
  }

  // Whether a read of the next message was requested and has not ended.
  bool waits_for_read() const { return stock_->residency().is_wanted(next_to_receive()); }

  // Requests what next_to_receive() found missing, or what will be missing soon.
  void want(const Next& next) { stock_->residency().want(next); }
  void read_ahead(const Lane& lane) { stock_->residency().read_ahead(lane); }

  // Some messages that are only in the store have expired, but it is not known yet which: counts
  // and heads must not be relied on until a read has told.
  bool stalled() const { return stalled_; }

  // Whether a live message is in memory; if not, it is requested if it can be found.
  // With its group, it is found wherever it waits; else only if it is the first of its chunk.
  Presence look_for(Seq seq, bool with_content, const std::string* group = nullptr) {
    return stock_->residency().look_for(seq, with_content, group);
  }
  // Nothing is evicted while a caller waits for more than one read.
  void hold(Instant now);
  // Whether the messages that a new delay would hold back are few enough to be read into memory.
  bool may_set_delay(std::int64_t delay_seconds, Instant now) const;
  // Whether all of them are in memory; if not, they are requested.
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
  // REQUIRES: the queue was not purged since it left.
  void departure_settled(Message& message);
  void departure_refused(std::unique_ptr<Message> message, Instant now);
  void set_attributes(QueueAttributes attributes, Instant now);
  // What a purge discards, and messages on their way from what was discarded, to which a group's line
  // may still refer; may be destroyed on any thread.
  struct Discarded {
    std::unique_ptr<Stock> stock;
    std::unique_ptr<FifoMemory> fifo_memory;
    std::vector<std::unique_ptr<Message>> departed;
    std::size_t bytes = 0;  // Of memory.
  };
  [[nodiscard]] Discarded purge(Instant now);

  // A requested read has ended.
  Status install(const ColdRead& read, std::vector<StoredMessage> found, Instant now);
  Stock& stock() { return *stock_; }
  const Stock& stock() const { return *stock_; }

  FifoMemory* fifo_memory() { return fifo_memory_.get(); }  // Null: it is not a FIFO queue.

  // Fixes what the checkpoint that has begun writes of this queue, and writes the queue itself. What
  // is in it is pending then; see Stock and FifoMemory.
  void begin_save();
  // The ranges of keys in which a deleted queue may have left entries.
  void erase_all(Batch& batch) const;

  // Recovery: load() makes the queue as its entry says, without its contents; the other calls then
  // add what is in it, one by one.
  static Result<std::unique_ptr<Queue>> load(QueueId id, std::string_view value, Memory& memory);
  Status load_originals(std::string_view key, std::string_view value, Instant at);
  Status load_attempt(std::string_view key, std::string_view value);
  Status loaded(Instant at);

  // Time.
  void advance(Instant now);
  // Whether time alone has changed something that a client can see, since the last call.
  bool take_changed_by_time() { return std::exchange(changed_by_time_, false); }
  Instant next_deadline() const;

  void add_to(Holdings& holdings) const;

  // Ends the process if an invariant does not hold. Visits the whole queue.
  void check_invariants() const;

  // FIFO: the groups in the line, the one to receive from next first. Visits all lanes.
  std::vector<std::string> line() const { return line_of(stock_->lanes()); }

  // Everything that follows from the facts and the time, except the state of fair scheduling.
  // `read` reads messages that are not in memory.
  using ReadNow = Residency::ReadNow;
  void fingerprint(std::string& out, const ReadNow& read) const;

 private:
  // Whether it cannot be repeated, now or later.
  bool is_over(const ReceiveAttempt& attempt) const;
  // Messages whose retention began by then have expired at `now`.
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
  Instant held_until_{};  // If the stock is held: by then the callers have given up.
  bool stalled_ = false;
  bool changed_by_time_ = false;
  Instant advanced_{};                   // When cold messages were last checked for expiry.
  bool saved_ = false;                   // The store has an entry of the queue …
  std::uint32_t saved_incarnation_ = 0;  // … and entries of its incarnations from this one on.
  std::unique_ptr<FifoMemory> fifo_memory_;
};

}  // namespace stanchion::engine
