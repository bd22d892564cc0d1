// How a shard gets the state that its records say: from its own journal when it starts, or from a
// log that somebody else writes, as the records come.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.h"
#include "broker/shard.h"

namespace stanchion::broker {
namespace {

// The queue that comes or goes by the fact, or whose settings may take another amount of memory.
QueueId queue_changed_by(const Fact& fact) {
  return std::visit(
      [](const auto& f) {
        using F = std::remove_cvref_t<decltype(f)>;
        if constexpr (std::is_same_v<F, QueueCreated> || std::is_same_v<F, QueueDeleted> ||
                      std::is_same_v<F, QueueAttributesSet> || std::is_same_v<F, QueueTagged> ||
                      std::is_same_v<F, QueueUntagged> || std::is_same_v<F, MoveTaskStarted>) {
          return f.queue;
        } else {
          return QueueId();
        }
      },
      fact);
}

}  // namespace

Status Shard::load() {
  const auto checkpoint = keeper_.load(now_);
  if (!checkpoint) return std::unexpected(checkpoint.error());
  applied_ = *checkpoint;
  return {};
}

Status Shard::apply(Position position, std::string_view bytes) {
  owner_.check();
  if (position != applied_.next())
    return fail(fmt::format("the journal has record {} where record {} is expected",
                            position.value(), applied_.next().value()));
  applied_ = position;
  const auto record = parse_record(bytes);
  if (!record) return std::unexpected(record.error());
  now_ = std::max(now_, record->at);
  engine_.advance(now_);
  RETURN_IF_FAILED(keeper_.prepare(record->facts, now_));
  keeper_.appended(bytes.size());
  for (const Fact& fact : record->facts) apply(fact);
  ++records_replayed_;
  return {};
}

void Shard::count_queues(QueueQuota& quota) {
  quota_ = &quota;
  engine_.for_each_queue([&](const engine::Queue& queue) {
    quota.add(queue.ref.account);
    quota.change_bytes(queue.ref.account, 0, queue.settings_bytes());
  });
}

void Shard::uncount_queues() {
  QueueQuota* quota = std::exchange(quota_, nullptr);
  if (quota == nullptr) return;
  engine_.for_each_queue([&](const engine::Queue& queue) {
    quota->give_back(queue.ref.account);
    quota->change_bytes(queue.ref.account, queue.settings_bytes(), 0);
  });
}

// Applies what another owner has decided, by which a queue may come, go or change.
void Shard::apply(const Fact& fact) {
  const QueueId id = quota_ == nullptr ? QueueId() : queue_changed_by(fact);
  if (id == QueueId()) return engine_.apply(fact, now_);
  const engine::Queue* queue = engine_.find(id);
  const std::string account =
      queue != nullptr ? queue->ref.account : std::get<QueueCreated>(fact).ref.account;
  const std::size_t before = queue != nullptr ? queue->settings_bytes() : 0;
  engine_.apply(fact, now_);
  queue = engine_.find(id);
  if (before == 0) quota_->add(account);
  if (queue == nullptr) quota_->give_back(account);
  quota_->change_bytes(account, before, queue != nullptr ? queue->settings_bytes() : 0);
}

Status Shard::recover() {
  RETURN_IF_FAILED(load());
  const auto take = [this](Position position, std::string_view bytes) -> Status {
    RETURN_IF_FAILED(apply(position, bytes));
    return keeper_.save_in_replay(applied_, now_);
  };
  RETURN_IF_FAILED(journal_->replay(applied_.next(), take));
  if (applied_.next() != journal_->next_position())
    return fail(fmt::format("the journal says that it ends at record {}, but has those before {}",
                            journal_->next_position().value(), applied_.next().value()));
  finish_reading();
  return {};
}

void Shard::finish_reading() {
  committer_.recovered();
  engine_.take_awakened();
  engine_.forget_changed_by_time();
}

// What a record needs is read from the store at once, which must be as the engine takes it to be.
bool Shard::keep_up() {
  keeper_.work(applied_, now_);
  return !keeper_.is_writing() && !keeper_.is_reading() && !keeper_.must_wait_to_free();
}

void Shard::follow(Loop& loop, Background& background, Peers& peers, std::function<void()> resume) {
  CHECK(loop.is_current(), "a shard follows on its loop");
  following_ = true;
  resume_ = std::move(resume);
  peers_ = &peers;
  owner_.start(loop);
  keeper_.start(loop, background, callbacks(), now_);
}

// Another owner may go on behind this checkpoint with an earlier clock. A record says how late it is
// here, so that no replica is ahead of its log. False: not now.
bool Shard::record_time_of_checkpoint() {
  if (!journal_->can_be_superseded() || last_recorded_ >= now_) return true;
  if (!keeper_.wants_checkpoint(now_) || !journal::may_append(journal_->room())) return false;
  record_.start(now_);
  append(engine_.next_transfer(), Haste::kNow);
  return true;
}

}  // namespace stanchion::broker
