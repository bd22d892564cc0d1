// The auditor: sees every request and every answer, never the inside, and checks the server's
// promises.
//
//   A1  An acknowledged send is delivered until it is deleted or expires, with the same bytes.
//   A2  A message whose deletion or purge was acknowledged never comes back.
//   A3  No message is handed out again inside its visibility timeout, or before its delay is over.
//   A4  A FIFO group comes in order: a message is handed out only with or after all earlier
//       messages of its group that still exist, wherever they are.
//   A5  A repetition inside the deduplication window is dropped, one outside of it is not.
//   A6  Counts add up with what is known.
//   A7  Each move of a message between queues happens once: the message keeps its id as a dead
//       letter, gets a new one when it is moved back, and is never in two places. No message is
//       dead-lettered early or handed out once too often.
//   A8  Each call that was in doubt when the server died happened or did not, message by message.
//   A9  A receive comes back empty only if there was nothing to receive, and every answer comes in
//       time. A FIFO group had something to receive if its earliest message was visible, whatever
//       the state of later ones.
//   A10 Settings and queues read as they were written. A call fails because of the machine only
//       while something is wrong with it: with 503 if it is full or about to stop, with 500 if its
//       store cannot be read.
//   A11 FIFO groups stand in a line: a group that was received from is not received from again
//       before all groups that waited then.
//   A12 A look at a queue shows what must be there, once, with the receives that are known, and
//       nothing that cannot be there. (That it changes nothing is what A1 to A11 say.)
//   A13 A receive that chooses its messages gets none that it did not choose, and all of those that
//       any receive could have got; in everything else A1 to A10 hold for it as for any receive.
//
// A broken promise is thrown as a Violation with a sentence that says what happened.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/limits.h"
#include "model/reply.h"
#include "model/request.h"
#include "sim/ledger.h"
#include "sim/violation.h"
#include "sim/world.h"

namespace stanchion::sim {

using CallNo = std::uint64_t;

class Auditor {
 public:
  // `skew`: how far the clocks of the servers are apart at most. `stale`: how old an answer may be
  // that only shows state; an owner of a log that was replaced gives such answers for a moment.
  explicit Auditor(const World& world, Duration skew = {}, Micros stale = 0)
      : world_(world), skew_(skew), stale_(stale) {}

  // How many messages the server looks at when dead letters that may not leave yet stand before the
  // others; engine::Options.
  void decides_about(std::size_t messages) { decision_messages_ = messages; }

  // The life of a call: `submitted` once, then exactly one of the others.
  CallNo submitted(const Request& request);
  void replied(CallNo call, const Reply& reply);
  void in_doubt(CallNo call);        // The server died before it answered.
  void never_happened(CallNo call);  // It did not reach the server, or was cancelled in time.

  // The world did something that the promises take into account.
  void time_began();        // A process began, perhaps at an earlier time.
  void impaired(bool now);  // The disk is full, or the server is about to stop.
  void disk_full(bool now);
  void failing(bool now);  // The store failed, and the process will end because of it.
  void time_jumped();      // Calls that wait for room have waited for as long as the fault lasted.

  // The next end of the retention of a message that is certainly there.
  struct Expiry {
    std::string queue;
    Instant lo, hi;  // Between these.
  };
  std::optional<Expiry> next_expiry() const;

  // The end: every client has stopped, and the queues are emptied by receive and delete.
  void begin_drain();
  void finish_drain();

  struct Statistics {
    std::uint64_t sends = 0, deliveries = 0, deletes = 0, doubts = 0, duplicates = 0,
                  dead_letters = 0, redrives = 0, repeated_attempts = 0, drained_while_full = 0,
                  found_at_end = 0, refused_full = 0, refused_failing = 0, empty_receives = 0,
                  counts_checked = 0, places_compared = 0, peeks = 0, sightings = 0, choices = 0,
                  chosen = 0;
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  struct Change {  // Of a delivery's visibility.
    OpPtr op;
    std::optional<std::int64_t> timeout;  // In seconds; none: the queue's own at that time.
    bool sure = false;                    // Made while the receipt was certainly valid.
  };
  struct Timeouts {
    Duration least, most;  // The same unless the queue's own counts and was changed meanwhile.
  };
  struct Delivery {
    OpPtr op;
    std::string queue;
    std::uint32_t count = 0;
    std::string handle;
    std::string attempt;
    Timeouts visibility;
    Instant lo, hi;  // When its visibility began.
    // When the message was taken, at the earliest: by this receive, or by one in doubt that it
    // repeats.
    Moment taken_from = 0;
    Instant taken_lo;
    std::vector<Change> changes;
  };
  // A message's time under one id. Moving it back from a dead-letter queue begins another.
  struct Life {
    std::optional<MessageId> id;
    std::optional<Instant> sent;  // According to the server.
    std::string home;             // The queue in which it was last known to be.
    std::optional<Seq> seq;       // Its number there, FIFO only.
    Moment first_seen = kOpen;    // When it was first delivered from there.
    bool dead_letter = false;
    std::vector<Delivery> deliveries;
  };
  struct Message {
    std::string body;
    std::string queue;  // Where it was sent to.
    bool fifo = false;
    OutgoingMessage sent;
    std::string deduplication_id;  // FIFO: given, or made of the body.
    std::string sender;
    OpPtr op;
    bool duplicate = false;         // Dropped as a repetition: it does not exist.
    bool may_be_duplicate = false;  // Of one that had another id when it was first seen.
    std::shared_ptr<std::vector<std::size_t>> twins;  // Exactly one of them exists.
    std::vector<OpPtr> deletes;                       // Calls that may have deleted it.
    std::optional<Moment> gone;                       // Certainly gone.
    std::size_t gone_life = 0;                        // In which life …
    std::uint32_t gone_count = 0;  // … and by the receipt of which receive; 0: not known.
    std::string gone_by;
    std::vector<Life> lives;  // Oldest first.
    bool drained = false;

    Life& life() { return lives.back(); }
    const Life& life() const { return lives.back(); }
    std::string group() const { return sent.group_id.value_or(""); }
  };
  struct Redrive {
    std::string target;
    std::uint32_t max_receive_count = 0;
    friend bool operator==(const Redrive&, const Redrive&) = default;
  };
  struct MoveTask {
    OpPtr op;
    std::string destination;  // Empty: where each message came from.
    Moment ended = kOpen;     // Known to have ended.
  };
  struct Queue {
    explicit Queue(std::string queue_name);
    std::string name;
    bool fifo;
    Register<bool> exists{false};
    Register<std::int64_t> visibility{30}, delay{0}, retention{345'600};
    Register<std::optional<Redrive>> redrive{std::nullopt};
    Register<bool> by_group{false};
    std::set<std::string> sources;  // Queues that ever had it as their dead-letter queue.
    std::vector<OpPtr> wipes;       // Purges and deletions.
    std::vector<OpPtr> receives;    // Those whose outcome is not known.
    std::vector<MoveTask> tasks;    // Move tasks from this queue.
    std::vector<std::pair<Moment, Seq>> highest;  // The highest Seq acknowledged at that moment.
    std::map<std::string, std::vector<std::size_t>> by_deduplication;
  };
  struct Call {
    Request request;
    OpPtr op;
    bool impaired = false;  // Something was wrong with the machine during the call.
    bool failing = false;   // Its store failed during the call.
    Micros began = 0;
    std::chrono::microseconds began_steady{};
    std::vector<OpPtr> parts;       // One per entry of a batch: each succeeds or fails by itself.
    std::vector<std::size_t> sent;  // Messages, by entry.
  };
  struct HandleOf {
    std::size_t message;
    std::size_t life;
    std::size_t delivery;
  };

  [[noreturn]] void broken(const char* promise, const std::string& what) const;

  Queue& queue(const std::string& name);
  Moment tick() {
    if (stale_ > 0) moments_.emplace_back(world_.now(), moment_ + 1);
    return ++moment_;
  }
  Moment moment_of_a_while_ago();
  void close(Call& call, Op::Outcome outcome);

  // Before a call.
  void prepare(Call& call, const SendMessage& r);
  void prepare(Call& call, const SendMessageBatch& r);
  void prepare(Call& call, const ReceiveMessage& r);
  void prepare(Call& call, const DeleteMessage& r);
  void prepare(Call& call, const DeleteMessageBatch& r);
  void prepare(Call& call, const ChangeMessageVisibility& r);
  void prepare(Call& call, const ChangeMessageVisibilityBatch& r);
  void prepare(Call& call, const PurgeQueue& r);
  void prepare(Call& call, const DeleteQueue& r);
  void prepare(Call& call, const CreateQueue& r);
  void prepare(Call& call, const SetQueueAttributes& r);
  void prepare(Call& call, const StartMessageMoveTask& r);
  template <class R>
  void prepare(Call&, const R&) {}
  void write_settings(Call& call, const QueueRef& ref, const StringMap& attributes, bool creating);
  void prepare_send(Call& call, const QueueRef& ref, const OutgoingMessage& message,
                    const std::string& sender);

  // After it.
  void check_refusal(const Call& call, const Error& error);
  bool waited_through_a_jump(const Call& call) const;
  void check_existence(const Call& call, const std::string& name);
  void settle(Call& call, const SendMessage& r, const ReplyValue& reply);
  void settle(Call& call, const SendMessageBatch& r, const ReplyValue& reply);
  void settle(Call& call, const ReceiveMessage& r, const ReplyValue& reply);
  void settle(Call& call, const DeleteMessage& r, const ReplyValue& reply);
  void settle(Call& call, const DeleteMessageBatch& r, const ReplyValue& reply);
  void settle(Call& call, const ChangeMessageVisibility& r, const ReplyValue& reply);
  void settle(Call& call, const ChangeMessageVisibilityBatch& r, const ReplyValue& reply);
  void settle(Call& call, const PurgeQueue& r, const ReplyValue& reply);
  void settle(Call& call, const DeleteQueue& r, const ReplyValue& reply);
  void settle(Call& call, const GetQueueAttributes& r, const ReplyValue& reply);
  void settle(Call& call, const ListQueues& r, const ReplyValue& reply);
  void settle(Call& call, const StanchionPeek& r, const ReplyValue& reply);
  void settle(Call& call, const ListMessageMoveTasks& r, const ReplyValue& reply);
  void settle(Call& call, const CancelMessageMoveTask& r, const ReplyValue& reply);
  template <class R>
  void settle(Call&, const R&, const ReplyValue&) {}

  void settle_send(Call& call, std::size_t index, const SentMessage& sent);
  void settle_deduplication(std::size_t index);
  void prepare_delete(Call& call, const std::optional<std::string>& handle);
  void prepare_change(Call& call, const std::optional<std::string>& handle,
                      std::optional<std::int64_t> timeout);
  void settle_delete(const OpPtr& op, const std::optional<std::string>& handle, bool done);
  void settle_change(const OpPtr& op, const std::optional<std::string>& handle, bool done);
  OpPtr add_part(Call& call);
  void settle_wipe(Call& call, const std::string& name);
  void check_counts(const Call& call, const std::string& name, const StringMap& attributes);

  // Looks; audit_peek.cc.
  std::size_t check_sighting(const Call& call, const std::string& name,
                             const PeekedMessage& seen) const;
  void check_last_receive(const Message& message, const PeekedMessage& seen) const;

  // Receives that choose; audit_choice.cc.
  void check_choice(const Call& call, const ReceiveMessage& r, const ReceiveMessageResult& result);
  void check_refused_choice(const Call& call, const ReceiveMessage& r);

  // Deliveries; audit_delivery.cc.
  Delivery delivery_of(const Call& call, const ReceiveMessage& r, const ReceivedMessage& received);
  void take_delivery(Call& call, const ReceiveMessage& r, const ReceivedMessage& received,
                     const std::vector<std::size_t>& before);
  void check_bytes(const Message& message, const ReceivedMessage& received) const;
  bool can_be_brought(const std::string& home, const std::string& to) const;
  std::size_t life_of(Call& call, Message& message, const ReceivedMessage& received,
                      const std::string& name);
  void check_place(const Call& call, Message& message, Life& life, const ReceivedMessage& received,
                   const std::string& name);
  void check_count(const Call& call, const Message& message, const Life& life,
                   const Delivery& delivery);
  void check_timing(const Call& call, const Message& message, const Life& life,
                    const Delivery& delivery) const;
  void check_order(const Call& call, const Message& message, const Delivery& delivery,
                   const std::vector<std::size_t>& before);
  void check_order_within(const ReceiveMessageResult& result) const;
  void check_empty(const Call& call, const ReceiveMessage& r);
  bool surely_ready(const Call& call, const Message& message, Instant deadline) const;
  bool surely_receivable(const Call& call, const Message& message, Instant deadline,
                         bool alone) const;
  void check_patience(const Call& call) const;
  void check_attempt(const Call& call, const ReceiveMessage& r, const ReceiveMessageResult& result);
  void note_other_tries(const Call& call, const ReceiveMessage& r, Delivery& delivery) const;
  void resolve_twins(Message& message);
  static std::string attempt_key(const ReceiveMessage& r) {
    return r.queue.name + "/" + *r.attempt_id;
  }
  template <class Visit>
  void for_each_of_attempt(const ReceiveMessage& r, Visit&& visit) {
    if (!r.attempt_id) return;
    for (Message& message : messages_)
      for (Life& life : message.lives)
        for (Delivery& delivery : life.deliveries)
          if (delivery.attempt == *r.attempt_id && delivery.queue == r.queue.name) visit(delivery);
  }
  // The receives whose visibility a change with this receipt may affect: on a FIFO queue the
  // receive that gave it, on a standard one the latest, whichever that is by then.
  template <class Visit>
  void for_each_changed(const HandleOf& at, Visit&& visit) {
    Message& message = messages_[at.message];
    std::vector<Delivery>& deliveries = message.lives[at.life].deliveries;
    for (std::size_t i = 0; i < deliveries.size(); ++i)
      if (message.fifo ? i == at.delivery : deliveries[i].queue == deliveries[at.delivery].queue)
        visit(deliveries[i]);
  }
  void settle_change_of(const Message& message, std::size_t life, Delivery& delivery,
                        const OpPtr& op, bool done);

  // FIFO groups; audit_line.cc.
  void check_line(const Call& call, const ReceiveMessage& r, const ReceiveMessageResult& result);
  void check_nobody_waits_before(const Call& call, const Queue& target, const std::string& group,
                                 Instant received, const std::set<std::string>& served);
  std::optional<Instant> waits_since(const Call& call, const Message& head) const;
  bool only_sends_fill(const Queue& target) const;

  // What is certain.
  Timeouts timeouts_of(const std::string& name, std::optional<std::int64_t> given,
                       const Op& op) const;
  Instant until_min(const Delivery& delivery) const;
  Instant until_max(const Delivery& delivery) const;
  Instant sent_lo(const Message& message) const;
  Instant sent_hi(const Message& message) const;
  std::uint32_t unknown_receives(const Message& message, const Op* except) const;
  bool may_have_left(const Message& message, const Op* except) const;
  bool may_wait_for_dead_letters(const Call& call, const Queue& target) const;
  bool may_have_expired(const Message& message) const;
  bool may_be_wiped(const Message& message) const;
  bool was_there_before(const Message& message, const Op& op) const;
  bool surely_in(const Message& message, const std::string& name, const Op* except) const;
  bool receipt_surely_valid(const Message& message, std::size_t life, const Delivery& delivery,
                            const Op& op) const;
  bool possibly_in(const Message& message, const std::string& name) const;
  std::int64_t retention(const std::string& name, Moment from, bool shortest) const;
  std::string story_of(const Message& message) const;

  const World& world_;
  const Duration skew_;
  const Micros stale_;
  std::size_t decision_messages_ = limits::kDecisionMessagesMax;
  Moment moment_ = 0;
  std::deque<std::pair<Micros, Moment>> moments_;  // The last ones, and when they were.
  CallNo next_call_ = 1;
  std::map<CallNo, Call> open_;
  std::map<std::string, Queue, std::less<>> queues_;
  std::vector<Message> messages_;
  std::map<std::string, std::size_t> by_body_;
  std::map<std::string, HandleOf> by_handle_;
  struct Shown {
    std::size_t message;
    MessageId id;
    Moment from;  // When it was asked for.
  };
  std::map<std::string, Shown> by_position_;
  struct Attempt {
    OpPtr op;
    std::vector<std::string> handles;
  };
  std::map<std::string, Attempt> attempts_;  // The last answer, by queue and attempt id.
  struct Try {
    OpPtr op;
    std::optional<std::int64_t> visibility;
  };
  std::map<std::string, std::vector<Try>> tries_;  // All of them, by queue and attempt id.
  std::map<std::string, OpPtr> cancelled_;         // Move tasks, by handle.
  bool impaired_now_ = false;
  bool full_now_ = false;
  Moment full_last_ = 0;  // The last moment before which the disk was full.
  bool failing_now_ = false;
  // When time last jumped, by order or because the machine was suspended.
  std::optional<Micros> jumped_;
  bool draining_ = false;
  Statistics statistics_;
};

}  // namespace stanchion::sim
