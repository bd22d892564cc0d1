// The model's queues: their life and settings, and the passing of time.
#include <fmt/format.h>

#include <algorithm>

#include "tests/model/reference_model.h"

namespace stanchion::reference {

using namespace std::chrono_literals;
using std::chrono::seconds;

Coverage& coverage() {
  static Coverage notes;
  return notes;
}

std::string show(const Error& error) {
  return fmt::format("{} \"{}\"", info_of(error.code).query_code, error.message);
}

bool matches(const Expected& expected, const Error& got) {
  return expected.code == got.code && expected.message.value_or(got.message) == got.message;
}

bool refused(const std::vector<Expected>& reasons, const Reply& got) {
  if (reasons.empty()) {
    require(got.has_value(), got ? "" : "refused without reason: " + show(got.error()));
    return false;
  }
  const Expected& first = reasons.front();
  const std::string wanted =
      show({first.code, first.message.value_or("(some message)")}) +
      (reasons.size() > 1 ? fmt::format(" or {} others", reasons.size() - 1) : "");
  require(!got, "not refused, but should have been with " + wanted);
  const bool known = std::ranges::any_of(
      reasons, [&](const Expected& expected) { return matches(expected, got.error()); });
  require(known, fmt::format("refused with {} instead of {}", show(got.error()), wanted));
  return true;
}

Expected missing_parameter(const std::string& name) {
  return {ErrorCode::kMissingParameter,
          fmt::format("The request must contain the parameter {}.", name)};
}

Expected wrong_value(const std::string& value, const std::string& name, const std::string& reason) {
  return {ErrorCode::kInvalidParameterValue,
          fmt::format("Value {} for parameter {} is invalid. Reason: {}", value, name, reason)};
}

std::size_t Queue::count(Message::Where where) const {
  return static_cast<std::size_t>(std::ranges::count(messages, where, &Message::where));
}

Message* Queue::at(std::uint64_t place) {
  const auto found = std::ranges::find(messages, place, &Message::place);
  return found == messages.end() ? nullptr : &*found;
}

const Message* Queue::first_waiting(const std::string& group) const {
  const auto found = std::ranges::find_if(messages, [&](const Message& message) {
    return message.group == group && message.where != Message::Where::kInFlight;
  });
  return found == messages.end() ? nullptr : &*found;
}

Message Queue::take(std::uint64_t place) {
  const auto found = std::ranges::find(messages, place, &Message::place);
  Message message = *found;
  messages.erase(found);
  return message;
}

void Queue::put(Message message) {
  const auto after = std::ranges::find_if(
      messages, [&](const Message& other) { return other.place > message.place; });
  messages.insert(after, std::move(message));
}

bool Queue::is_dead_letter(const Message& message) const {
  return redrive && !message.stays && message.receive_count >= redrive->max_receive_count;
}

void Queue::forget_newcomers() {
  std::erase_if(newcomers, [&](const Newcomer& newcomer) {
    return std::ranges::none_of(messages, [&](const Message& message) {
      return message.group == newcomer.group && message.where == Message::Where::kReady &&
             !is_dead_letter(message);
    });
  });
}

Queue* Model::find(const std::string& name) {
  const auto found = std::ranges::find(queues_, name, &Queue::name);
  return found == queues_.end() ? nullptr : &*found;
}

Queue* Model::find_number(int number) {
  const auto found = std::ranges::find(queues_, number, &Queue::number);
  return found == queues_.end() ? nullptr : &*found;
}

// The earliest event that is due by now: a message expires, or is visible again. If several are due
// at the same time, expiry comes first, then the older message.
bool Model::let_next_thing_happen(Queue& queue) const {
  Instant at = kNever;
  std::optional<std::uint64_t> place;
  bool expires = false;
  for (const Message& message : queue.messages) {
    const Instant end = message.retained_from + seconds(queue.retention);
    if (end < at || (end == at && !expires)) {
      at = end;
      place = message.place;
      expires = true;
    }
    if (message.where != Message::Where::kReady && message.due < at) {
      at = message.due;
      place = message.place;
      expires = false;
    }
  }
  if (at > now_) return false;
  if (expires) {
    note("a message expired");
    queue.take(*place);
  } else {
    queue.at(*place)->where = Message::Where::kReady;
  }
  keep_line(queue);
  return true;
}

void Model::advance(Instant now) {
  now_ = now;
  for (Queue& queue : queues_) {
    while (let_next_thing_happen(queue)) continue;
    std::erase_if(queue.originals, [&](const auto& original) { return original.expires <= now; });
    std::erase_if(queue.attempts, [&](const auto& attempt) { return attempt.expires <= now; });
    queue.forget_newcomers();
  }
  std::erase_if(deleted_, [&](const auto& entry) { return entry.second + 60s <= now; });
}

std::vector<Expected> Model::wrong_settings(bool fifo, const std::vector<Setting>& settings) const {
  std::vector<Expected> wrong;
  for (const Setting& setting : settings) {
    const auto outside = [&](std::int64_t least, std::int64_t most) {
      if (setting.value < least || setting.value > most)
        wrong.push_back({ErrorCode::kInvalidAttributeValue,
                         fmt::format("Invalid value for the parameter {}.", setting.name())});
    };
    switch (setting.kind) {
      case Setting::Kind::kContentBasedDeduplication:
        if (!fifo)
          wrong.push_back(
              {ErrorCode::kInvalidAttributeName, "Unknown Attribute ContentBasedDeduplication."});
        break;
      case Setting::Kind::kDeduplicationScope:
        if (!fifo)
          wrong.push_back(
              {ErrorCode::kInvalidAttributeName,
               "You can specify the DeduplicationScope only when FifoQueue is set to true."});
        break;
      case Setting::Kind::kDelaySeconds:
        outside(0, 900);
        break;
      case Setting::Kind::kMessageRetentionPeriod:
        outside(60, 1'209'600);
        break;
      case Setting::Kind::kRedrivePolicy:
        if (setting.value < 0 || setting.value > 1000)
          wrong.push_back(wrong_value(
              setting.text(), "RedrivePolicy",
              fmt::format("Invalid value for maxReceiveCount: {}, valid values are from 1 to 1000 "
                          "both inclusive.",
                          setting.value)));
        break;
      case Setting::Kind::kVisibilityTimeout:
        outside(0, 43'200);
        break;
    }
  }
  return wrong;
}

std::vector<Expected> Model::wrong_target(bool fifo, const std::vector<Setting>& settings) {
  std::vector<Expected> wrong;
  for (const Setting& setting : settings) {
    if (setting.kind != Setting::Kind::kRedrivePolicy || setting.value == 0) continue;
    const Queue* target = find(ref_of(setting.target).name);
    if (target == nullptr)
      wrong.push_back(
          wrong_value(setting.text(), "RedrivePolicy", "Dead letter target does not exist."));
    else if (target->fifo != fifo)
      wrong.push_back(wrong_value(setting.text(), "RedrivePolicy",
                                  "Dead-letter queue must be same type of queue as the source.."));
  }
  return wrong;
}

void Model::apply(Queue& queue, const Setting& setting) {
  switch (setting.kind) {
    case Setting::Kind::kContentBasedDeduplication:
      queue.content_based = setting.value != 0;
      break;
    case Setting::Kind::kDeduplicationScope:
      queue.by_group = setting.value != 0;
      break;
    case Setting::Kind::kDelaySeconds:
      queue.delay = setting.value;
      break;
    case Setting::Kind::kMessageRetentionPeriod:
      queue.retention = setting.value;
      break;
    case Setting::Kind::kRedrivePolicy:
      queue.redrive.reset();
      if (setting.value != 0)
        queue.redrive = Queue::Redrive{ref_of(setting.target).name, setting.value};
      break;
    case Setting::Kind::kVisibilityTimeout:
      queue.visibility = setting.value;
      break;
  }
}

void Model::create(const std::string& name, const std::vector<Setting>& settings,
                   const Reply& got) {
  const bool fifo = is_fifo_name(name);
  std::vector<Expected> wrong = wrong_settings(fifo, settings);
  if (const Queue* existing = find(name)) {
    for (const Setting& setting : settings) {
      Queue changed = *existing;
      apply(changed, setting);
      const bool same =
          changed.visibility == existing->visibility && changed.delay == existing->delay &&
          changed.retention == existing->retention && changed.redrive == existing->redrive &&
          changed.content_based == existing->content_based &&
          changed.by_group == existing->by_group;
      if (!same)
        wrong.push_back({ErrorCode::kQueueNameExists,
                         fmt::format("A queue already exists with the same name and a different "
                                     "value for attribute {}",
                                     setting.name())});
    }
    if (!refused(wrong, got))
      require(value_of<QueueUrlResult>(got).queue.name == name, "another queue's URL");
    return;
  }
  if (strict_ && deleted_.contains(name))
    wrong.push_back({ErrorCode::kQueueDeletedRecently,
                     "You must wait 60 seconds after deleting a queue before you can create "
                     "another with the same name."});
  for (Expected& expected : wrong_target(fifo, settings)) wrong.push_back(std::move(expected));
  if (refused(wrong, got)) return;
  require(value_of<QueueUrlResult>(got).queue.name == name, "another queue's URL");
  Queue& queue = queues_.emplace_back();
  queue.number = next_queue_++;
  queue.name = name;
  queue.fifo = fifo;
  queue.created = queue.modified = now_;
  for (const Setting& setting : settings) apply(queue, setting);
}

void Model::remove(const std::string& name, const Reply& got) {
  const Queue* queue = find(name);
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  value_of<NoResult>(got);
  deleted_[name] = now_;
  std::erase_if(queues_, [&](const Queue& other) { return other.name == name; });
}

void Model::purge(const std::string& name, const Reply& got) {
  Queue* queue = find(name);
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  if (strict_ && queue->purged && now_ < *queue->purged + 60s) {
    refused(
        {{ErrorCode::kPurgeQueueInProgress,
          fmt::format("Only one PurgeQueue operation on {} is allowed every 60 seconds.", name)}},
        got);
    return;
  }
  value_of<NoResult>(got);
  queue->messages.clear();
  queue->originals.clear();
  queue->attempts.clear();
  queue->newcomers.clear();
  queue->line.clear();
  queue->purged = now_;
  queue->first_kept = queue->next_place;
}

void Model::set(const std::string& name, const std::vector<Setting>& settings, const Reply& got) {
  Queue* queue = find(name);
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  std::vector<Expected> wrong = wrong_settings(queue->fifo, settings);
  for (Expected& expected : wrong_target(queue->fifo, settings))
    wrong.push_back(std::move(expected));
  if (settings.empty()) wrong.push_back(missing_parameter("Attribute.Name"));
  if (refused(wrong, got)) return;
  value_of<NoResult>(got);
  const std::int64_t delay = queue->delay;
  for (const Setting& setting : settings) apply(*queue, setting);
  queue->modified = now_;
  if (!queue->fifo || queue->delay == delay) return;
  // On FIFO queues a new delay applies to waiting messages that were never received.
  for (Message& message : queue->messages) {
    if (message.receive_count > 0 || message.came_back) continue;
    note("a new delay counts for waiting messages");
    message.due = message.entered + seconds(queue->delay);
    message.where = message.due > now_ ? Message::Where::kDelayed : Message::Where::kReady;
  }
  keep_line(*queue);
}

void Model::get(const std::string& name, const Reply& got) {
  const Queue* queue = find(name);
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  using Where = Message::Where;
  StringMap wanted{
      {"QueueArn", queue->arn()},
      {"ApproximateNumberOfMessages", fmt::to_string(queue->count(Where::kReady))},
      {"ApproximateNumberOfMessagesNotVisible", fmt::to_string(queue->count(Where::kInFlight))},
      {"ApproximateNumberOfMessagesDelayed", fmt::to_string(queue->count(Where::kDelayed))},
      {"CreatedTimestamp", fmt::to_string(to_seconds(queue->created))},
      {"LastModifiedTimestamp", fmt::to_string(to_seconds(queue->modified))},
      {"VisibilityTimeout", fmt::to_string(queue->visibility)},
      {"DelaySeconds", fmt::to_string(queue->delay)},
      {"MessageRetentionPeriod", fmt::to_string(queue->retention)},
      {"MaximumMessageSize", "1048576"},
      {"ReceiveMessageWaitTimeSeconds", "0"},
      {"SqsManagedSseEnabled", "true"}};
  if (queue->redrive)
    wanted["RedrivePolicy"] =
        fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})",
                    ref_of(queue->redrive->target).arn(), queue->redrive->max_receive_count);
  if (queue->fifo) {
    wanted["FifoQueue"] = "true";
    wanted["ContentBasedDeduplication"] = queue->content_based ? "true" : "false";
    wanted["DeduplicationScope"] = queue->by_group ? "messageGroup" : "queue";
    wanted["FifoThroughputLimit"] = "perQueue";
  }
  const StringMap& attributes = value_of<QueueAttributesResult>(got).attributes;
  for (const auto& [key, value] : wanted) {
    const auto found = attributes.find(key);
    require(found != attributes.end() && found->second == value,
            fmt::format("{} is {} instead of {}", key,
                        found == attributes.end() ? "absent" : found->second, value));
  }
  require(attributes.size() == wanted.size(), "there are attributes that nobody set");
}

}  // namespace stanchion::reference
