// The queues of one shard as a pure state machine: no clock, no thread, no file, no randomness of
// its own, no logging.
//
//   request, now, entropy ─▶ execute ─▶ reply, and facts written to the decision's record
//   fact, its instant     ─▶ apply   ─▶ new state          (execute applies its own facts at once)
//   now                   ─▶ advance ─▶ new state: what fell due
//
// A decision changes the state as it goes and writes facts that say how (ADR 3), so replaying the
// journal (advance to a record's instant, apply its facts) gives the same state again, but for figures
// that no decision uses: habits of consumers, and some of the activity. advance may be called any
// number of times: two steps have the same effect as one.
//
// REQUIRES: instants never go back, and advance(now) is called before any other call made at `now`.
// One thread owns an Engine; it has no locks.
//
//   E1  Every queue is sound (Q1 to Q5, see queue.h).
//   E2  A queue is found by id, by name, and in the listing order.
//   E3  Every queue's next deadline is in deadlines_.
//   E4  On FIFO queues the blockers of a lane are its messages in flight and its departures under
//       way, and no message behind the first blocker is received.
//   E5  dead_letter_sources_ mirrors the redrive policies.
//   E6  A move task's in_transit is the number of its departures under way.
//   E7  A decision moves or settles at most Options::decision_messages messages, besides those that
//       its request names, so that its record has a bound.
//   E8  A checkpoint begins in constant time, however much it will write, except for the numbers of
//       transfers that are remembered (Options::memory.transfer_numbers) and the names of queues that
//       were just deleted. A queue of which it has
//       yet to write something is written before it changes: whoever gets a queue to change it gets
//       it from find_mutable() or find_by_id(), which see to that.
//   E9  The bytes of departures are accounted for, and the store has the content of every departure
//       that is without.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/decision.h"
#include "engine/last_words.h"
#include "engine/queue.h"
#include "engine/recent_deletions.h"
#include "engine/routing.h"
#include "engine/rules/attributes.h"
#include "engine/rules/validation.h"
#include "engine/transfers.h"
#include "model/error.h"
#include "model/fact.h"
#include "model/limits.h"
#include "model/message_position.h"
#include "model/receipt.h"
#include "model/reply.h"
#include "model/request.h"
#include "model/transfer.h"

namespace stanchion::engine {

struct Options {
  ShardIndex shard{0};
  bool strict = false;  // Also enforce rules that AWS has only because its own propagation is slow.
  MemoryOptions memory{};
  std::size_t decision_messages = limits::kDecisionMessagesMax;  // See E7.
};

class Engine {
 public:
  explicit Engine(Options options) : options_(options) { memory_.options = options.memory; }

  // Decisions. Each writes its facts to the decision's record and has applied them when it returns.
  void found(const MacKey& receipt_key, Decision& decision);
  Reply execute(const Request& request, const Neighbours& neighbours, Decision& decision);
  TransferVerdict accept(const Transfer& transfer, Decision& decision);
  // REQUIRES: no more of them, and of refusals in the same decision, than E7 allows.
  void settle(const std::vector<TransferNo>& accepted, Decision& decision);
  void refuse_transfer(TransferNo number, Decision& decision);
  void move_messages(Decision& decision);  // Lets move tasks do what their rate allows.

  // E7: how many messages a record may name.
  std::size_t decision_messages() const { return options_.decision_messages; }
  std::size_t record_messages_max() const {
    return options_.decision_messages + limits::kBatchEntriesMax;
  }

  // Replay.
  void apply(const Fact& fact, Instant at);
  void advance(Instant now);

  // Whether time alone has changed something that a client can see, since the last
  // forget_changed_by_time(). No fact says so: after a crash the change is certain only if a record
  // of that time or later is durable.
  bool changed_by_time() const { return changed_by_time_; }
  void forget_changed_by_time() { changed_by_time_ = false; }

  // When advance or move_messages has something to do again; kNever if nothing will fall due.
  Instant next_deadline() const;

  bool founded() const { return founded_; }
  bool has_move_tasks() const { return !moving_.empty(); }
  std::size_t queue_count() const { return queues_.size(); }
  const Queue* find(const QueueRef& ref) const;
  const Queue* find(QueueId id) const;
  void contribute(const Needs& needs, Neighbours& neighbours) const;

  // Whether the transfer has left and is not settled.
  bool is_under_way(TransferNo number) const { return outbox_.under_way().contains(number); }
  // The next departure from `from` on, below `end`, to be handed over; `from` moves behind it. None
  // for now, though there are some, if what was handed over takes all the memory that it may, or if
  // its content must be read first. What it says of lower numbers is left to the caller, who knows
  // what is durable; see settled_below().
  std::optional<Transfer> hand_over(TransferNo& from, TransferNo end);
  // All departures numbered `from` and up, in order, some perhaps without their content; for tests.
  std::vector<Transfer> transfers_from(TransferNo from) const;
  // Called with the number and the destination of each departure.
  template <class Visitor>
  void for_each_departure(Visitor&& visit) const {
    for (const auto& [number, departure] : outbox_.under_way())
      visit(number, departure.destination);
  }
  const Inbox& inbox() const { return inbox_; }
  std::size_t bytes_under_way() const { return outbox_.bytes(); }
  // Whether only a checkpoint lets departures leave memory, of which there are more than there may
  // be: data that was written without this bound has them.
  bool must_save_departures() const { return outbox_.bytes_to_save() > memory_.options.in_transit; }
  // How many numbers of transfers may be in use at a time.
  std::uint64_t transfer_numbers() const { return memory_.options.transfer_numbers; }
  TransferNo next_transfer() const { return outbox_.next(); }
  // Every transfer below this one is settled, by what was decided so far.
  TransferNo settled_below() const { return outbox_.settled_below(); }

  // The names of watched queues in which something became receivable since the last call. A queue
  // is watched while a receive is parked on it.
  void watch(const QueueRef& ref, bool watched);
  std::vector<QueueRef> take_awakened();

  // A receive was answered without a message, at once or after it had waited for one.
  void note_empty_receive(const QueueRef& ref, bool waited, Instant now);

  // Whether a receive would get a message, or wait for the store.
  bool has_receivable(const QueueRef& ref) const;

  // Ends the process if an invariant does not hold. Visits the whole state.
  void check_invariants() const;

  // Equal for equal states, wherever the messages are kept; `read` reads messages that are not in
  // memory. The soft state of fair scheduling is left out.
  std::uint64_t fingerprint(const Queue::ReadNow& read = nullptr) const;

  // The store; see engine_store.cc. A checkpoint is everything that changed since the last
  // one. begin_checkpoint() fixes what it contains; calls of save_some() assemble it, each of which
  // looks at about this many messages (or queues, lanes, ids, …) and says whether it was the last;
  // then it is taken. Meanwhile requests may be executed. Its messages may be evicted once it is
  // durable; one checkpoint is under way at a time. `digest`, if there is one, is that of the journal
  // up to the position, and kept for whoever compares it.
  void begin_checkpoint(Position position, Instant now,
                        std::optional<std::uint64_t> digest = std::nullopt);
  bool save_some(std::size_t messages);
  // How much all checkpoints together have looked at: grows by a bounded amount with each call.
  std::uint64_t looked_at_by_checkpoints() const { return memory_.looked_at; }
  Batch take_checkpoint();
  void checkpoint_is_durable();

  // Called for each entry of a range in order of key; false ends the scan.
  using ScanStore = std::function<Status(
      const KeyRange&, const std::function<bool(std::string_view key, std::string_view value)>&)>;
  // Loads the state, if there is one, and returns the position of its checkpoint: 0 if there is
  // none. `at` is set to its instant.
  Result<Position> load(const ScanStore& scan, Instant& at);
  // Of the checkpoint that was loaded.
  std::optional<std::uint64_t> loaded_digest() const { return loaded_digest_; }

  // Queues that load() could not read completely, and why: nothing may be received from them.
  bool has_unreadable() const { return !unreadable_.empty(); }
  std::map<QueueId, Failure> take_unreadable() { return std::exchange(unreadable_, {}); }

  // Reads that were requested. Each must be answered by install().
  std::vector<ColdRead> take_reads();
  static Result<std::vector<StoredMessage>> read(const ColdRead& read, const ScanStore& scan);
  // Several consecutive reads of one lane (see precedes()), by one scan.
  static Result<std::vector<std::vector<StoredMessage>>> read(std::span<const ColdRead> reads,
                                                              const ScanStore& scan);
  // Fails if the store does not hold what it should.
  Status install(const ColdRead& read, std::vector<StoredMessage> found, Instant now);

  // What was requested cannot be read; the caller keeps away from its queue.
  void give_up(const ColdRead& read);

  // Forgets what was read for a StanchionPeek of this queue, unless one waits for more.
  void forget_peeked(QueueId id);

  // Whether everything that the facts of a record need is in memory; if not, it is requested,
  // perhaps only a part at a time.
  bool is_ready_for(const std::vector<Fact>& facts, Instant at);

  // The same, but makes the reads at once, for recovery.
  Status prepare_for(const std::vector<Fact>& facts, const ScanStore& scan, Instant at);
  Status read_wanted(const ScanStore& scan, Instant now);

  // Replay onto a store that lost something: applies a record except for facts about messages that
  // do not exist. `living` has the remaining messages of each damaged queue. Returns how many facts
  // or parts of facts were left out.
  using Living = std::map<QueueId, std::vector<Seq>>;
  Result<std::uint64_t> apply_what_is_left(std::vector<Fact> facts, const Living& living,
                                           const ScanStore& scan, Instant at);
  // After load(): makes E6 hold again although departures were lost.
  void recount_departures();

  // Some queue does not know which of its messages have expired until a read has ended; see
  // Queue::stalled().
  bool stalled() const;

  // Bytes of messages in memory, and of the structures they wait in: lanes and chunks, which cannot
  // be evicted. A small amount of the latter does not count.
  std::size_t message_bytes() const { return memory_.messages; }
  const Memory& memory() const { return memory_; }
  std::size_t structure_bytes() const {
    return memory_.structure - std::min(memory_.structure, memory_.options.spare);
  }

  // The part of a budget that is left for messages: never nothing, or each message would be read
  // alone.
  std::size_t left_for_messages(std::size_t budget) const {
    return std::max(budget - std::min(budget, structure_bytes()), budget / kMessagesShare);
  }
  bool exceeds(std::size_t budget) const { return memory_.messages > left_for_messages(budget); }

  // Evicts messages until they fit into the budget. Does a small part of the work at a time; false
  // if there is nothing left to do for now.
  bool evict_some(std::size_t budget);
  // Whether something may become evictable when the next checkpoint is durable.
  bool may_evict() const { return evicting_ != Evicting::kNothing; }

  // Counts what is kept in memory. Visits all lanes.
  Holdings holdings() const;

  // What was in queues that were purged or deleted; may be destroyed on any thread.
  std::vector<Queue::Discarded> take_discarded();
  // What was not taken yet; most of it is kept for the checkpoint that is being assembled.
  std::size_t discarded_bytes() const { return discarded_bytes_; }

  template <class Visitor>
  void for_each_queue(Visitor&& visit) const {
    for (const Queue* queue : listing_) visit(*queue);
  }

  // The same for at most `most` of them, from behind `after` on (null: from the first). Returns the
  // last that was visited; null if there is none behind it.
  template <class Visitor>
  const Queue* for_some_queues(const QueueRef* after, std::size_t most, Visitor&& visit) const {
    auto it = after == nullptr ? listing_.begin() : listing_.upper_bound(*after);
    const Queue* last = nullptr;
    for (; most > 0 && it != listing_.end(); ++it, --most) visit(*(last = *it));
    return it == listing_.end() ? nullptr : last;
  }

  const LastWords& last_words() const { return last_words_; }

 private:
  static constexpr std::size_t kMessagesShare = 4;

  struct ByRef {
    using is_transparent = void;
    static const QueueRef& ref(const Queue* q) { return q->ref; }
    static const QueueRef& ref(const QueueRef& r) { return r; }
    bool operator()(const auto& a, const auto& b) const { return ref(a) < ref(b); }
  };
  struct RefHash {
    using is_avalanching = void;
    std::size_t operator()(const QueueRef* ref) const;
  };
  struct RefEqual {
    bool operator()(const QueueRef* a, const QueueRef* b) const { return *a == *b; }
  };

  // One handler per action, in engine_queues.cc, engine_messages.cc (with a part in
  // engine_chosen.cc), engine_moves.cc and engine_peek.cc.
  Reply on(const AddPermission&, Queue&, const Neighbours&, Decision&);
  Reply on(const ChangeMessageVisibility&, Queue&, const Neighbours&, Decision&);
  Reply on(const ChangeMessageVisibilityBatch&, Queue&, const Neighbours&, Decision&);
  Reply on(const DeleteMessage&, Queue&, const Neighbours&, Decision&);
  Reply on(const DeleteMessageBatch&, Queue&, const Neighbours&, Decision&);
  Reply on(const DeleteQueue&, Queue&, const Neighbours&, Decision&);
  Reply on(const GetQueueAttributes&, Queue&, const Neighbours&, Decision&);
  Reply on(const GetQueueUrl&, Queue&, const Neighbours&, Decision&);
  Reply on(const ListQueueTags&, Queue&, const Neighbours&, Decision&);
  Reply on(const PurgeQueue&, Queue&, const Neighbours&, Decision&);
  Reply on(const ReceiveMessage&, Queue&, const Neighbours&, Decision&);
  Reply on(const RemovePermission&, Queue&, const Neighbours&, Decision&);
  Reply on(const SendMessage&, Queue&, const Neighbours&, Decision&);
  Reply on(const SendMessageBatch&, Queue&, const Neighbours&, Decision&);
  Reply on(const SetQueueAttributes&, Queue&, const Neighbours&, Decision&);
  Reply on(const StanchionGroups&, Queue&, const Neighbours&, Decision&);
  Reply on(const StanchionPeek&, Queue&, const Neighbours&, Decision&);
  Reply on(const TagQueue&, Queue&, const Neighbours&, Decision&);
  Reply on(const UntagQueue&, Queue&, const Neighbours&, Decision&);
  Reply on(const CreateQueue&, const Neighbours&, Decision&);
  Reply on(const ListQueues&, const Neighbours&, Decision&);
  Reply on(const ListDeadLetterSourceQueues&, const Neighbours&, Decision&);
  Reply on(const CancelMessageMoveTask&, const Neighbours&, Decision&);
  Reply on(const ListMessageMoveTasks&, const Neighbours&, Decision&);
  Reply on(const StanchionAdvice&, const Neighbours&, Decision&);
  Reply on(const StartMessageMoveTask&, const Neighbours&, Decision&);

  // Parts of decisions.
  SentMessage send(Queue& queue, const CheckedMessage& message, const Md5& body_md5,
                   const std::string& sender, Decision& decision);
  Answer<ReceiveMessageResult> receive(Queue& queue, const ReceiveMessage& request,
                                       Duration visibility, Duration wait, Decision& decision);
  Answer<ReceiveMessageResult> receive_chosen(Queue& queue, const ReceiveMessage& request,
                                              Duration visibility, Decision& decision);
  Answer<std::vector<MessagePosition>> chosen_by(const ReceiveMessage& request,
                                                 const Queue& queue) const;
  // Whether one more message of the queue may leave for another; if not, receives that wait for it
  // are woken when it may.
  bool may_leave(const Queue& queue) const { return has_room_for(queue.ref.account); }
  bool has_room_for(std::string_view account) const {
    return outbox_.has_room(account, memory_.options.in_transit, memory_.options.transfer_numbers);
  }
  bool may_leave_or_wait(const Queue& queue);
  Transfer transfer_of(TransferNo number, const Departure& departure) const;
  void wake_held_back();
  void leave_as_dead_letter(Queue& queue, Message& message, MessagesLeft& left, Instant now);
  // What a receive finds behind dead letters that may not leave now.
  struct Bypass {
    std::vector<Lane*> lanes{};  // Passed over.
    MessagesChosen places{};     // Of what was received although it was not the first of its lane.
    std::size_t looks = 0;       // How many messages may still be looked at.
    bool cold = false;           // Something must be read first.
  };
  void receive_behind(Queue& queue, Lane& lane, std::size_t most, Duration visibility,
                      Bypass& bypass, MessagesReceived& received, ReceiveMessageResult& result,
                      Decision& decision);
  ReceivedMessage take(Queue& queue, Message& message, Duration visibility,
                       MessagesReceived& received, Decision& decision);
  void record_receive(Queue& queue, const MessagesLeft& left, const MessagesReceived& received,
                      Decision& decision);
  static Error too_many_in_flight();
  std::optional<ReceiveMessageResult> repeat_attempt(Queue& queue, const std::string& attempt_id,
                                                     Duration visibility, Decision& decision);
  ReceivedMessage hand_out(const Queue& queue, const Message& message) const;
  bool is_dead_letter(const Queue& queue, const Message& message) const;
  Answer<Message*> find_received(const Queue& queue, const std::optional<std::string>& handle,
                                 Receipt& receipt, Decision& decision) const;
  Answer<void> delete_one(Queue& queue, const std::optional<std::string>& handle,
                          MessagesDeleted& fact, Decision& decision);
  void note_late_delete(Queue& queue, const Message& message, Instant now) const;
  Answer<void> change_one(Queue& queue, const std::optional<std::string>& handle,
                          std::int64_t timeout, VisibilityChanged& fact, Decision& decision);
  std::size_t move_some(Queue& queue, MoveTask& task, std::size_t most, Decision& decision);
  void end_task(Queue& queue, MoveTask& task, MoveTaskStatus status, std::string reason,
                Decision& decision);

  // Facts.
  void apply_fact(const ShardFounded&, Instant);
  void apply_fact(const QueueCreated&, Instant);
  void apply_fact(const QueueDeleted&, Instant);
  void apply_fact(const QueuePurged&, Instant);
  void apply_fact(const QueueAttributesSet&, Instant);
  void apply_fact(const QueueTagged&, Instant);
  void apply_fact(const QueueUntagged&, Instant);
  void apply_fact(const MessageSent&, Instant);
  void apply_fact(const MessagesReceived&, Instant);
  void apply_fact(const MessagesDeleted&, Instant);
  void apply_fact(const VisibilityChanged&, Instant);
  void apply_fact(const MessagesLeft&, Instant);
  void apply_fact(const TransferAccepted&, Instant);
  void apply_fact(const TransfersSettled&, Instant);
  void apply_fact(const TransferRefused&, Instant);
  void apply_fact(const MoveTaskStarted&, Instant);
  void apply_fact(const MoveTaskEnded&, Instant);
  void apply_fact(const MessagesChosen&, Instant) {}
  void apply_fact(const TransfersResumed& fact, Instant) { outbox_.resume_at(fact.next); }
  void apply_departure(Queue& queue, const MessagesLeft& fact, const MessagesLeft::Item& item,
                       Instant at);

  // Writes a fact and applies it.
  template <class F>
  void record(const F& fact, Decision& decision) {
    decision.record.add(fact);
    apply_fact(fact, decision.now);
  }

  // For a change, or for a read that leads to one (E8).
  Queue* find_mutable(const QueueRef& ref);
  Queue& queue_of(QueueId id);
  Queue* find_by_id(QueueId id);
  // Must precede any change of the queue: has the checkpoint write it if that is pending.
  void settle(Queue& queue);
  bool save_part(std::size_t most);
  static MoveTask* find_task(Queue& queue, const TaskId& id);
  void link_dead_letters(Queue& queue);
  void unlink_dead_letters(Queue& queue);
  // To be called after any change of a queue: updates its deadline and wakes receives that wait
  // for it.
  void touch(Queue& queue);
  void discard(Queue::Discarded contents);
  // A message on its way is settled after its queue was purged or deleted.
  void bury(std::unique_ptr<Message> message);
  // Whether the queue of a message on its way is there and was not purged since.
  bool has_home(const Departure& departure) const;
  void read_delayed(const ScanStore& scan, Instant now);
  Status load_shard(std::string_view value, Position& position, Instant& at);
  Status load_entry(std::string_view key, std::string_view value, Instant at);
  Status bring_in_named(const Fact& fact, const Living& living, const ScanStore& scan, Instant at);
  std::uint64_t leave_out_missing(Fact& fact, bool by_state) const;
  bool departures_make_sense() const;
  void check_names_and_deadlines() const;
  void check_departures() const;

  const Options options_;
  Memory memory_;
  bool founded_ = false;
  std::optional<std::uint64_t> loaded_digest_;
  MacKey receipt_key_{};
  QueueId next_queue_{1};
  boost::unordered_flat_map<QueueId, std::unique_ptr<Queue>, std::hash<QueueId>> queues_;
  boost::unordered_flat_map<const QueueRef*, Queue*, RefHash, RefEqual> by_ref_;
  std::set<Queue*, ByRef> listing_;
  std::map<std::string, std::set<Queue*, ByRef>, std::less<>> dead_letter_sources_;
  RecentDeletions deleted_;
  LastWords last_words_;
  IndexedHeap<Queue, Instant, &Queue::heap_index> deadlines_;
  std::set<QueueId> moving_;  // Queues with a running move task.
  QueueId moved_last_;        // The one whose turn it was last; soft state.
  Outbox outbox_{memory_.messages};
  std::set<QueueId> held_back_;  // Queues whose dead letters wait until they may leave.
  bool has_more_room_ = false;   // Some of them may, since take_awakened() last looked at all.
  Inbox inbox_;
  UnsavedList<Queue, &Queue::unsaved_index> unsaved_;
  bool changed_by_time_ = false;
  std::map<QueueId, Failure> unreadable_;
  // Queues that the checkpoint under way has written, but not all that was in them; and what was in
  // queues that were purged or deleted meanwhile.
  struct Saving {
    CheckpointWriter* writer;
    FifoMemory* fifo_memory;
  };
  std::vector<Saving> saving_;
  std::vector<Queue::Discarded> discarded_while_saving_;
  std::vector<std::unique_ptr<Message>> buried_while_saving_;  // Blockers of what was in those.
  Batch erased_queues_;
  std::vector<Queue::Discarded> discarded_;
  std::size_t discarded_bytes_ = 0;  // Of both.
  // The phase of evict_some(): first chunks far from being received, then others, then contents.
  enum class Evicting { kDeep, kNear, kContents, kNothing };
  static Evicting next_after(Evicting phase);
  Evicting evicting_ = Evicting::kDeep;
  QueueRef evict_after_;
  bool evicted_in_round_ = false;
  std::set<QueueRef> watched_;
  std::set<QueueRef> awakened_;
};

}  // namespace stanchion::engine
