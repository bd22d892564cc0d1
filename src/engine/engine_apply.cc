// Applies facts. The same code runs when a fact has just been decided and when it is replayed.
#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/remember_attempt.h"
#include "model/limits.h"

namespace stanchion::engine {

void Engine::apply(const Fact& fact, Instant at) {
  std::visit([&](const auto& f) { apply_fact(f, at); }, fact);
}

void Engine::apply_fact(const ShardFounded& fact, Instant) {
  receipt_key_ = fact.receipt_key;
  founded_ = true;
}

void Engine::apply_fact(const QueueCreated& fact, Instant at) {
  CHECK(fact.queue >= next_queue_, "queue ids only grow");
  next_queue_ = fact.queue.next();
  auto owned =
      std::make_unique<Queue>(fact.queue, fact.ref, fact.attributes, fact.tags, at, memory_);
  Queue& queue = *owned;
  queues_.emplace(fact.queue, std::move(owned));
  by_ref_.emplace(&queue.ref, &queue);
  listing_.insert(&queue);
  link_dead_letters(queue);
  deleted_.remove(fact.ref);
  unsaved_.add(queue);
}

void Engine::apply_fact(const QueueDeleted& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  unlink_dead_letters(queue);
  if (deadlines_.holds(queue)) deadlines_.remove(queue);
  deleted_.add(queue.ref, at);
  last_words_.add({queue.ref, queue.created, at, queue.activity, std::move(queue.sent_sizes)});
  moving_.erase(fact.queue);
  unsaved_.remove(queue);
  queue.erase_all(erased_queues_);
  discard(queue.purge(at));
  listing_.erase(&queue);
  by_ref_.erase(&queue.ref);
  queues_.erase(fact.queue);
}

void Engine::apply_fact(const QueuePurged& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  discard(queue.purge(at));
  touch(queue);
}

void Engine::apply_fact(const QueueAttributesSet& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  unlink_dead_letters(queue);
  queue.set_attributes(fact.attributes, at);
  link_dead_letters(queue);
  touch(queue);
}

void Engine::apply_fact(const QueueTagged& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  for (const auto& [key, value] : fact.tags) queue.tags.insert_or_assign(key, value);
  unsaved_.add(queue);
}

void Engine::apply_fact(const QueueUntagged& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  for (const std::string& key : fact.keys) queue.tags.erase(key);
  unsaved_.add(queue);
}

void Engine::apply_fact(const MessageSent& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  auto message = std::make_unique<Message>();
  message->seq = fact.seq;
  message->content = fact.content;
  message->retained_from = at;
  Message& entered = queue.enter(std::move(message), fact.due, at);
  ++queue.activity.sent;
  queue.activity.sent_bytes += fact.content->message_size();
  queue.sent_sizes.add(fact.content->message_size(), at);
  if (fact.deduplication) queue.remember_original(*fact.deduplication, entered, at);
  touch(queue);
}

void Engine::apply_fact(const MessagesReceived& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  for (const auto& item : fact.items) {
    Message* message = queue.find(item.seq);
    CHECK(message != nullptr, "a received message is there");
    queue.receive(*message, item.visible_again, at);
  }
  remember_attempt(queue, fact, at);
  touch(queue);
}

void Engine::apply_fact(const MessagesDeleted& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  for (const Seq seq : fact.seqs) {
    Message* message = queue.find(seq);
    CHECK(message != nullptr, "a deleted message was there");
    queue.remove(*message, at);
  }
  touch(queue);
}

void Engine::apply_fact(const VisibilityChanged& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  const ReceiveAttempt* before =
      fact.attempt_id.empty() ? nullptr : queue.find_attempt(fact.attempt_id);
  std::optional<ReceiveAttempt> attempt;
  if (before != nullptr) attempt = *before;
  for (const auto& item : fact.items) {
    Message* message = queue.find(item.seq);
    CHECK(message != nullptr, "a message in flight is there");
    queue.change_visibility(*message, item.visible_again, at);
    if (!attempt) continue;
    for (auto& known : attempt->items)
      if (known.seq == item.seq) known.visible_again = item.visible_again;
  }
  if (attempt) queue.remember_attempt(fact.attempt_id, std::move(*attempt));
  // A receive that was repeated got the same messages once more.
  if (!fact.attempt_id.empty()) queue.activity.received += fact.items.size();
  touch(queue);
}

void Engine::apply_departure(Queue& queue, const MessagesLeft& fact, const MessagesLeft::Item& item,
                             Instant at) {
  Message* message = queue.find(item.seq);
  CHECK(message != nullptr, "a departing message is there");
  outbox_.add(item.transfer, {.queue = fact.queue,
                              .source_arn = queue.arn,
                              .destination = item.destination,
                              .reason = fact.reason,
                              .task = fact.task,
                              .message = queue.depart(*message, at)});
}

void Engine::apply_fact(const MessagesLeft& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  for (const auto& item : fact.items) apply_departure(queue, fact, item, at);
  if (fact.reason == TransferReason::kRedrive) {
    MoveTask* task = find_task(queue, fact.task);
    CHECK(task != nullptr, "a redrive belongs to a task");
    task->went(fact.items.size(), at);
  }
  touch(queue);
}

void Engine::apply_fact(const TransferAccepted& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  inbox_.accept(fact.source, fact.transfer, fact.settled_below);
  auto message = std::make_unique<Message>();
  message->seq = fact.seq;
  message->content = fact.content;
  message->retained_from = fact.retained_from;
  message->receive_count = fact.receive_count;
  message->first_received = fact.first_received;
  message->received = last_receive_of(*fact.content);
  queue.enter(std::move(message), at, at);
  ++queue.activity.moved_here;
  // A dead letter keeps its age and may be too old for its new queue.
  queue.advance(at);
  touch(queue);
}

void Engine::apply_fact(const TransfersSettled& fact, Instant) {
  for (const TransferNo number : fact.transfers) {
    Departure departure = outbox_.take(number);
    const bool homeless = !has_home(departure);
    if (homeless) bury(std::move(departure.message));
    Queue* queue = find_by_id(departure.queue);
    if (queue == nullptr) continue;
    if (!homeless) queue->departure_settled(*departure.message);
    ++(departure.reason == TransferReason::kDeadLetter ? queue->activity.dead_lettered
                                                       : queue->activity.moved_away);
    if (MoveTask* task = find_task(*queue, departure.task)) {
      ++task->moved;
      --task->in_transit;
    }
    touch(*queue);
  }
  has_more_room_ = true;
}

void Engine::apply_fact(const TransferRefused& fact, Instant at) {
  Departure departure = outbox_.take(fact.transfer);
  has_more_room_ = true;
  const bool homeless = !has_home(departure);
  if (homeless) bury(std::move(departure.message));
  Queue* queue = find_by_id(departure.queue);
  if (queue == nullptr) return;
  if (MoveTask* task = find_task(*queue, departure.task)) --task->in_transit;
  if (!homeless) {
    departure.message->stays = departure.reason == TransferReason::kDeadLetter;
    queue->departure_refused(std::move(departure.message), at);
  }
  touch(*queue);
}

void Engine::apply_fact(const MoveTaskStarted& fact, Instant at) {
  Queue& queue = queue_of(fact.queue);
  if (queue.tasks.size() == limits::kMoveTaskHistoryMax) queue.tasks.erase(queue.tasks.begin());
  MoveTask& task = queue.tasks.emplace_back();
  task.id = fact.task;
  task.destination_arn = fact.destination_arn;
  task.max_per_second = fact.max_per_second;
  task.to_move = fact.to_move;
  task.started = at;
  task.next_micros = to_millis(at) * 1'000;
  unsaved_.add(queue);
  moving_.insert(fact.queue);
}

void Engine::apply_fact(const MoveTaskEnded& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  MoveTask* task = find_task(queue, fact.task);
  CHECK(task != nullptr && task->running(), "a running task ends once");
  task->status = fact.status;
  task->failure_reason = fact.failure_reason;
  unsaved_.add(queue);
  moving_.erase(fact.queue);
}

MoveTask* Engine::find_task(Queue& queue, const TaskId& id) {
  const auto found = std::ranges::find(queue.tasks, id, &MoveTask::id);
  return found == queue.tasks.end() ? nullptr : &*found;
}

}  // namespace stanchion::engine
