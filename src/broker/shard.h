// A shard: the engine with its journal, its time, the replies that wait for the disk and the
// receives that wait for a message.
//
//   submit ─▶ engine decides ─▶ facts to the journal ─▶ durable ─▶ reply
//                 │ nothing to receive                    └─▶ transfers leave for other shards
//                 └─▶ parked poll ─▶ woken by send, time, release …
//
//   B1  A reply leaves only when every record that was appended before it was decided is durable.
//   B2  A transfer is handed over only when the fact that it leaves is durable, and its acceptance
//       is told to the source only when that is.
//   B3  Of what became durable together, parked receives that were served are answered first, in
//       the order in which they were decided, then all others in theirs.
//   B4  What time alone did, and a reply may show, is not taken back by a crash: a record that is as
//       late is durable before the reply leaves. (Not while the disk is full: nothing can be
//       recorded then.)
//   B5  Waits are measured by the steady clock; everything else has the time of the timekeeper.
//
// Everything runs on the shard's loop, except the journal's events, which only post to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "broker/background.h"
#include "broker/entropy_pool.h"
#include "broker/keeper.h"
#include "broker/loop.h"
#include "broker/parked_polls.h"
#include "broker/queue_quota.h"
#include "broker/set_aside.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "os/entropy.h"
#include "os/timekeeper.h"

namespace stanchion::broker {

// The way to the other shards. A call may come back on any thread that is the target's loop.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual ShardIndex shard_of(const QueueRef& queue) const = 0;
  virtual void deliver(ShardIndex to, Transfer transfer) = 0;
  virtual void tell_verdict(ShardIndex to, TransferNo number, TransferVerdict verdict) = 0;
  // The journal failed: nothing may be acknowledged any more. Ends the process in the server.
  virtual void fatal(ShardIndex shard, const Failure& failure) = 0;
  // A queue was set aside because something of it cannot be read, or has got over that.
  virtual void damaged(const QueueRef& /*queue*/, const Failure& /*why*/) {}
  virtual void healed(const QueueRef& /*queue*/) {}
};

class Shard {
 public:
  // Without a store all messages stay in memory.
  Shard(engine::Options options, std::unique_ptr<journal::Journal> journal,
        std::shared_ptr<store::Store> store, const KeeperOptions& keeping, os::Time& time,
        os::Entropy& entropy);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Before start(), on any one thread: loads the last checkpoint and replays the journal since.
  Status recover();

  // After recover(), before start(): its queues count, and those to come. `quota` must outlive it.
  void count_queues(QueueQuota& quota);

  // From here on everything happens on `loop`. Departures that were under way are handed over
  // again.
  void start(Loop& loop, Background& background, Peers& peers);

  // Executes the request, unless the guard (if there is one) refuses it, at once or when it has
  // waited; `respond` is called once, on this loop, unless the request is cancelled while it is
  // parked.
  void submit(Request request, const engine::Neighbours& neighbours, Ticket ticket, Respond respond,
              Guard guard = nullptr);

  // The client is gone: a parked receive is forgotten and will not take a message any more.
  void cancel(Ticket ticket);

  void contribute(const engine::Needs& needs, engine::Neighbours& neighbours) const {
    engine_.contribute(needs, neighbours);
  }

  // Called by way of Peers.
  void deliver(Transfer transfer);
  void take_verdict(TransferNo number, TransferVerdict verdict);

  // While held, no transfer leaves for another shard and none is settled. When all shards hold
  // theirs, each can be saved at a moment of its own: no copy has a transfer settled that another
  // has not accepted, or accepted that its source does not know.
  void hold_transfers(bool hold);

  // See Keeper::save().
  void save(Keeper::Saving saving);

  // Time has passed, by itself or by order.
  void tick();

  // Answers every parked receive with what there is, refuses what waits for room, and has nothing
  // wait for either any more.
  void drain();

  // Makes everything durable and answers it. The loop must not run meanwhile or ever after.
  Status close();

  const engine::Engine& engine() const { return engine_; }
  const journal::Journal& journal() const { return *journal_; }
  std::size_t parked_polls() const { return polls_.size(); }
  std::size_t requests_blocked() const;
  std::uint64_t records_replayed() const { return records_replayed_; }
  const Keeper& keeper() const { return keeper_; }
  Instant now() const { return now_; }

 private:
  struct WaitingReply {
    Position position;
    Task send;
  };
  // A request that needs something from the store first, or room in memory.
  struct Blocked {
    Request request;
    engine::Neighbours neighbours;
    Ticket ticket;
    SteadyInstant arrived;
    Respond respond;
    Guard guard;
    std::optional<SteadyInstant> until =
        std::nullopt;  // A poll that has waited: it parks no longer.
    // It is refused then; known when it first has to wait.
    SteadyInstant give_up = SteadyInstant::max();
  };
  struct UnsentTransfers {
    Position position;  // Durable: the transfers below `end` may go.
    TransferNo end;
  };

  Instant read_clock();
  void execute(Blocked work);
  Reply decide_within_quota(const Blocked& work);
  void block(Blocked work);
  void throttle(Blocked work);
  bool has_waited_too_long(Blocked& work);
  Reply refuse_for_memory(const Request& send) const;
  void refuse_overdue();
  void retry(std::deque<Blocked> blocked);
  bool is_blocked(const QueueRef& queue) const;
  Keeper::Callbacks callbacks();
  template <class Decide>
  auto decide(Decide&& choose);
  void append_record(TransferNo first_new_transfer);
  void append(TransferNo first_new_transfer);
  void record_time();
  void flush();
  void flush_now();
  void when_durable(Task send);
  void send_in_line(std::deque<WaitingReply>& line, Task send);
  void send_durable_replies();
  void on_durable();
  void send_transfers();
  void settle_verdicts();
  void park(ParkedPolls::Poll poll);
  std::optional<Error> ask(Guard& guard, const std::optional<QueueRef>& home) const;
  void forget_polls_of(const QueueRef& queue, const Error& why);
  void set_aside(QueueId queue, const Failure& why);
  // The request's queue, if it is set aside.
  const engine::Queue* find_set_aside(const Request& request) const;
  void serve_polls();
  void serve_polls_of(const QueueRef& queue);
  void expire_polls();
  void after_change();
  void arm_alarm();
  void retry_held_transfers();

  engine::Engine engine_;
  std::unique_ptr<journal::Journal> journal_;
  Keeper keeper_;
  os::Time& time_;
  EntropyPool entropy_;
  const ShardIndex index_;
  Loop* loop_ = nullptr;
  Peers* peers_ = nullptr;
  std::unique_ptr<Alarm> alarm_;
  SteadyInstant alarm_at_ = SteadyInstant::max();
  Instant now_{};
  os::TimeReading reading_;  // The last; now_ is never earlier than that.
  RecordWriter record_{Instant()};
  Position appended_;
  Position flushed_;  // What comes after it was not given to be committed yet.
  bool flush_deferred_ = false;
  bool patient_ = false;    // What is decided now need not be committed at once …
  bool hurry_ = false;      // … but something that was appended before must be.
  bool lingering_ = false;  // The flush of patient ones is due in a moment.
  bool draining_ = false;
  std::uint64_t records_replayed_ = 0;

  std::deque<WaitingReply> waiting_;
  std::deque<WaitingReply> served_polls_;  // Sent before the others; see serve_polls_of().
  ParkedPolls polls_;
  QueueQuota* quota_ = nullptr;  // Null: accounts may have any number of queues.
  bool last_decision_blocked_ = false;
  std::map<QueueId, std::deque<Blocked>> blocked_;   // Until something of the queue was read.
  std::deque<Blocked> throttled_;                    // Until memory or the journal has room.
  SteadyInstant overdue_at_ = SteadyInstant::max();  // None of those two is refused before.
  SetAside set_aside_;
  std::set<QueueRef> unserved_;  // Whose polls could not be served: the journal had no room.

  TransferNo handed_over_{1};  // Transfers below this number were handed over since start().
  std::deque<UnsentTransfers> unsent_;
  std::vector<TransferNo> accepted_;  // Verdicts that are not settled yet.
  std::vector<TransferNo> refused_;
  bool transfers_held_ = false;
  std::deque<Transfer> held_;  // Arrived before start(), or while the disk was full.

  // Shared with the journal's thread: one task under way to the loop is enough, and none may touch
  // a shard that is gone.
  struct Signal {
    std::atomic<bool> posted{false};
    std::atomic<bool> alive{true};
  };
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
};

}  // namespace stanchion::broker
