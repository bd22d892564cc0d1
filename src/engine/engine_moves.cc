// Messages on their way between queues: dead letters, redrives and the tasks that pace them.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/task_handle.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

Error bad_arn(std::string_view parameter) {
  return {ErrorCode::kInvalidParameterValue,
          fmt::format("You must use this format to specify the {}: "
                      "arn:<partition>:<service>:<region>:<account-id>:<resource-id>",
                      parameter)};
}

Error no_resource(std::string_view parameter) {
  return {ErrorCode::kResourceNotFound,
          fmt::format("The resource that you specified for the {} parameter doesn't exist.",
                      parameter)};
}

Answer<QueueRef> required_arn(const std::optional<std::string>& arn, std::string_view parameter) {
  if (!arn || arn->empty()) return std::unexpected(missing(parameter));
  const auto ref = arn->size() > limits::kArnSizeMax ? std::nullopt : parse_queue_arn(*arn);
  if (!ref) return std::unexpected(bad_arn(parameter));
  return *ref;
}

std::unexpected<Error> wrong(std::string message) {
  return refuse(ErrorCode::kInvalidParameterValue, std::move(message));
}

}  // namespace

Reply Engine::on(const StartMessageMoveTask& request, const Neighbours& neighbours,
                 Decision& decision) {
  const auto source = required_arn(request.source_arn, "SourceArn");
  if (!source) return std::unexpected(source.error());
  Queue* queue = find_mutable(*source);
  if (queue == nullptr) return std::unexpected(no_resource("SourceArn"));
  if (!neighbours.is_dead_letter_queue)
    return wrong("Source queue must be configured as a Dead Letter Queue.");
  if (request.destination_arn) {
    const auto destination = required_arn(request.destination_arn, "DestinationArn");
    if (!destination) return std::unexpected(destination.error());
    if (*destination == *source)
      return wrong("Source queue arn and destination queue arn cannot be the same.");
    if (!neighbours.target) return std::unexpected(no_resource("DestinationArn"));
    if (neighbours.target->fifo != queue->fifo())
      return wrong("The source queue and destination queue must be of the same queue type.");
  }
  const std::int64_t rate = request.max_messages_per_second.value_or(0);
  if (request.max_messages_per_second && (rate < 1 || rate > limits::kMoveRateMax))
    return wrong(
        "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a "
        "number that's between 1 and 500.");
  if (!queue->tasks.empty() && queue->tasks.back().running())
    return wrong(
        "There is already a task running. Only one active task is allowed for a source queue arn "
        "at a given time.");
  if (neighbours.move_tasks_running >= limits::kMoveTasksPerAccountMax)
    return refuse(ErrorCode::kOverLimit,
                  fmt::format("{} message move tasks are running, which is the most that an "
                              "account may have at a time.",
                              neighbours.move_tasks_running));
  decision.blocked = queue->stalled();
  if (decision.blocked) return NoResult{};
  const MoveTaskStarted fact{queue->id, decision.random.uuid<TaskId>(),
                             request.destination_arn.value_or(""), rate, queue->counts().visible};
  record(fact, decision);
  return StartMessageMoveTaskResult{format_task_handle(fact.task, queue->arn)};
}

Reply Engine::on(const ListMessageMoveTasks& request, const Neighbours&, Decision&) {
  const auto source = required_arn(request.source_arn, "SourceArn");
  if (!source) return std::unexpected(source.error());
  const Queue* queue = find(*source);
  if (queue == nullptr) return std::unexpected(no_resource("SourceArn"));
  const std::int64_t most = request.max_results.value_or(1);
  if (most < 1 || most > limits::kMoveTasksListMax)
    return wrong(
        "Value for parameter MaxResults is invalid. Reason: You must enter a number that's between "
        "1 and 10.");
  ListMessageMoveTasksResult result;
  for (auto task = queue->tasks.rbegin(); task != queue->tasks.rend(); ++task) {
    if (std::ssize(result.tasks) == most) break;
    auto& out = result.tasks.emplace_back();
    if (task->running()) out.task_handle = format_task_handle(task->id, queue->arn);
    out.status = task->status;
    out.source_arn = queue->arn;
    if (!task->destination_arn.empty()) out.destination_arn = task->destination_arn;
    if (task->max_per_second != 0) out.max_messages_per_second = task->max_per_second;
    out.moved = task->moved;
    out.to_move = task->to_move;
    if (!task->failure_reason.empty()) out.failure_reason = task->failure_reason;
    out.started = task->started;
  }
  return result;
}

Reply Engine::on(const CancelMessageMoveTask& request, const Neighbours&, Decision& decision) {
  if (!request.task_handle || request.task_handle->empty())
    return std::unexpected(missing("TaskHandle"));
  const auto handle = parse_task_handle(*request.task_handle);
  if (!handle) return wrong("Value for parameter TaskHandle is invalid.");
  Queue* queue = find_mutable(handle->source);
  if (queue == nullptr) return std::unexpected(no_resource("SourceArn"));
  MoveTask* task = find_task(*queue, handle->task);
  if (task == nullptr) return refuse(ErrorCode::kResourceNotFound, "Task does not exist.");
  if (!task->running()) return wrong("Only active tasks can be cancelled.");
  const std::uint64_t moved = task->moved;
  end_task(*queue, *task, MoveTaskStatus::kCancelled, "", decision);
  return CancelMessageMoveTaskResult{moved};
}

void Engine::end_task(Queue& queue, MoveTask& task, MoveTaskStatus status, std::string reason,
                      Decision& decision) {
  record(MoveTaskEnded{queue.id, task.id, status, std::move(reason)}, decision);
}

void Engine::move_messages(Decision& decision) {
  // Ending a task changes moving_, so the loop uses a copy; it rarely has more than one element. It
  // begins behind the task that it ended with, because one record does not hold what all of them
  // together may move (E7): next_deadline() says that the others are due.
  const auto behind = moving_.upper_bound(moved_last_);
  std::vector<QueueId> moving(behind, moving_.end());
  moving.insert(moving.end(), moving_.begin(), behind);
  std::size_t most = options_.decision_messages;
  for (const QueueId id : moving) {
    if (most == 0) break;
    moved_last_ = id;
    Queue& queue = queue_of(id);
    MoveTask& task = queue.tasks.back();
    if (decision.now >= task.started + limits::kMoveTaskTimeMax) {
      end_task(queue, task, MoveTaskStatus::kFailed, "TimeLimitExceeded", decision);
      --most;
      continue;
    }
    // A stalled queue cannot tell which message comes next.
    if (queue.stalled()) continue;
    most -= move_some(queue, task, most, decision);
    if (task.running() && task.is_through(queue.counts().visible))
      end_task(queue, task, MoveTaskStatus::kCompleted, "", decision);
    if (!task.running()) most -= std::min<std::size_t>(most, 1);
  }
}

// Moves at most `most` messages, and returns how many.
std::size_t Engine::move_some(Queue& queue, MoveTask& task, std::size_t most, Decision& decision) {
  const std::uint64_t allowed = std::min<std::uint64_t>(task.allowed(decision.now), most);
  MessagesLeft fact{queue.id, TransferReason::kRedrive, task.id, {}};
  Hold held;
  bool lost = false;
  while (fact.items.size() < allowed && may_leave(queue)) {
    const Next next = queue.next_to_receive(held);
    if (!next) break;
    if (next.is_cold()) {
      queue.want(next);
      break;
    }
    Message* message = next.message;
    const auto destination =
        parse_queue_arn(task.destination_arn.empty() ? message->content->source_arn()
                                                     : std::string_view(task.destination_arn));
    if (!destination) {
      lost = true;
      break;
    }
    if (held.lane != message->lane) held = Hold(*message->lane);
    fact.items.push_back({message->seq, outbox_.next(), *destination});
    apply_departure(queue, fact, fact.items.back(), decision.now);
    queue.read_ahead(*held.lane);
  }
  if (!fact.items.empty()) {
    task.went(fact.items.size(), decision.now);
    decision.record.add(fact);
    touch(queue);
  }
  if (lost)
    end_task(queue, task, MoveTaskStatus::kFailed, "CouldNotDetermineMessageSource", decision);
  return fact.items.size();
}

TransferVerdict Engine::accept(const Transfer& transfer, Decision& decision) {
  if (inbox_.has(transfer.source, transfer.number)) return TransferVerdict::kAccepted;
  const Queue* queue = find(transfer.destination);
  if (queue == nullptr) return TransferVerdict::kRefused;

  TransferAccepted fact;
  fact.source = transfer.source;
  fact.transfer = transfer.number;
  fact.settled_below = transfer.settled_below;
  fact.queue = queue->id;
  fact.seq = queue->next_seq();
  ContentParts parts = transfer.content->parts();
  const std::string original_id = parts.id.text();
  if (transfer.reason == TransferReason::kDeadLetter) {
    parts.source_arn = transfer.source_arn;
    if (queue->fifo()) parts.deduplication_id = original_id;
    // Its source may have a clock that is ahead. Nothing is retained from later than it came, so that
    // of all but the early ones the first to come is the first to expire.
    fact.retained_from = queue->fifo() ? decision.now : std::min(parts.sent, decision.now);
    fact.receive_count = transfer.receive_count;
    fact.first_received = transfer.first_received;
    parts.last_received = {};
    if (transfer.last_received != Instant()) parts.last_received = transfer.last_received;
  } else {
    // A message that is moved back is a new one.
    parts.id = decision.random.uuid<MessageId>();
    parts.sent = decision.now;
    parts.source_arn = {};
    parts.last_received = {};
    fact.retained_from = decision.now;
  }
  fact.content = Content::make(parts);
  record(fact, decision);
  return TransferVerdict::kAccepted;
}

void Engine::settle(const std::vector<TransferNo>& accepted, Decision& decision) {
  TransfersSettled fact;
  for (const TransferNo number : accepted)
    if (outbox_.find(number) != nullptr) fact.transfers.push_back(number);
  if (!fact.transfers.empty()) record(fact, decision);
}

void Engine::refuse_transfer(TransferNo number, Decision& decision) {
  const Departure* departure = outbox_.find(number);
  if (departure == nullptr) return;
  CHECK(departure->message->content != nullptr, "only what was handed over is refused");
  const TaskId task_id = departure->task;
  const QueueId queue_id = departure->queue;
  record(TransferRefused{number}, decision);
  Queue* queue = find_by_id(queue_id);
  MoveTask* task = queue == nullptr ? nullptr : find_task(*queue, task_id);
  if (task != nullptr && task->running())
    end_task(*queue, *task, MoveTaskStatus::kFailed, "AWS.SimpleQueueService.NonExistentQueue",
             decision);
}

}  // namespace stanchion::engine
