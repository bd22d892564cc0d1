// A shard: the engine with its journal, its time, the replies that wait for the disk and the
// receives that wait for a message.
//
//   submit ─▶ engine decides ─▶ facts to the journal ─▶ durable ─▶ reply
//                 │ nothing to receive                    └─▶ transfers leave for other shards
//                 └─▶ parked poll ─▶ woken by send, time, release …
//
// The parts: the committer decides when a commit begins and what is sent when it has ended (B1,
// B3); ShardTransfers handles messages that leave for other shards and come from them (B2); the
// waiting room holds requests that wait for the store or for room; the parked polls hold receives
// that wait for a message.
//
//   B4  A change by time alone that a reply may show is not undone by a crash: a record of that
//       time or later is durable before the reply leaves. (Except while the disk is full: then
//       nothing can be recorded.)
//   B10 Only an owner whose log was proven to be its own since hands over again what is under way.
//       Another owner may have got it back, and the target may take it now.
//   B5  Waits are measured by the steady clock; everything else has the time of the timekeeper.
//
// Everything runs on the shard's loop, except the journal's events, which only post to it. The
// entries of the shard and of its parts check that.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "base/result.h"
#include "broker/answer_room.h"
#include "broker/background.h"
#include "broker/committer.h"
#include "broker/entropy_pool.h"
#include "broker/figures.h"
#include "broker/keeper.h"
#include "broker/loop.h"
#include "broker/parked_polls.h"
#include "broker/peers.h"
#include "broker/queue_quota.h"
#include "broker/set_aside.h"
#include "broker/shard_transfers.h"
#include "broker/waiting_room.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "os/entropy.h"
#include "os/timekeeper.h"

namespace stanchion::broker {

class Shard {
 public:
  // Without a store all messages stay in memory.
  Shard(engine::Options options, std::unique_ptr<journal::Journal> journal,
        std::shared_ptr<store::Store> store, const KeeperOptions& keeping, os::Time& time,
        os::Entropy& entropy, const Patience& patience = {});
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // Before start(), on any one thread: loads the last checkpoint and replays the journal since.
  Status recover();

  // Instead of recover(), on a log that others write too: loads the last checkpoint; follow() says
  // on which loop the records behind it are passed to apply() as they come; and start() begins to
  // serve, once the log is owned and was read to its end. After some records keep_up() may begin a
  // checkpoint, and returns false: then none may be applied until `resume` was called.
  Status load();
  void follow(Loop& loop, Background& background, Peers& peers, std::function<void()> resume);
  Status apply(Position position, std::string_view record);
  bool keep_up();
  // The last record that was loaded or applied.
  Position applied() const { return applied_; }

  // After recover() or load(), before start(): counts its existing and future queues, until the
  // other is called. `quota` must outlive that.
  void count_queues(QueueQuota& quota);
  void uncount_queues();

  // Before start(): receives wait while the answers under way take too much memory.
  void limit_answers(std::shared_ptr<AnswerRoom> room) { answers_ = std::move(room); }

  // From here on everything happens on `loop`. Departures that were under way are handed over
  // again.
  void start(Loop& loop, Background& background, Peers& peers);

  // Executes the request, unless the guard (if there is one) refuses it, at once or after it has
  // waited; `respond` is called once, on this loop, unless the request is cancelled while it is
  // parked.
  void submit(Request&& request, const engine::Neighbours& neighbours, Ticket ticket,
              Respond respond, Guard guard = nullptr);

  // The client has disconnected: a parked receive is forgotten and will not take a message any
  // more.
  void cancel(Ticket ticket);

  void contribute(const engine::Needs& needs, engine::Neighbours& neighbours) const {
    owner_.check();
    engine_.contribute(needs, neighbours);
  }

  // Called through Peers.
  void deliver(Transfer transfer, SourceEpoch epoch = {});
  void take_verdict(const Settlement& settlement);
  // Another node may have to be told of the transfers under way: they are handed over again, once it
  // is proven that the log is still this owner's (B10).
  void hand_over_again();

  // While held, no transfer leaves for another shard and none is settled. When all shards hold
  // theirs, each can be backed up at a different moment: no copy has a transfer settled that
  // another has not accepted, or accepted that its source does not know.
  void hold_transfers(bool hold);

  // See Keeper::back_up().
  void back_up(Keeper::Backup backup);
  void give_up_backup(const Failure& why) { keeper_.give_up_backup(why); }

  // Time has passed, or was moved.
  void tick();

  // Answers every parked receive with the available messages, refuses requests that wait for room,
  // and lets none wait from then on.
  void drain();

  // Somebody else owns the journal: nothing that is known here may be told any more (B6).
  void stop_serving(std::string_view why);

  // Makes everything durable and answers it. The loop must not run meanwhile or ever after.
  Status close();

  // All but the queues that are not deleted.
  ShardFigures figures(const WantedFigures& wanted) const;
  // Adds some of the queues that are wanted, from behind `after` on; false if those were the last.
  // REQUIRES: per_account_max is not 0.
  bool add_queues(const WantedFigures& wanted, std::optional<QueueRef>& after,
                  ShardFigures& figures) const;
  // Runs `task` when everything decided so far is durable; at once if it is.
  void when_durable(Task task, Proven proven = Proven::kNow);
  // The same of a reply, which does not wait for ever (B8).
  void answer(ClientReply reply, Proven proven = Proven::kNow);

  const engine::Engine& engine() const { return engine_; }
  const journal::Journal& journal() const { return *journal_; }
  std::size_t parked_polls() const { return polls_.size(); }
  std::size_t requests_waiting() const { return waiting_.size(); }
  std::uint64_t records_replayed() const { return records_replayed_; }
  const Keeper& keeper() const { return keeper_; }
  Instant now() const { return now_; }

 private:
  // The reply of a decision; blocked: the request must be executed again when something has been
  // read.
  template <class Result>
  struct Decided {
    Result result;
    bool blocked = false;
    bool unfinished = false;  // The same, soon: it did as much as one decision may.
  };
  void finish_reading();

  Instant read_clock();
  void execute(Job&& job);
  // Refuses a request that may not be executed now, or makes it wait; false if it did.
  bool is_admitted_now(Job& job);
  bool is_disk_full(journal::Room room) const;
  bool may_leave() const;
  bool is_log_crowded() const;
  Reply refuse_for_log() const;
  bool is_beyond_memory(const ReceiveMessage& receive) const;
  // Whether there is no room for another answer with messages; then those that wait go on when there
  // is. Asked each time that a receive is made to wait: room may come right behind the question.
  bool must_wait_for_answers();
  // Whether there is no room for what a receive would read.
  bool must_wait_to_read(const Job& job) const;
  // The answer counts as one that is on its way until it was given.
  Respond with_claim(const Reply& reply, Respond respond);
  Reply refuse_for_memory(const Request& send) const;
  Reply refuse_without_room(const Job& job) const;
  Decided<Reply> decide_within_quota(const Job& job, Haste haste);
  void apply(const Fact& fact);
  void wait_for_read(Job job);
  void wait_for_room(Job job);
  void refuse_overdue();
  void retry(std::deque<Job> line);
  void wait_for_dead_letters(Job job, Duration wait);
  void give_up(Job job);
  void come_back_empty(Job job);
  bool is_unfinished(const QueueRef& queue) const;
  void go_on_soon(QueueId queue);
  void go_on_with(QueueId queue);
  // Perhaps there is room for some of the requests that wait for it.
  void make_room();
  void serve_who_waits();
  void let_some_go_on();
  bool may_go_on(const Job& job);
  bool waits_for_read(const QueueRef& queue) const;
  Keeper::Callbacks callbacks();
  template <class Decide>
  auto decide(Decide&& choose, Haste haste = Haste::kNow);
  void append(TransferNo first_new_transfer, Haste haste);
  void record_time();
  bool record_time_of_checkpoint();
  void on_durable();
  void settle_verdicts();
  void settle_verdicts_soon();
  void start_over();
  void watch_departures();
  void hand_over_again_if_due();
  void park(ParkedPolls::Poll poll);
  ParkedPolls::Poll take_first_poll_of(const QueueRef& queue);
  std::optional<Error> ask(RequestGuard& guard, const std::optional<QueueRef>& home) const;
  void forget_polls_of(const QueueRef& queue, const Error& why);
  void set_aside(QueueId queue, const Failure& why);
  // The request's queue, if it is set aside.
  const engine::Queue* find_set_aside(const Request& request) const;
  void serve_polls();
  void serve_polls_of(const QueueRef& queue);
  void expire_polls();
  void after_change();
  void arm_alarm();
  bool has_room_for(const Transfer& arrival) const;
  void accept(const Transfer& transfer);
  void retry_arrivals();
  template <class Do>
  void for_each_part(const Do& one);

  engine::Engine engine_;
  std::unique_ptr<journal::Journal> journal_;
  const Patience patience_;
  Committer committer_;
  Keeper keeper_;
  ShardTransfers transfers_;
  WaitingRoom waiting_;
  ParkedPolls polls_;
  SetAside set_aside_;
  std::set<QueueRef> unserved_;  // Queues whose polls could not be served: there was no room.
  // Queues with receives that met more dead letters than one decision may move; they go on when the
  // loop has served others.
  std::set<QueueId> unfinished_;
  std::shared_ptr<AnswerRoom> answers_;  // Null: they may take any memory.
  bool awaits_answers_ = false;          // It will be told when there is room for answers.
  QueueQuota* quota_ = nullptr;          // Null: accounts may have any number of queues.
  os::Time& time_;
  EntropyPool entropy_;
  const ShardIndex index_;
  OwningLoop owner_;
  Loop* loop_ = nullptr;
  Peers* peers_ = nullptr;
  std::unique_ptr<Alarm> alarm_;
  SteadyInstant alarm_at_ = SteadyInstant::max();
  Instant now_{};
  Instant last_recorded_{};
  os::TimeReading reading_;  // The last instant; now_ is never earlier.
  RecordWriter record_{Instant()};
  bool draining_ = false;
  bool nothing_leaves_ =
      false;  // See engine::Decision; as it was when a request was last admitted.
  // When what was handed over and is not settled is handed over again, because it may have been lost,
  // or its verdict; and how long after that the next time.
  SteadyInstant again_at_ = SteadyInstant::max();
  Duration again_after_{};
  TransferNo oldest_unsettled_;
  bool proving_ = false;            // hand_over_again() waits.
  bool letting_go_on_ = false;      // let_some_go_on() will be called again …
  bool retrying_arrivals_ = false;  // … and retry_arrivals().
  bool following_ = false;          // See follow(); time is that of the records.
  std::function<void()> resume_;
  bool superseded_ = false;  // See stop_serving().
  Position applied_;
  std::uint64_t records_replayed_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // For later tasks.
};

}  // namespace stanchion::broker
