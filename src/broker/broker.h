// The broker: all shards of this process, and the routing of a request to the one that owns its
// queue.
//
//   submit(from a loop) ─▶ home shard's loop ─▶ Shard::submit ─▶ back to the loop it came from
//
// A request whose queue lives on the calling loop is executed at once, without a hop. Requests that
// concern several shards (listings, redrive targets, move tasks) are combined here.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "broker/answer_room.h"
#include "broker/figures.h"
#include "broker/loop.h"
#include "broker/queue_quota.h"
#include "broker/remote_shards.h"
#include "broker/shard.h"
#include "journal/journal.h"
#include "model/reply.h"
#include "model/request.h"
#include "os/entropy.h"
#include "os/timekeeper.h"

namespace stanchion::broker {

struct BrokerOptions {
  std::uint32_t shards = 1;
  bool strict = false;
  QueueLimits queues{};
  KeeperOptions keeping{};  // For all shards together.
  engine::MemoryOptions memory{};
  std::size_t decision_messages = limits::kDecisionMessagesMax;  // See engine::Options.
  // Replays the shards at the same time, each on a thread of its own.
  bool parallel_recovery = true;
};

// A request under way: what cancel() needs to find it.
struct Submission {
  ShardIndex shard;
  Ticket ticket;
};

class Broker final : private Peers {
 public:
  // What a shard has on disk. Without a store, its messages stay in memory.
  struct Storage {
    std::unique_ptr<journal::Journal> journal;
    std::shared_ptr<store::Store> store;
  };
  using OpenStorage = std::function<Result<Storage>(ShardIndex)>;
  using OnFatal = std::function<void(const Failure&)>;
  using OnDamage = std::function<void(const QueueRef&, const Failure&)>;

  // Opens and replays every shard. `time` and `entropy` must outlive the broker; time must have
  // begun, no earlier than last_recorded(), before start().
  static Result<std::unique_ptr<Broker>> open(const BrokerOptions& options,
                                              const OpenStorage& open_storage, os::Time& time,
                                              os::Entropy& entropy);

  // A broker of a fleet's node: it begins without shards, and passes what concerns those that it
  // does not have to `remote`, which must outlive it. Of an account's queues it counts those in
  // shards that it follows or serves.
  static std::unique_ptr<Broker> of_a_node(std::uint32_t shards, RemoteShards& remote,
                                           const QueueLimits& queues = {});
  // On the shard's loop: the shard is served here from now on, or no longer (nullptr). It must have
  // started, and outlive its service.
  void serve(ShardIndex index, Shard* shard);
  // On the shard's loop: this node follows the shard, or no longer (nullptr). Whoever looks at the
  // queues is shown it too.
  void follow(ShardIndex index, Shard* shard);
  // Any thread: for a request, a question or a transfer of another node, which is never passed on:
  // it may be told that the shard is not served here.
  Submission submit_here(ShardIndex shard, Request&& request, engine::Neighbours neighbours,
                         Respond respond, Guard guard = nullptr);
  void contribute_here(ShardIndex shard, engine::Needs needs, engine::Neighbours neighbours,
                       RemoteShards::Contributed then);
  void deliver_here(ShardIndex to, Transfer transfer, SourceEpoch epoch);
  void tell_verdict_here(ShardIndex to, const Settlement& settlement);
  // How the shards that are served here reach the others.
  Peers& peers() { return *this; }
  // Any thread: transfers under way are handed over again, because a shard has another owner.
  void hand_over_again();

  // Before start(): receives wait while answers under way have more bytes of messages.
  void limit_answers(std::size_t bytes) { answers_ = std::make_shared<AnswerRoom>(bytes); }

  // Shard i lives on loops[i % loops.size()]. `started` runs once, on some loop, when every shard
  // accepts requests; `fatal` on any thread, when a journal has failed and the process must end.
  // `background` must outlive every loop's last task.
  void start(std::vector<Loop*> loops, Background& background, Task started, OnFatal fatal);

  // Before start(): `on_damage` is called on some loop's thread when a queue is set aside, because
  // some of its messages cannot be read. The other queues go on.
  void watch_damage(OnDamage on_damage) { on_damage_ = std::move(on_damage); }
  // Any thread: the ARNs of the queues that are set aside, in order.
  std::vector<std::string> damaged_queues() const;

  // Any loop's thread. `respond` is called once on the same loop, unless the request is cancelled
  // while it is parked. `guard` runs on the loop of the queue's shard, before anything is decided.
  Submission submit(Loop& from, Request&& request, Respond respond, Guard guard = nullptr);
  void cancel(const Submission& submission);

  // Any thread: every shard reads the time again, because it was moved.
  void time_was_moved(Loop& from, Task done);

  // Any loop's thread: `done` is called there with the figures of every shard that is served or
  // followed here, and those of the queues that are wanted, when those that were collected before for
  // the same purpose are gone. The loops go on serving meanwhile.
  using Collected = std::move_only_function<void(Figures)>;
  void collect(Loop& from, WantedFigures wanted, Collected done);

  // Any thread: parked receives are answered and no more are parked.
  void drain();

  // Any thread, one at a time: backs up every shard so that the copies are consistent and contain
  // everything acknowledged before. `copy` runs in the background, for one shard after the other,
  // with the position that the shard's store has reached. `done` is called once, on some loop.
  using CopyShard = std::function<Status(ShardIndex, Position)>;
  void back_up(CopyShard copy, std::move_only_function<void(Status)> done);

  // To be called when no loop runs any more.
  Status close();

  // Before start(): the latest instant that any shard has recorded; 1970 if there is none.
  Instant last_recorded() const;

  std::uint32_t shard_count() const { return static_cast<std::uint32_t>(here_.size()); }
  const Shard& shard(ShardIndex index) const { return *here_[index.value()]; }
  Loop& loop_of(ShardIndex index) { return *loops_[index.value() % loops_.size()]; }

 private:
  Broker() = default;
  void limit_queues(const QueueLimits& limits);

  ShardIndex shard_of(const QueueRef& queue) const override;
  void deliver(ShardIndex to, Transfer transfer, SourceEpoch epoch) override;
  void tell_verdict(ShardIndex to, const Settlement& settlement) override;
  void fatal(ShardIndex shard, const Failure& failure) override;
  void moved(ShardIndex shard, std::string_view why) override;
  void send_on(ShardIndex shard, Job&& job) override;
  void damaged(const QueueRef& queue, const Failure& why) override;
  void healed(const QueueRef& queue) override;

  // Runs the task on the shard's loop: at once if this is that loop.
  void run_on(ShardIndex shard, Task task);
  bool enter_inbox(ShardIndex shard);
  void leave_inbox(ShardIndex shard);
  Ticket new_ticket() { return Ticket(next_ticket_.fetch_add(1, std::memory_order_relaxed)); }

  // A request on its way to the shard that executes it.
  struct Routed {
    ShardIndex home;
    Loop* from;
    Request request;
    Ticket ticket;
    Respond respond;
    Guard guard;
    engine::Neighbours neighbours;
  };

  struct Collection;
  Shard* find_to_look_at(std::uint32_t index) const;
  void collect_queues(const std::shared_ptr<Collection>& collection, std::uint32_t shard);

  struct Backup;
  void copy_shards(const std::shared_ptr<Backup>& backup);

  void send_home(Routed&& routed);
  void execute(Routed&& routed);
  std::vector<ShardIndex> shards_that_know(const engine::Needs& needs) const;
  void ask_neighbours(std::vector<ShardIndex> whom, engine::Needs needs, Routed routed);
  void send_to_all(Routed routed, std::optional<std::int64_t> max_results);

  std::shared_ptr<AnswerRoom> answers_;  // Null: any number of answers may be under way.
  FiguresLines figures_lines_;
  std::unique_ptr<QueueQuota> quota_;           // Null: there is none.
  std::vector<std::unique_ptr<Shard>> shards_;  // Of a machine by itself.
  std::vector<Shard*> here_;  // By index; nullptr: not here. Each used on the loop of its shard.
  std::vector<Shard*> followed_;  // The same, for those that are followed or were.
  RemoteShards* remote_ = nullptr;
  std::vector<Loop*> loops_;
  std::unique_ptr<std::atomic<std::int64_t>[]> inbox_;  // Requests under way to each shard.
  std::atomic<std::uint64_t> next_ticket_{1};
  OnFatal on_fatal_;
  OnDamage on_damage_;
  mutable std::mutex damage_mutex_;
  std::set<std::string> damaged_;  // Guarded by damage_mutex_.
};

}  // namespace stanchion::broker
