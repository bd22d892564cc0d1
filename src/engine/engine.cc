#include "engine/engine.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

template <class T>
concept QueueScoped = requires(const T& request) {
  { request.queue } -> std::convertible_to<const QueueRef&>;
};

// How many queues are woken together when their dead letters may leave.
constexpr std::size_t kWokenAtATime = 8;

}  // namespace

std::size_t Engine::RefHash::operator()(const QueueRef* ref) const {
  // The region is left out: an account has the same name in a few regions at most.
  return xxh3_64(ref->name, xxh3_64(ref->account));
}

const Queue* Engine::find(QueueId id) const {
  const auto found = queues_.find(id);
  return found == queues_.end() ? nullptr : found->second.get();
}

const Queue* Engine::find(const QueueRef& ref) const {
  const auto found = by_ref_.find(&ref);
  return found == by_ref_.end() ? nullptr : found->second;
}

Queue* Engine::find_mutable(const QueueRef& ref) {
  const auto found = by_ref_.find(&ref);
  if (found == by_ref_.end()) return nullptr;
  settle(*found->second);
  return found->second;
}

Queue* Engine::find_by_id(QueueId id) {
  const auto found = queues_.find(id);
  if (found == queues_.end()) return nullptr;
  settle(*found->second);
  return found->second.get();
}

Queue& Engine::queue_of(QueueId id) {
  Queue* queue = find_by_id(id);
  CHECK(queue != nullptr, "a fact names a queue that exists");
  return *queue;
}

void Engine::found(const MacKey& receipt_key, Decision& decision) {
  CHECK(!founded_, "a shard is founded once");
  record(ShardFounded{receipt_key}, decision);
}

Reply Engine::execute(const Request& request, const Neighbours& neighbours, Decision& decision) {
  CHECK(founded_, "a shard is founded before it decides");
  return std::visit(
      [&](const auto& r) -> Reply {
        using R = std::remove_cvref_t<decltype(r)>;
        if constexpr (QueueScoped<R> && !std::is_same_v<R, CreateQueue> &&
                      !std::is_same_v<R, ListDeadLetterSourceQueues>) {
          Queue* queue = find_mutable(r.queue);
          if (queue == nullptr)
            return refuse(ErrorCode::kQueueDoesNotExist, "The specified queue does not exist.");
          if constexpr (!std::is_same_v<R, StanchionPeek> && !std::is_same_v<R, StanchionGroups>)
            queue->used = decision.now;
          // A stalled queue does not know yet which of its messages have expired. Its counts are
          // unknown, and under another retention the messages would not have expired: so this must
          // be known first.
          if constexpr (std::is_same_v<R, ReceiveMessage> ||
                        std::is_same_v<R, GetQueueAttributes> ||
                        std::is_same_v<R, SetQueueAttributes> || std::is_same_v<R, StanchionPeek> ||
                        std::is_same_v<R, StanchionGroups>) {
            decision.blocked = queue->stalled();
            if (decision.blocked) return NoResult{};
          }
          return on(r, *queue, neighbours, decision);
        } else {
          return on(r, neighbours, decision);
        }
      },
      request);
}

void Engine::contribute(const Needs& needs, Neighbours& neighbours) const {
  if (needs.target) {
    if (const Queue* queue = find(*needs.target))
      neighbours.target =
          QueueSummary{queue->ref, queue->fifo(), queue->attributes().redrive_allow};
  }
  if (needs.dead_letter_queue) {
    neighbours.is_dead_letter_queue |=
        dead_letter_sources_.contains(needs.dead_letter_queue->arn());
    for (const QueueId id : moving_)
      neighbours.move_tasks_running +=
          queues_.at(id)->ref.account == needs.dead_letter_queue->account;
  }
}

void Engine::advance(Instant now) {
  while (!deadlines_.empty() && deadlines_.top_key() <= now) {
    Queue& queue = deadlines_.top();
    settle(queue);
    queue.advance(now);
    touch(queue);
  }
  deleted_.forget_old(now);
}

Instant Engine::next_deadline() const {
  Instant next = deadlines_.empty() ? kNever : deadlines_.top_key();
  for (const QueueId id : moving_) {
    const Queue& queue = *queues_.at(id);
    const MoveTask& task = queue.tasks.back();
    if (!queue.stalled()) {
      if (task.is_through(queue.counts().visible)) return task.started;
      if (task.wants_more() && queue.has_receivable() && !queue.waits_for_read() &&
          may_leave(queue))
        next = std::min(next, task.next_allowed());
    }
    next = std::min(next, task.started + limits::kMoveTaskTimeMax);
  }
  return next;
}

// Every change of a queue ends here, so that neither a checkpoint nor the next deadline misses it,
// and parked receives are woken.
void Engine::touch(Queue& queue) {
  unsaved_.add(queue);
  if (queue.take_changed_by_time()) changed_by_time_ = true;
  const Instant deadline = queue.next_deadline();
  if (deadline != kNever) {
    deadlines_.set(queue, deadline);
  } else if (deadlines_.holds(queue)) {
    deadlines_.remove(queue);
  }
  if (!watched_.empty() && queue.has_receivable() && watched_.contains(queue.ref))
    awakened_.insert(queue.ref);
}

void Engine::watch(const QueueRef& ref, bool watched) {
  if (watched) {
    watched_.insert(ref);
  } else {
    watched_.erase(ref);
  }
}

void Engine::note_empty_receive(const QueueRef& ref, bool waited, Instant now) {
  Queue* queue = find_mutable(ref);
  if (queue == nullptr) return;
  ++queue->activity.empty_receives;
  if (!waited) queue->habits.empty_polls.add(1, now);
}

bool Engine::has_receivable(const QueueRef& ref) const {
  const Queue* queue = find(ref);
  return queue != nullptr && queue->has_receivable();
}

std::vector<QueueRef> Engine::take_awakened() {
  if (has_more_room_) wake_held_back();
  if (awakened_.empty()) return {};
  std::vector<QueueRef> out(awakened_.begin(), awakened_.end());
  awakened_.clear();
  return out;
}

void Engine::link_dead_letters(Queue& queue) {
  if (const auto& redrive = queue.attributes().redrive)
    dead_letter_sources_[redrive->target_arn].insert(&queue);
}

void Engine::unlink_dead_letters(Queue& queue) {
  const auto& redrive = queue.attributes().redrive;
  if (!redrive) return;
  const auto found = dead_letter_sources_.find(redrive->target_arn);
  CHECK(found != dead_letter_sources_.end(), "E5");
  found->second.erase(&queue);
  if (found->second.empty()) dead_letter_sources_.erase(found);
}

std::optional<Transfer> Engine::hand_over(TransferNo& from, TransferNo end) {
  const Departure* departure =
      outbox_.hand_over(from, end, memory_.options.in_transit, memory_.wanted);
  if (departure == nullptr) return std::nullopt;
  return transfer_of(TransferNo(from.value() - 1), *departure);
}

std::vector<Transfer> Engine::transfers_from(TransferNo from) const {
  std::vector<Transfer> out;
  const auto& under_way = outbox_.under_way();
  for (auto it = under_way.lower_bound(from); it != under_way.end(); ++it)
    out.push_back(transfer_of(it->first, it->second));
  return out;
}

Transfer Engine::transfer_of(TransferNo number, const Departure& departure) const {
  return {.source = options_.shard,
          .number = number,
          .settled_below = {},
          .destination = departure.destination,
          .reason = departure.reason,
          .source_arn = departure.source_arn,
          .content = departure.message->content,
          .receive_count = departure.message->receive_count,
          .first_received = departure.message->first_received,
          .last_received = departure.message->received};
}

bool Engine::may_leave_or_wait(const Queue& queue) {
  if (may_leave(queue)) return true;
  held_back_.insert(queue.id);
  return false;
}

// Some message has arrived, so that others may leave. Each queue that is woken may take all the room
// there is, so a few are at a time; the next call looks whether there is room for more.
void Engine::wake_held_back() {
  std::size_t woken = 0;
  for (auto it = held_back_.begin(); it != held_back_.end();) {
    if (woken == kWokenAtATime || !has_room_for("")) return;
    const Queue* queue = find(*it);
    if (queue != nullptr && !may_leave(*queue)) {
      ++it;
      continue;
    }
    if (queue != nullptr && watched_.contains(queue->ref)) {
      awakened_.insert(queue->ref);
      ++woken;
    }
    it = held_back_.erase(it);
  }
  has_more_room_ = false;
}

void Engine::check_invariants() const {
  for (const auto& [id, queue] : queues_) queue->check_invariants();
  check_names_and_deadlines();
  check_departures();
}

void Engine::check_names_and_deadlines() const {
  CHECK(by_ref_.size() == queues_.size() && listing_.size() == queues_.size(), "E2");
  CHECK(deadlines_.is_sound(), "E3: the heap of deadlines is sound");
  std::size_t linked = 0;
  for (const auto& [arn, sources] : dead_letter_sources_) {
    CHECK(!sources.empty(), "E5: no empty entries");
    linked += sources.size();
  }
  for (const auto& [id, queue] : queues_) {
    CHECK(find(queue->ref) == queue.get() && listing_.contains(queue.get()), "E2");
    const Instant deadline = queue->next_deadline();
    CHECK(deadline == kNever ? !deadlines_.holds(*queue) : deadlines_.key_of(*queue) == deadline,
          "E3: the next deadline is known");
    const auto& redrive = queue->attributes().redrive;
    if (redrive) {
      CHECK(dead_letter_sources_.at(redrive->target_arn).contains(queue.get()), "E5");
      --linked;
    }
    CHECK(moving_.contains(id) == (!queue->tasks.empty() && queue->tasks.back().running()), "E6");
  }
  CHECK(linked == 0, "E5: no links that no policy asks for");
}

void Engine::check_departures() const {
  outbox_.check_bytes();
  std::map<TaskId, std::uint64_t> in_transit;
  std::map<std::pair<QueueId, std::string>, std::set<Seq>> leaving;
  for (const auto& [number, departure] : outbox_.under_way()) {
    const auto queue = queues_.find(departure.queue);
    if (queue != queues_.end() && !queue->second->was_purged(departure.message->seq))
      leaving[{departure.queue, departure.message->lane->group}].insert(departure.message->seq);
    if (departure.reason == TransferReason::kRedrive) ++in_transit[departure.task];
  }
  for (const auto& [id, queue] : queues_) {
    for (const MoveTask& task : queue->tasks)
      CHECK(task.in_transit == in_transit[task.id], "E6: in_transit counts departures");
    if (queue->fifo())
      queue->stock().check_blockers([&](const Lane& lane) { return leaving[{id, lane.group}]; });
  }
}

std::uint64_t Engine::fingerprint(const Queue::ReadNow& read) const {
  std::string bytes;
  ByteWriter writer(bytes);
  for_each_queue([&](const Queue& queue) { queue.fingerprint(bytes, read); });
  writer.u64(next_queue_.value());
  writer.u64(outbox_.next().value());
  for (const auto& [number, departure] : outbox_.under_way()) {
    writer.u64(number.value());
    writer.u64(departure.queue.value());
    writer.u64(departure.message->seq.value());
    writer.text(departure.destination.arn());
  }
  inbox_.for_each([&](ShardIndex shard, TransferNo number) {
    writer.u32(shard.value());
    writer.u64(number.value());
  });
  return xxh3_64(bytes);
}

}  // namespace stanchion::engine
