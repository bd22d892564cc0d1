#include "broker/broker.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "broker/admission.h"
#include "broker/routing.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

// Of the budget: what the journal may have to write before sends wait. A disk that keeps up has less,
// but a few of the largest requests must fit.
constexpr std::size_t kUnwrittenShare = 8;
constexpr std::size_t kUnwrittenMin = 2 << 20;

Status recover_all(std::vector<std::unique_ptr<Shard>>& shards, bool parallel) {
  std::vector<Status> outcomes(shards.size());
  if (parallel && shards.size() > 1) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < shards.size(); ++i)
      threads.emplace_back([&, i] { outcomes[i] = shards[i]->recover(); });
  } else {
    for (std::size_t i = 0; i < shards.size(); ++i) outcomes[i] = shards[i]->recover();
  }
  for (std::size_t i = 0; i < shards.size(); ++i)
    if (!outcomes[i])
      return fail(fmt::format("shard {}: {}", i, outcomes[i].error().message),
                  outcomes[i].error().os_error);
  return {};
}

// Done when every shard has come to it.
struct Countdown {
  Countdown(std::size_t shards, Task then) : left(shards), done(std::move(then)) {}

  bool is_last() { return left.fetch_sub(1) == 1; }

  std::atomic<std::size_t> left;
  Task done;
};

Reply too_busy() {
  return refuse(ErrorCode::kServiceUnavailable,
                "Stanchion has more requests under way than it can take. Try again in a moment.");
}

// Answers on the loop that asked.
Respond back_to(Loop* from, Respond respond, AnswerRoom* room = nullptr) {
  return [from, respond = std::move(respond), room](Reply reply) mutable {
    if (from->is_current()) return respond(std::move(reply));
    from->post([claim = room != nullptr ? room->claim(reply) : AnswerRoom::Claim(),
                respond = std::move(respond),
                reply = std::move(reply)]() mutable { respond(std::move(reply)); });
  };
}

// A shard that has lost its log never answers what it has decided since it knew: then this does.
class AnswerOrUnknown {
 public:
  explicit AnswerOrUnknown(Respond respond) : respond_(std::move(respond)) {}
  AnswerOrUnknown(AnswerOrUnknown&&) = delete;
  ~AnswerOrUnknown() {
    if (respond_) respond_(outcome_is_unknown());
  }
  void answer(Reply reply) { std::exchange(respond_, nullptr)(std::move(reply)); }

 private:
  Respond respond_;
};

Respond or_unknown(Respond respond) {
  return [one = std::make_unique<AnswerOrUnknown>(std::move(respond))](Reply reply) {
    one->answer(std::move(reply));
  };
}

Reply neighbour_is_missing() {
  return refuse(ErrorCode::kServiceUnavailable,
                "A part of the fleet cannot be asked at the moment. This request changed nothing. "
                "Try again in a moment.");
}

}  // namespace

Result<std::unique_ptr<Broker>> Broker::open(const BrokerOptions& options,
                                             const OpenStorage& open_storage, os::Time& time,
                                             os::Entropy& entropy) {
  CHECK(options.shards >= 1 && options.shards <= limits::kShardsMax, "shards are bounded");
  std::unique_ptr<Broker> broker(new Broker());
  for (std::uint32_t i = 0; i < options.shards; ++i) {
    auto storage = open_storage(ShardIndex(i));
    if (!storage)
      return fail(fmt::format("shard {}: {}", i, storage.error().message),
                  storage.error().os_error);
    KeeperOptions keeping = options.keeping;
    keeping.memory /= options.shards;
    keeping.disk_shared_by = options.shards;
    keeping.unwritten =
        std::min(keeping.unwritten, std::max(kUnwrittenMin, keeping.memory / kUnwrittenShare));
    const engine::MemoryOptions memory = divide(options.memory, keeping.memory);
    broker->shards_.push_back(std::make_unique<Shard>(
        engine::Options{ShardIndex(i), options.strict, memory, options.decision_messages},
        std::move(storage->journal), std::move(storage->store), keeping, time, entropy));
  }
  broker->inbox_ = std::make_unique<std::atomic<std::int64_t>[]>(options.shards);
  RETURN_IF_FAILED(recover_all(broker->shards_, options.parallel_recovery));
  for (const auto& shard : broker->shards_) broker->here_.push_back(shard.get());
  broker->limit_queues(options.queues);
  if (!broker->quota_) return broker;
  for (const auto& shard : broker->shards_) shard->count_queues(*broker->quota_);
  return broker;
}

std::unique_ptr<Broker> Broker::of_a_node(std::uint32_t shards, RemoteShards& remote,
                                          const QueueLimits& queues) {
  CHECK(shards >= 1 && shards <= limits::kShardsMax, "shards are bounded");
  std::unique_ptr<Broker> broker(new Broker());
  broker->here_.resize(shards);
  broker->followed_.resize(shards);
  broker->remote_ = &remote;
  broker->inbox_ = std::make_unique<std::atomic<std::int64_t>[]>(shards);
  broker->limit_queues(queues);
  return broker;
}

void Broker::limit_queues(const QueueLimits& limits) {
  if (limits.any()) quota_ = std::make_unique<QueueQuota>(limits);
}

void Broker::start(std::vector<Loop*> loops, Background& background, Task started, OnFatal fatal) {
  CHECK(!loops.empty(), "a shard needs a loop to live on");
  loops_ = std::move(loops);
  on_fatal_ = std::move(fatal);
  auto countdown = std::make_shared<Countdown>(here_.size(), std::move(started));
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    Loop& loop = loop_of(ShardIndex(i));
    loop.post([this, &loop, &background, i, countdown] {
      if (here_[i] != nullptr) {
        here_[i]->limit_answers(answers_);
        here_[i]->start(loop, background, *this);
      }
      if (countdown->is_last()) countdown->done();
    });
  }
}

Instant Broker::last_recorded() const {
  Instant latest{};
  for (const auto& shard : shards_) latest = std::max(latest, shard->now());
  return latest;
}

ShardIndex Broker::shard_of(const QueueRef& queue) const {
  return broker::shard_of(queue, shard_count());
}

void Broker::run_on(ShardIndex shard, Task task) {
  Loop& loop = loop_of(shard);
  if (loop.is_current()) return task();
  loop.post(std::move(task));
}

bool Broker::enter_inbox(ShardIndex shard) {
  if (inbox_[shard.value()].fetch_add(1, std::memory_order_relaxed) < limits::kShardInboxMax)
    return true;
  leave_inbox(shard);
  return false;
}

void Broker::leave_inbox(ShardIndex shard) {
  inbox_[shard.value()].fetch_sub(1, std::memory_order_relaxed);
}

Submission Broker::submit(Loop& from, Request&& request, Respond respond, Guard guard) {
  const auto queue = engine::home_of(request);
  const Submission submission{queue ? shard_of(*queue) : ShardIndex(0), new_ticket()};
  const engine::Needs needs = engine::needs_of(request);
  std::optional<std::optional<std::int64_t>> listing;
  if (const auto* list = std::get_if<ListQueues>(&request)) listing = list->max_results;
  if (const auto* list = std::get_if<ListDeadLetterSourceQueues>(&request))
    listing = list->max_results;

  Routed routed{submission.shard, &from, std::move(request), submission.ticket, std::move(respond),
                std::move(guard), {}};
  if (listing && shard_count() > 1) {
    send_to_all(std::move(routed), *listing);
  } else if (needs.any()) {
    ask_neighbours(shards_that_know(needs), needs, std::move(routed));
  } else {
    send_home(std::move(routed));
  }
  return submission;
}

// A queue is known to its own shard; the sources of a dead-letter queue may be anywhere.
std::vector<ShardIndex> Broker::shards_that_know(const engine::Needs& needs) const {
  if (!needs.dead_letter_queue) return {shard_of(*needs.target)};
  std::vector<ShardIndex> all;
  for (std::uint32_t i = 0; i < shard_count(); ++i) all.emplace_back(i);
  return all;
}

// Each shard in turn adds what it knows; the last one sends the request to its home shard.
void Broker::ask_neighbours(std::vector<ShardIndex> whom, engine::Needs needs, Routed routed) {
  if (whom.empty()) return send_home(std::move(routed));
  const ShardIndex next = whom.back();
  whom.pop_back();
  run_on(next, [this, next, whom = std::move(whom), needs = std::move(needs),
                routed = std::move(routed)]() mutable {
    if (Shard* shard = here_[next.value()]) {
      shard->contribute(needs, routed.neighbours);
      return ask_neighbours(std::move(whom), std::move(needs), std::move(routed));
    }
    const engine::Neighbours so_far = routed.neighbours;
    remote_->contribute(next, needs, so_far,
                        [this, whom = std::move(whom), needs, routed = std::move(routed)](
                            engine::Neighbours neighbours, bool known) mutable {
                          if (!known)
                            return back_to(routed.from,
                                           std::move(routed.respond))(neighbour_is_missing());
                          routed.neighbours = std::move(neighbours);
                          ask_neighbours(std::move(whom), std::move(needs), std::move(routed));
                        });
  });
}

void Broker::send_home(Routed&& routed) {
  Loop& loop = loop_of(routed.home);
  if (&loop == routed.from && loop.is_current()) return execute(std::move(routed));
  Respond answer = back_to(routed.from, std::move(routed.respond), answers_.get());
  if (!enter_inbox(routed.home)) return answer(too_busy());
  routed.respond = std::move(answer);
  const ShardIndex home = routed.home;
  run_on(home, [this, home, routed = std::move(routed)]() mutable {
    leave_inbox(home);
    execute(std::move(routed));
  });
}

void Broker::execute(Routed&& routed) {
  if (Shard* shard = here_[routed.home.value()]) {
    if (remote_ != nullptr) routed.respond = or_unknown(std::move(routed.respond));
    return shard->submit(std::move(routed.request), routed.neighbours, routed.ticket,
                         std::move(routed.respond), std::move(routed.guard));
  }
  remote_->submit(routed.home, std::move(routed.request), routed.neighbours, routed.ticket,
                  std::move(routed.respond), std::move(routed.guard));
}

void Broker::send_to_all(Routed routed, std::optional<std::int64_t> max_results) {
  struct Gathering {
    std::vector<Reply> parts;
    std::size_t missing;
    Respond respond;
  };
  auto gathering = std::make_shared<Gathering>();
  gathering->missing = here_.size();
  gathering->respond = std::move(routed.respond);
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    const bool is_home = ShardIndex(i) == routed.home;
    engine::Neighbours neighbours;
    neighbours.is_home = is_home;
    // The parts arrive on the loop that asked, so nothing here is shared between threads.
    Respond take_part = [gathering, max_results](Reply part) {
      gathering->parts.push_back(std::move(part));
      if (--gathering->missing > 0) return;
      gathering->respond(engine::merge_lists(std::move(gathering->parts), max_results));
    };
    send_home({ShardIndex(i), routed.from, routed.request, new_ticket(), std::move(take_part),
               is_home ? std::move(routed.guard) : nullptr, neighbours});
  }
}

void Broker::cancel(const Submission& submission) {
  run_on(submission.shard, [this, submission] {
    if (Shard* shard = here_[submission.shard.value()]) shard->cancel(submission.ticket);
    if (remote_ != nullptr) remote_->cancel(submission.shard, submission.ticket);
  });
}

void Broker::time_was_moved(Loop& from, Task done) {
  auto countdown = std::make_shared<Countdown>(here_.size(), std::move(done));
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    run_on(ShardIndex(i), [this, i, &from, countdown] {
      if (here_[i] != nullptr) here_[i]->tick();
      if (countdown->is_last()) from.post([countdown] { countdown->done(); });
    });
  }
}

struct Broker::Collection : std::enable_shared_from_this<Collection> {
  Collection(Loop& asking, WantedFigures wants, Collected then)
      : from(asking), wanted(std::move(wants)), done(std::move(then)) {}

  struct Part {
    ShardFigures figures;
    std::optional<QueueRef> after = {};  // The last queue that was looked at.
    bool is_there = false;
  };
  Loop& from;
  FiguresLine::Turn turn;  // Declared before the figures, which are destroyed first.
  WantedFigures wanted;
  Collected done;
  std::vector<Part> parts;  // Each touched on the loop of its shard only.
  std::atomic<std::size_t> left;

  // One more part is complete.
  void add_part() {
    if (left.fetch_sub(1) != 1) return;
    from.post([self = shared_from_this()] {
      Figures all{.turn = std::move(self->turn), .shards = {}};
      for (Part& each : self->parts)
        if (each.is_there) all.shards.push_back(std::move(each.figures));
      self->done(std::move(all));
    });
  }
};

void Broker::collect(Loop& from, WantedFigures wanted, Collected done) {
  auto collection = std::make_shared<Collection>(from, std::move(wanted), std::move(done));
  collection->parts.resize(here_.size());
  collection->left = here_.size();
  figures_lines_.enter(collection->wanted.purpose, from, [this, collection](auto turn) {
    collection->turn = std::move(turn);
    for (std::uint32_t i = 0; i < shard_count(); ++i)
      run_on(ShardIndex(i), [this, i, collection] {
        Shard* const shard = find_to_look_at(i);
        if (shard == nullptr) return collection->add_part();
        // An idle shard's time stands still between its deadlines.
        if (here_[i] != nullptr) shard->tick();
        collection->parts[i] = {.figures = shard->figures(collection->wanted), .is_there = true};
        collection->parts[i].figures.served = here_[i] != nullptr;
        collect_queues(collection, i);
      });
  });
}

Shard* Broker::find_to_look_at(std::uint32_t index) const {
  if (here_[index] != nullptr || followed_.empty()) return here_[index];
  return followed_[index];
}

void Broker::collect_queues(const std::shared_ptr<Collection>& collection, std::uint32_t index) {
  Collection::Part& part = collection->parts[index];
  Shard* const shard = find_to_look_at(index);
  if (shard == nullptr) return collection->add_part();  // It has moved meanwhile.
  if (shard->add_queues(collection->wanted, part.after, part.figures))
    return loop_of(ShardIndex(index)).defer([this, collection, index] {
      collect_queues(collection, index);
    });
  if (here_[index] == nullptr) return collection->add_part();
  // Nobody is told of a count that a crash could take back: who watches would see it decrease.
  Respond add_if_durable = [collection, &part](const Reply& durable) {
    part.is_there = durable.has_value();
    collection->add_part();
  };
  if (remote_ != nullptr) add_if_durable = or_unknown(std::move(add_if_durable));
  shard->answer({std::move(add_if_durable), NoResult{}});
}

// A backup of all shards: all hold their transfers, then each fixes the content of its copy, then
// all go on while the copies are made.
struct Broker::Backup {
  CopyShard copy;
  std::move_only_function<void(Status)> done;
  std::atomic<std::size_t> unheld;
  std::atomic<std::size_t> undecided;
  std::atomic<std::size_t> uncopied;
  std::mutex mutex;
  Status outcome;  // The first failure. Guarded by mutex.
};

void Broker::back_up(CopyShard copy, std::move_only_function<void(Status)> done) {
  auto backup = std::make_shared<Backup>();
  backup->copy = std::move(copy);
  backup->done = std::move(done);
  CHECK(shards_.size() == here_.size(), "a node of a fleet copies its stores otherwise");
  backup->unheld = backup->undecided = backup->uncopied = shards_.size();
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    loop_of(ShardIndex(i)).post([this, i, backup] {
      shards_[i]->hold_transfers(true);
      if (backup->unheld.fetch_sub(1) == 1) copy_shards(backup);
    });
  }
}

void Broker::copy_shards(const std::shared_ptr<Backup>& backup) {
  const auto decided = [this, backup] {
    if (backup->undecided.fetch_sub(1) > 1) return;
    for (std::uint32_t i = 0; i < shard_count(); ++i)
      loop_of(ShardIndex(i)).post([this, i] { shards_[i]->hold_transfers(false); });
  };
  const auto done = [backup](std::uint32_t shard, const Status& status) {
    if (!status) {
      const std::lock_guard lock(backup->mutex);
      if (backup->outcome)
        backup->outcome = fail(fmt::format("shard {}: {}", shard, status.error().message),
                               status.error().os_error);
    }
    if (backup->uncopied.fetch_sub(1) == 1) backup->done(std::move(backup->outcome));
  };
  for (std::uint32_t i = 0; i < shard_count(); ++i) {
    loop_of(ShardIndex(i)).post([this, i, backup, decided, done] {
      shards_[i]->back_up(
          {.copy = [backup, i](Position at) { return backup->copy(ShardIndex(i), at); },
           .decided = decided,
           .done = [done, i](const Status& status) { done(i, status); }});
    });
  }
}

void Broker::deliver(ShardIndex to, Transfer transfer, SourceEpoch epoch) {
  loop_of(to).post([this, to, epoch, transfer = std::move(transfer)]() mutable {
    if (Shard* shard = here_[to.value()]) return shard->deliver(std::move(transfer), epoch);
    remote_->deliver(to, std::move(transfer), epoch);
  });
}

void Broker::tell_verdict(ShardIndex to, const Settlement& settlement) {
  loop_of(to).post([this, to, settlement] {
    if (Shard* shard = here_[to.value()]) return shard->take_verdict(settlement);
    remote_->tell_verdict(to, settlement);
  });
}

void Broker::serve(ShardIndex index, Shard* shard) {
  CHECK(loop_of(index).is_current(), "a shard comes and goes on its loop");
  if (shard != nullptr) shard->limit_answers(answers_);
  here_[index.value()] = shard;
}

void Broker::follow(ShardIndex index, Shard* shard) {
  CHECK(loop_of(index).is_current(), "a shard comes and goes on its loop");
  Shard*& followed = followed_[index.value()];
  if (followed != nullptr) followed->uncount_queues();
  followed = shard;
  if (shard != nullptr && quota_) shard->count_queues(*quota_);
}

Submission Broker::submit_here(ShardIndex index, Request&& request, engine::Neighbours neighbours,
                               Respond respond, Guard guard) {
  const Submission submission{index, new_ticket()};
  if (!enter_inbox(index)) {
    respond(too_busy());
    return submission;
  }
  loop_of(index).post([this, submission, neighbours = std::move(neighbours),
                       request = std::move(request), respond = std::move(respond),
                       guard = std::move(guard)]() mutable {
    leave_inbox(submission.shard);
    Shard* const shard = here_[submission.shard.value()];
    if (shard == nullptr) return respond(shard_has_moved());
    shard->submit(std::move(request), neighbours, submission.ticket, or_unknown(std::move(respond)),
                  std::move(guard));
  });
  return submission;
}

void Broker::contribute_here(ShardIndex index, engine::Needs needs, engine::Neighbours neighbours,
                             RemoteShards::Contributed then) {
  loop_of(index).post([this, index, needs = std::move(needs), neighbours = std::move(neighbours),
                       then = std::move(then)]() mutable {
    Shard* const shard = here_[index.value()];
    if (shard != nullptr) shard->contribute(needs, neighbours);
    then(std::move(neighbours), shard != nullptr);
  });
}

// What is not served here is dropped: whoever sent it will send it again to the new owner.
void Broker::deliver_here(ShardIndex to, Transfer transfer, SourceEpoch epoch) {
  loop_of(to).post([this, to, epoch, transfer = std::move(transfer)]() mutable {
    if (Shard* shard = here_[to.value()]) shard->deliver(std::move(transfer), epoch);
  });
}

void Broker::tell_verdict_here(ShardIndex to, const Settlement& settlement) {
  loop_of(to).post([this, to, settlement] {
    if (Shard* shard = here_[to.value()]) shard->take_verdict(settlement);
  });
}

void Broker::hand_over_again() {
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    loop_of(ShardIndex(i)).post([this, i] {
      if (here_[i] != nullptr) here_[i]->hand_over_again();
    });
}

void Broker::moved(ShardIndex shard, std::string_view why) {
  if (remote_ != nullptr) remote_->lost(shard, why);
}

void Broker::send_on(ShardIndex shard, Job&& job) {
  if (remote_ == nullptr) return Peers::send_on(shard, std::move(job));
  remote_->submit(shard, std::move(job.request), job.neighbours, job.ticket, std::move(job.respond),
                  std::move(job.guard));
}

void Broker::damaged(const QueueRef& queue, const Failure& why) {
  {
    const std::lock_guard lock(damage_mutex_);
    damaged_.insert(queue.arn());
  }
  if (on_damage_) on_damage_(queue, why);
}

void Broker::healed(const QueueRef& queue) {
  const std::lock_guard lock(damage_mutex_);
  damaged_.erase(queue.arn());
}

std::vector<std::string> Broker::damaged_queues() const {
  const std::lock_guard lock(damage_mutex_);
  return {damaged_.begin(), damaged_.end()};
}

void Broker::fatal(ShardIndex shard, const Failure& failure) {
  on_fatal_({fmt::format("shard {}: {}", shard.value(), failure.message), failure.os_error});
}

void Broker::drain() {
  for (std::uint32_t i = 0; i < shard_count(); ++i)
    run_on(ShardIndex(i), [this, i] {
      if (here_[i] != nullptr) here_[i]->drain();
    });
}

Status Broker::close() {
  Status first;
  for (auto& shard : shards_) {
    Status closed = shard->close();
    if (first && !closed) first = std::move(closed);
  }
  return first;
}

}  // namespace stanchion::broker
