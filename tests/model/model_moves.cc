// The model's move tasks, and the transfers between queues.
#include <fmt/format.h>

#include <algorithm>

#include "tests/model/reference_model.h"

namespace stanchion::reference {

using namespace std::chrono_literals;
using Where = Message::Where;

namespace {

constexpr std::uint64_t kInTransitMax = 1'000;
constexpr std::size_t kHistoryMax = 10;

std::string name_in(const std::string& arn) {
  const auto ref = parse_queue_arn(arn);
  return ref ? ref->name : "";
}

}  // namespace

Task* Model::find_task(Queue& queue, int number) {
  const auto found = std::ranges::find(queue.tasks, number, &Task::number);
  return found == queue.tasks.end() ? nullptr : &*found;
}

Passage& Model::passage(TransferNo number) {
  const auto found = std::ranges::find(passages_, number, &Passage::number);
  require(found != passages_.end(), "no such transfer is under way");
  return *found;
}

void Model::start_move(const std::string& source, const std::optional<std::string>& destination,
                       std::optional<std::int64_t> rate, const Reply& got) {
  Queue* queue = find(source);
  std::vector<Expected> wrong;
  const auto invalid = [&](const char* text) {
    wrong.push_back({ErrorCode::kInvalidParameterValue, text});
  };
  if (queue == nullptr)
    wrong.push_back({ErrorCode::kResourceNotFound,
                     "The resource that you specified for the SourceArn parameter doesn't exist."});
  const bool is_dead_letter_queue = std::ranges::any_of(queues_, [&](const Queue& other) {
    return other.redrive && other.redrive->target == source;
  });
  if (queue != nullptr && !is_dead_letter_queue)
    invalid("Source queue must be configured as a Dead Letter Queue.");
  if (destination) {
    const Queue* target = find(*destination);
    if (*destination == source)
      invalid("Source queue arn and destination queue arn cannot be the same.");
    else if (target == nullptr)
      wrong.push_back(
          {ErrorCode::kResourceNotFound,
           "The resource that you specified for the DestinationArn parameter doesn't exist."});
    else if (queue != nullptr && target->fifo != queue->fifo)
      invalid("The source queue and destination queue must be of the same queue type.");
  }
  if (rate && (*rate < 1 || *rate > 500))
    invalid(
        "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Reason: You must enter a "
        "number that's between 1 and 500.");
  if (queue != nullptr && !queue->tasks.empty() &&
      queue->tasks.back().status == MoveTaskStatus::kRunning)
    invalid(
        "There is already a task running. Only one active task is allowed for a source queue arn "
        "at a given time.");
  if (refused(wrong, got)) return;

  Task task;
  task.number = next_task_++;
  task.handle = value_of<StartMessageMoveTaskResult>(got).task_handle;
  task.destination = destination.value_or("");
  task.rate = rate.value_or(0);
  task.started = task.last_went = now_;
  task.to_move = queue->count(Where::kReady);
  require(std::ranges::find(task_handles_, task.handle) == task_handles_.end(),
          "every task has its own handle");
  task_handles_.push_back(task.handle);
  task_sources_[task.handle] = source;
  if (queue->tasks.size() == kHistoryMax) queue->tasks.erase(queue->tasks.begin());
  queue->tasks.push_back(std::move(task));
}

void Model::cancel_move(const std::optional<std::string>& handle, const Reply& got) {
  if (!handle) {
    refused({missing_parameter("TaskHandle")}, got);
    return;
  }
  if (std::ranges::find(task_handles_, *handle) == task_handles_.end()) {
    refused({{ErrorCode::kInvalidParameterValue, "Value for parameter TaskHandle is invalid."}},
            got);
    return;
  }
  for (Queue& queue : queues_) {
    const auto task = std::ranges::find(queue.tasks, *handle, &Task::handle);
    if (task == queue.tasks.end()) continue;
    if (task->status != MoveTaskStatus::kRunning) {
      refused({{ErrorCode::kInvalidParameterValue, "Only active tasks can be cancelled."}}, got);
      return;
    }
    require(value_of<CancelMessageMoveTaskResult>(got).moved == task->moved,
            "a cancelled task says how many it moved");
    note("a move task was cancelled");
    task->status = MoveTaskStatus::kCancelled;
    return;
  }
  // The task is gone with its queue, or many others came after it; another queue may have that
  // name.
  const bool has_queue = find(task_sources_.at(*handle)) != nullptr;
  refused(
      {{ErrorCode::kResourceNotFound,
        has_queue ? "Task does not exist."
                  : "The resource that you specified for the SourceArn parameter doesn't exist."}},
      got);
}

void Model::list_moves(const std::string& source, std::optional<std::int64_t> most,
                       const Reply& got) {
  const Queue* queue = find(source);
  std::vector<Expected> wrong;
  if (queue == nullptr)
    wrong.push_back({ErrorCode::kResourceNotFound,
                     "The resource that you specified for the SourceArn parameter doesn't exist."});
  if (most && (*most < 1 || *most > 10))
    wrong.push_back({ErrorCode::kInvalidParameterValue, std::nullopt});
  if (refused(wrong, got)) return;
  const auto& tasks = value_of<ListMessageMoveTasksResult>(got).tasks;
  const std::size_t wanted =
      std::min(static_cast<std::size_t>(most.value_or(1)), queue->tasks.size());
  require(tasks.size() == wanted, fmt::format("{} tasks instead of {}", tasks.size(), wanted));
  for (std::size_t i = 0; i < wanted; ++i) {
    const Task& task = queue->tasks[queue->tasks.size() - 1 - i];
    const auto& listed = tasks[i];
    const bool running = task.status == MoveTaskStatus::kRunning;
    require(listed.status == task.status, "a task is listed with another status");
    require(listed.task_handle == (running ? std::optional(task.handle) : std::nullopt),
            "running tasks are listed with their handle, and only they");
    require(listed.source_arn == queue->arn() && listed.started == task.started &&
                listed.moved == task.moved && listed.to_move == task.to_move,
            "a task is listed with other numbers");
    require(listed.destination_arn.has_value() == !task.destination.empty() &&
                listed.max_messages_per_second.value_or(0) == task.rate &&
                listed.failure_reason.value_or("") == task.failure,
            "a task is listed with other settings");
  }
}

// Takes up to `quota` messages in order; true if it met one that does not know its source.
bool Model::move_in_order(Queue& queue, Task& task, std::uint64_t quota, bool may_get_lost) {
  Taken taken;
  for (std::uint64_t count = 0;; ++count) {
    if (count == quota && !may_get_lost) return false;
    const Message* message = next(queue, taken);
    if (message == nullptr) return false;
    const std::string destination =
        task.destination.empty() ? name_in(message->source_arn) : task.destination;
    if (destination.empty()) return true;
    if (count == quota) return false;
    taken.group = message->group;
    taken.places.insert(message->place);
    depart(queue, message->place, destination, TransferReason::kRedrive, task.number);
  }
}

void Model::move_fairly(Queue& queue, Task& task, const std::vector<Transfer>& went, bool failed) {
  for (const Transfer& transfer : went) {
    const auto head = std::ranges::find_if(queue.messages, [&](const Message& message) {
      return message.where == Where::kReady && message.group == transfer.content->group();
    });
    require(head != queue.messages.end(), "a message was moved that was not there");
    const std::string destination =
        task.destination.empty() ? name_in(head->source_arn) : task.destination;
    require(!destination.empty(), "a message was moved that does not say where it came from");
    depart(queue, head->place, destination, TransferReason::kRedrive, task.number);
  }
  if (!failed) return;
  const bool has_lost = std::ranges::any_of(queue.messages, [](const Message& message) {
    return message.where == Where::kReady && message.source_arn.empty();
  });
  require(has_lost && task.destination.empty(), "a task failed without reason");
}

void Model::move_from(Queue& queue, Task& task, const std::vector<Transfer>& went, bool failed,
                      bool full) {
  const std::uint64_t room = kInTransitMax - std::min(kInTransitMax, task.in_transit);
  const std::uint64_t left = task.to_move - std::min(task.to_move, task.moved + task.in_transit);
  const std::uint64_t limit = std::min(room, left);
  require(went.size() <= limit, "a task moves more than it should");
  const bool in_order = queue.fifo || one_lane(queue);
  const bool idle = limit > 0 && went.empty() && !failed && !full && has_receivable(queue);
  bool lost = false;
  if (task.rate != 0) {
    // The rate applies from the start on; a message that waited for longer than the rate requires
    // is moved.
    const double most = 2.0 + static_cast<double>((now_ - task.started).count()) *
                                  static_cast<double>(task.rate) / 1000.0;
    require(static_cast<double>(task.went + went.size()) <= most, "a task is too fast");
    require(!idle || (now_ - task.last_went).count() * task.rate <= 1000 + 2 * task.rate,
            "a task is too slow");
  } else {
    const std::uint64_t ready = queue.count(Where::kReady);
    require(!idle, "a task stands still");
    if (!in_order && !failed && !full)
      require(went.size() == std::min(limit, ready), "a task moves less than it could");
  }
  if (in_order) {
    const bool partly = task.rate != 0 || full;
    lost = move_in_order(queue, task, partly ? went.size() : limit, partly && failed);
    require(lost == failed,
            lost ? "a lost message did not fail its task" : "a task failed without reason");
  } else {
    move_fairly(queue, task, went, failed);
  }
  task.in_transit += went.size();
  task.went += went.size();
  if (!went.empty()) task.last_went = now_;
  if (failed) {
    task.status = MoveTaskStatus::kFailed;
    note("a move task met a message without a source");
    task.failure = "CouldNotDetermineMessageSource";
  }
}

void Model::move(const std::vector<Transfer>& left, const TaskView& tasks, bool full) {
  const std::size_t passages = passages_.size();
  for (Queue& queue : queues_) {
    if (queue.tasks.empty() || queue.tasks.back().status != MoveTaskStatus::kRunning) continue;
    Task& task = queue.tasks.back();
    if (now_ >= task.started + 36h) {
      task.status = MoveTaskStatus::kFailed;
      task.failure = "TimeLimitExceeded";
      continue;
    }
    std::vector<Transfer> went;
    std::ranges::copy_if(left, std::back_inserter(went), [&](const Transfer& transfer) {
      return transfer.source_arn == queue.arn();
    });
    const auto seen = tasks.find(queue.name);
    require(seen != tasks.end(), "a task disappeared");
    const std::size_t before = passages_.size();
    move_from(queue, task, went, seen->second.first == MoveTaskStatus::kFailed, full);
    // Tasks take turns, and the engine knows whose turn it was.
    for (std::size_t i = 0; i < went.size() && before + i < passages_.size(); ++i)
      passages_[before + i].number = went[i].number;
    const bool all_went = task.moved >= task.to_move || queue.count(Where::kReady) == 0;
    if (task.status == MoveTaskStatus::kRunning && all_went && task.in_transit == 0)
      note("a move task completed"), task.status = MoveTaskStatus::kCompleted;
  }
  std::ranges::sort(passages_.begin() + static_cast<std::ptrdiff_t>(passages), passages_.end(), {},
                    &Passage::number);
  compare_departures(passages, left);
}

void Model::deliver(TransferNo number, TransferVerdict got) {
  Passage& passing = passage(number);
  Queue* queue = find(passing.destination);
  const bool accepted = passing.arrived || queue != nullptr;
  require(accepted == (got == TransferVerdict::kAccepted),
          accepted ? "a transfer was refused without reason"
                   : "a transfer was accepted by a queue that is not there");
  passing.verdict = accepted ? Passage::Verdict::kAccepted : Passage::Verdict::kRefused;
  if (passing.arrived) note("a transfer was handed over again");
  if (!accepted) note("a transfer was refused");
  if (passing.arrived || !accepted) return;
  passing.arrived = true;
  Message message = passing.message;
  message.where = Where::kReady;
  message.due = now_;
  message.stays = message.came_back = false;
  message.sequence_number.reset();
  if (passing.reason == TransferReason::kDeadLetter) {
    note(queue->fifo ? "a FIFO dead letter arrived" : "a dead letter arrived");
    message.source_arn = passing.source_arn;
    if (queue->fifo) message.deduplication_id = message.id->text();
    message.retained_from = queue->fifo ? now_ : message.sent;
  } else {
    note(queue->fifo ? "a FIFO message was brought back" : "a message was brought back");
    message.id.reset();
    message.sent = message.retained_from = now_;
    message.source_arn.clear();
    message.receive_count = 0;
  }
  arrive(*queue, std::move(message));
}

void Model::settle(TransferNo number) {
  const Passage passing = passage(number);
  require(passing.arrived, "a transfer was settled before it arrived");
  std::erase_if(passages_, [&](const Passage& other) { return other.number == number; });
  Queue* queue = find_number(passing.source);
  if (queue == nullptr) return;
  keep_line(*queue);
  if (Task* task = find_task(*queue, passing.task)) {
    ++task->moved;
    --task->in_transit;
  }
}

void Model::refuse(TransferNo number) {
  Passage passing = passage(number);
  std::erase_if(passages_, [&](const Passage& other) { return other.number == number; });
  Queue* queue = find_number(passing.source);
  if (queue == nullptr) return;
  if (Task* task = find_task(*queue, passing.task)) {
    --task->in_transit;
    if (task->status == MoveTaskStatus::kRunning) {
      task->status = MoveTaskStatus::kFailed;
      note("a move task lost its destination");
      task->failure = "AWS.SimpleQueueService.NonExistentQueue";
    }
  }
  if (passing.message.place < queue->first_kept) return;
  passing.message.came_back = true;
  passing.message.stays = passing.reason == TransferReason::kDeadLetter;
  queue->put(std::move(passing.message));
  keep_line(*queue);
}

void Model::restarted() {
  // The turns of tenants are not in checkpoints.
  for (Queue& queue : queues_) queue.newcomers.clear();
  for (Passage& passing : passages_) passing.verdict = Passage::Verdict::kNone;
}

}  // namespace stanchion::reference
