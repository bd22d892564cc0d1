// The model's messages: send, receive, delete, change visibility.
#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"
#include "tests/model/reference_model.h"

namespace stanchion::reference {

using namespace std::chrono_literals;
using std::chrono::seconds;
using Where = Message::Where;

namespace {

template <class Entries>
std::vector<Expected> wrong_batch(const Entries& entries, const std::string& entry_name) {
  if (entries.empty())
    return {{ErrorCode::kEmptyBatchRequest,
             fmt::format("There should be at least one {} in the request.", entry_name)}};
  if (entries.size() > 10)
    return {{ErrorCode::kTooManyEntriesInBatchRequest,
             fmt::format("Maximum number of entries per request are 10. You have sent {}.",
                         entries.size())}};
  std::vector<Expected> wrong;
  std::set<std::string> seen;
  for (const auto& entry : entries) {
    if (entry.id->find('!') != std::string::npos)
      wrong.push_back({ErrorCode::kInvalidBatchEntryId,
                       "A batch entry id can only contain alphanumeric characters, hyphens and "
                       "underscores. It can be at most 80 letters long."});
    if (!seen.insert(*entry.id).second)
      wrong.push_back(
          {ErrorCode::kBatchEntryIdsNotDistinct, fmt::format("Id {} repeated.", *entry.id)});
  }
  return wrong;
}

// The error of one entry of a batch: nullptr if it succeeded.
const Error* failure_of(const std::vector<BatchFailure>& failed, const std::string& id) {
  const auto found = std::ranges::find(failed, id, &BatchFailure::id);
  return found == failed.end() ? nullptr : &found->error;
}

void compare_entry(const std::string& id, const std::vector<Expected>& reasons, const Error* got) {
  const Reply as_reply = got == nullptr ? Reply(NoResult{}) : Reply(std::unexpected(*got));
  try {
    refused(reasons, as_reply);
  } catch (const Mismatch& mismatch) {
    throw Mismatch(fmt::format("entry {}: {}", id, mismatch.what()));
  }
}

}  // namespace

std::vector<Expected> Model::wrong_message(const Queue& queue,
                                           const OutgoingMessage& message) const {
  std::vector<Expected> wrong;
  if (!message.body) wrong.push_back(missing_parameter("MessageBody"));
  const std::int64_t delay = message.delay_seconds.value_or(0);
  if (delay < 0 || delay > 900)
    wrong.push_back(wrong_value(fmt::to_string(delay), "DelaySeconds",
                                "DelaySeconds must be >= 0 and <= 900."));
  else if (queue.fifo && delay != 0)
    wrong.push_back(
        wrong_value(fmt::to_string(delay), "DelaySeconds",
                    "The request include parameter that is not valid for this queue type."));
  if (message.group_id && message.group_id->empty())
    wrong.push_back(wrong_value("", "MessageGroupId",
                                "MessageGroupId can only include alphanumeric and punctuation "
                                "characters. 1 to 128 in length."));
  if (!queue.fifo) {
    if (message.deduplication_id)
      wrong.push_back({ErrorCode::kInvalidParameterValue,
                       "The request include parameter MessageDeduplicationId which is not valid "
                       "for this queue type"});
    return wrong;
  }
  if (!message.group_id) wrong.push_back(missing_parameter("MessageGroupId"));
  if (!message.deduplication_id && !queue.content_based)
    wrong.push_back({ErrorCode::kInvalidParameterValue,
                     "The queue should either have ContentBasedDeduplication enabled or "
                     "MessageDeduplicationId provided explicitly"});
  return wrong;
}

void Model::enter(Queue& queue, const OutgoingMessage& outgoing, const SentMessage& got) {
  require(got.body_md5 == md5(*outgoing.body), "wrong MD5 of the body");
  require(got.sequence_number.has_value() == queue.fifo, "only FIFO queues number messages");
  Message message;
  message.body = *outgoing.body;
  message.group = outgoing.group_id.value_or("");
  if (queue.fifo) {
    message.deduplication_id =
        outgoing.deduplication_id.value_or(to_hex(as_text(sha256(*outgoing.body))));
    for (const Queue::Original& original : queue.originals) {
      const bool repeated = original.by_group == queue.by_group &&
                            original.deduplication_id == message.deduplication_id &&
                            (!queue.by_group || original.group == message.group);
      if (!repeated) continue;
      note("a repetition was dropped");
      require(got.id == original.id, "a repetition gets the original's id");
      require(got.sequence_number == original.sequence_number,
              "a repetition gets the original's sequence number");
      return;
    }
    require(!queue.last_sequence || *queue.last_sequence < *got.sequence_number,
            "sequence numbers grow");
    queue.last_sequence = got.sequence_number;
    queue.originals.push_back({queue.by_group, message.group, message.deduplication_id, got.id,
                               got.sequence_number, now_ + 5min});
  }
  require(ids_.insert(got.id).second, "the message id was used before");
  message.id = got.id;
  message.sequence_number = got.sequence_number;
  message.sent = message.retained_from = now_;
  message.due =
      now_ + seconds(queue.fifo ? queue.delay : outgoing.delay_seconds.value_or(queue.delay));
  message.where = message.due > now_ ? Where::kDelayed : Where::kReady;
  arrive(queue, std::move(message));
}

void Model::arrive(Queue& queue, Message message) {
  message.place = queue.next_place++;
  message.entered = now_;
  queue.forget_newcomers();
  const bool is_new =
      std::ranges::find(queue.messages, message.group, &Message::group) == queue.messages.end();
  if (!queue.fifo && is_new && !message.group.empty() && message.where == Where::kReady)
    queue.newcomers.push_back({message.group, {}});
  queue.messages.push_back(std::move(message));
  keep_line(queue);
}

void Model::send(const SendMessage& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  const auto wrong =
      queue == nullptr ? std::vector{no_queue()} : wrong_message(*queue, request.message);
  if (!refused(wrong, got)) enter(*queue, request.message, value_of<SentMessage>(got));
}

void Model::send(const SendMessageBatch& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  std::vector<Expected> wrong = queue == nullptr
                                    ? std::vector{no_queue()}
                                    : wrong_batch(request.entries, "SendMessageBatchRequestEntry");
  // On a FIFO queue one bad entry fails the whole batch.
  if (wrong.empty() && queue->fifo)
    for (const auto& entry : request.entries)
      for (Expected& expected : wrong_message(*queue, entry.message)) {
        // In a batch SQS reports a missing group as a wrong one.
        if (expected.message == missing_parameter("MessageGroupId").message)
          expected.code = ErrorCode::kInvalidParameterValue;
        wrong.push_back(std::move(expected));
      }
  if (refused(wrong, got)) return;
  const auto& result = value_of<SendMessageBatchResult>(got);
  require(result.successful.size() + result.failed.size() == request.entries.size(),
          "every entry has one answer");
  for (const auto& entry : request.entries) {
    const auto reasons = wrong_message(*queue, entry.message);
    compare_entry(*entry.id, reasons, failure_of(result.failed, *entry.id));
    if (!reasons.empty()) continue;
    const auto sent =
        std::ranges::find(result.successful, *entry.id, &SendMessageBatchResult::Success::id);
    require(sent != result.successful.end(), "an entry is missing");
    enter(*queue, entry.message, sent->message);
  }
}

// Whether an earlier message of the same group is in flight or under way to another queue. Messages
// that were taken together do not block each other.
bool Model::comes_after_one_away(const Queue& queue, const Message& message,
                                 const std::set<std::uint64_t>& except) const {
  const auto is_in_the_way = [&](const Message& other) {
    return other.group == message.group && other.place < message.place &&
           !except.contains(other.place);
  };
  for (const Message& other : queue.messages)
    if (other.where == Where::kInFlight && is_in_the_way(other)) return true;
  for (const Passage& passage : passages_)
    if (passage.source == queue.number && passage.message.place >= queue.first_kept &&
        is_in_the_way(passage.message))
      return true;
  return false;
}

// The message that a receive takes next, where that is certain: on FIFO queues the next one of the
// group that it took from last, else the first message of the first group in the line that is not
// delayed; on other queues the oldest.
const Message* Model::next(const Queue& queue, const Taken& taken) const {
  if (!queue.fifo) {
    for (const Message& message : queue.messages)
      if (message.where == Where::kReady) return &message;
    return nullptr;
  }
  if (!taken.group.empty()) {
    const Message* more = queue.first_waiting(taken.group);
    if (more != nullptr && more->where == Where::kReady &&
        !comes_after_one_away(queue, *more, taken.places))
      return more;
  }
  for (const std::string& group : queue.line) {
    const Message* first = queue.first_waiting(group);
    if (first->where == Where::kReady) return first;
  }
  return nullptr;
}

// To be called whenever one message of a FIFO queue was added, removed or became visible. A group
// leaves the line if none of its messages wait, or if those that wait must wait for a message in
// flight. A group that is not in the line joins its end when its first message may be received; a
// delayed first message does not make a group leave.
void Model::keep_line(Queue& queue) const {
  if (!queue.fifo) return;
  std::erase_if(queue.line, [&](const std::string& group) {
    const Message* first = queue.first_waiting(group);
    return first == nullptr || comes_after_one_away(queue, *first, {});
  });
  for (const Message& message : queue.messages) {
    if (message.where != Where::kReady || queue.first_waiting(message.group) != &message) continue;
    if (std::ranges::find(queue.line, message.group) != queue.line.end()) continue;
    if (comes_after_one_away(queue, message, {})) continue;
    if (message.receive_count > 0) note("a group went to the back of the line");
    queue.line.push_back(message.group);
  }
}

bool Model::has_receivable(const Queue& queue) const {
  return next(queue, {}) != nullptr;
}

// Whether all receivable messages are of one tenant, so that there is no choice.
bool Model::one_lane(const Queue& queue) {
  const std::string* group = nullptr;
  for (const Message& message : queue.messages) {
    if (message.where != Where::kReady) continue;
    if (group != nullptr && *group != message.group) return false;
    group = &message.group;
  }
  return true;
}

void Model::depart(Queue& queue, std::uint64_t place, const std::string& destination,
                   TransferReason reason, int task) {
  Passage& passage = passages_.emplace_back();
  passage.number = next_transfer_;
  next_transfer_ = next_transfer_.next();
  passage.message = queue.take(place);
  passage.source = queue.number;
  passage.source_arn = queue.arn();
  passage.destination = destination;
  passage.reason = reason;
  passage.task = task;
  keep_line(queue);
}

void Model::take_one(Queue& queue, Message& message, Instant due) {
  note("a message was received");
  if (message.receive_count > 0) note("a message was received again");
  if (queue.is_dead_letter(message)) note("a dead letter was handed out once more");
  if (message.stays) note("a message stayed because its dead-letter queue is gone");
  message.where = Where::kInFlight;
  if (message.receive_count == 0) message.first_received = now_;
  ++message.receive_count;
  message.received = now_;
  message.due = due;
  message.stays = false;
  keep_line(queue);
}

// While a new tenant waits, no other tenant is served more than twice.
void Model::check_fairness(Queue& queue, const std::string& served) {
  const std::size_t newcomers = std::erase_if(
      queue.newcomers, [&](const auto& newcomer) { return newcomer.group == served; });
  if (newcomers > 0) note("a newcomer was served");
  queue.forget_newcomers();
  for (Queue::Newcomer& newcomer : queue.newcomers)
    require(++newcomer.served[served] <= 2,
            fmt::format("tenant '{}' is served again and again while newcomer '{}' waits", served,
                        newcomer.group));
}

std::vector<std::uint64_t> Model::take_in_order(Queue& queue, std::size_t most, Instant due) {
  std::vector<std::uint64_t> out;
  Taken taken;
  std::size_t departed = 0;  // By one decision; one that found nothing else is followed by another.
  while (out.size() < most) {
    const Message* message = next(queue, taken);
    if (message == nullptr) break;
    const std::uint64_t place = message->place;
    if (leaves(queue, *message)) {
      if (departed == decision_messages_ && !out.empty()) break;
      departed = departed == decision_messages_ ? 1 : departed + 1;
      depart(queue, place, queue.redrive->target, TransferReason::kDeadLetter, 0);
      continue;
    }
    const bool passes_by = std::ranges::any_of(queue.messages, [&](const Message& other) {
      return queue.fifo && other.where == Where::kInFlight && other.group == message->group &&
             other.place > place;
    });
    if (passes_by) note("a message was received though a later one was in flight");
    taken.group = message->group;
    taken.places.insert(place);
    if (!queue.fifo) check_fairness(queue, message->group);
    take_one(queue, *queue.at(place), due);
    out.push_back(place);
  }
  return out;
}

// A fair queue may choose among its tenants, but takes the messages of each in order, skips none
// that is a dead letter, and returns as many as it can.
std::vector<std::uint64_t> Model::take_fairly(Queue& queue, std::size_t most, Instant due,
                                              const std::vector<ReceivedMessage>& got,
                                              const std::vector<Transfer>& left) {
  note("a fair queue chose");
  std::vector<std::uint64_t> taken;
  const auto head_of = [&](std::string_view group) -> Message& {
    for (Message& message : queue.messages)
      if (message.group == group && message.where == Where::kReady) return message;
    throw Mismatch(fmt::format("tenant '{}' has nothing to give", group));
  };
  std::size_t departed = 0;
  std::vector<bool> done(left.size());
  const auto depart_heads = [&](std::string_view group) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (done[i] || left[i].content->group() != group) continue;
      const Message& head = head_of(group);
      if (!leaves(queue, head)) return;
      done[i] = true;
      ++departed;
      depart(queue, head.place, queue.redrive->target, TransferReason::kDeadLetter, 0);
      passages_.back().number = left[i].number;
    }
  };
  for (const ReceivedMessage& message : got) {
    depart_heads(message.content->group());
    Message& head = head_of(message.content->group());
    require(!leaves(queue, head), "a message was delivered once too often");
    check_fairness(queue, head.group);
    take_one(queue, head, due);
    taken.push_back(head.place);
  }
  for (const Transfer& transfer : left) depart_heads(transfer.content->group());
  require(departed == left.size(), "a message left that was no dead letter");
  require(taken.size() <= most, "more messages than were asked for");
  const bool enough = !taken.empty() && left.size() >= decision_messages_ &&
                      std::ranges::any_of(queue.messages, [&](const Message& message) {
                        return message.where == Where::kReady && leaves(queue, message);
                      });
  require(taken.size() == most || queue.count(Where::kReady) == 0 || enough,
          "fewer messages than could have been returned");
  return taken;
}

void Model::check_received(Queue& queue, Message& message, const ReceivedMessage& got) {
  const Content& content = *got.content;
  const auto same = [&](const char* what, const auto& is, const auto& wanted) {
    require(is == wanted, fmt::format("{} of the received {} is '{}' instead of '{}'", what,
                                      message.body, is, wanted));
  };
  same("body", content.body(), message.body);
  if (!message.id) {
    require(ids_.insert(content.id()).second, "a redriven message gets a new id");
    message.id = content.id();
  }
  same("id", content.id().text(), message.id->text());
  same("group", content.group(), message.group);
  same("deduplication id", content.deduplication_id(), message.deduplication_id);
  same("source ARN", content.source_arn(), message.source_arn);
  same("sent timestamp", to_millis(content.sent()), to_millis(message.sent));
  same("receive count", got.receive_count, message.receive_count);
  same("first receive", to_millis(got.first_received), to_millis(message.first_received));
  require(got.sequence_number.has_value() == queue.fifo, "only FIFO queues number messages");
  if (!message.sequence_number) message.sequence_number = got.sequence_number;
  if (queue.fifo)
    same("sequence number", got.sequence_number->value(), message.sequence_number->value());
}

void Model::compare_departures(std::size_t from, const std::vector<Transfer>& left) const {
  require(passages_.size() - from == left.size(),
          fmt::format("{} messages left instead of {}", left.size(), passages_.size() - from));
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Passage& passage = passages_[from + i];
    require(left[i].number == passage.number, "transfers are numbered in order");
    require(
        left[i].content->body() == passage.message.body &&
            (!passage.message.id || left[i].content->id() == *passage.message.id),
        fmt::format("'{}' left instead of '{}'", left[i].content->body(), passage.message.body));
    require(left[i].destination.name == passage.destination, "a message goes astray");
    require(left[i].reason == passage.reason, "a message left for another reason");
  }
}

bool Model::repeat(Queue& queue, const ReceiveMessage& request, Duration visibility,
                   const Reply& got) {
  const auto attempt = std::ranges::find(queue.attempts, *request.attempt_id, &Queue::Attempt::id);
  if (attempt == queue.attempts.end()) return false;
  for (const auto& item : attempt->items) {
    const Message* message = queue.at(item.place);
    if (message == nullptr || message->where != Where::kInFlight ||
        message->receive_count != item.receive || message->due != item.due)
      return false;
  }
  note("a receive attempt was repeated");
  const auto& result = value_of<ReceiveMessageResult>(got);
  require(result.messages.size() == attempt->items.size(),
          "a repeated attempt returns the same messages");
  for (std::size_t i = 0; i < attempt->items.size(); ++i) {
    auto& item = attempt->items[i];
    Message& message = *queue.at(item.place);
    check_received(queue, message, result.messages[i]);
    require(result.messages[i].receipt_handle == item.handle,
            "a repeated attempt returns the same receipts");
    message.due = item.due = now_ + visibility;
    if (visibility == Duration::zero()) message.where = Where::kReady;
    keep_line(queue);
  }
  return true;
}

void Model::receive(const ReceiveMessage& request, const Reply& got,
                    const std::vector<Transfer>& left) {
  Queue* queue = find(request.queue.name);
  std::vector<Expected> wrong;
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  const std::int64_t most = request.max_number_of_messages.value_or(1);
  const std::int64_t visibility = request.visibility_timeout.value_or(queue->visibility);
  if (most < 1 || most > 10)
    wrong.push_back(wrong_value(fmt::to_string(most), "MaxNumberOfMessages",
                                "Must be between 1 and 10, if provided."));
  if (visibility < 0 || visibility > 43'200)
    wrong.push_back(wrong_value(fmt::to_string(visibility), "VisibilityTimeout",
                                "Must be >= 0 and <= 43200, if provided."));
  if (request.attempt_id && !queue->fifo)
    wrong.push_back({ErrorCode::kInvalidParameterValue, std::nullopt});
  if (refused(wrong, got)) return;
  if (request.attempt_id && repeat(*queue, request, seconds(visibility), got)) return;

  const auto& messages = value_of<ReceiveMessageResult>(got).messages;
  const std::size_t passages = passages_.size();
  const Instant due = now_ + seconds(visibility);
  const auto taken = queue->fifo || one_lane(*queue)
                         ? take_in_order(*queue, static_cast<std::size_t>(most), due)
                         : take_fairly(*queue, static_cast<std::size_t>(most), due, messages, left);
  // The dead letters of a fair queue were learned tenant by tenant.
  std::sort(passages_.begin() + static_cast<std::ptrdiff_t>(passages), passages_.end(),
            [](const Passage& a, const Passage& b) { return a.number < b.number; });
  compare_departures(passages, left);
  require(messages.size() == taken.size(),
          fmt::format("{} messages instead of {}", messages.size(), taken.size()));
  Queue::Attempt attempt{request.attempt_id.value_or(""), {}, now_ + 5min};
  for (std::size_t i = 0; i < taken.size(); ++i) {
    Message& message = *queue->at(taken[i]);
    check_received(*queue, message, messages[i]);
    const std::string& handle = messages[i].receipt_handle;
    require(handles_.insert(handle).second, "every receive has its own receipt");
    receipts_.push_back({handle, queue->name, queue->number, message.place, message.receive_count});
    attempt.items.push_back({message.place, message.receive_count, due, handle});
  }
  if (!request.attempt_id || taken.empty()) return;
  std::erase_if(queue->attempts, [&](const auto& old) { return old.id == attempt.id; });
  queue->attempts.push_back(std::move(attempt));
}

const Receipt* Model::find_receipt(const Queue& queue, const std::string& handle) const {
  for (const Receipt& receipt : receipts_)
    if (receipt.handle == handle && receipt.queue == queue.number) return &receipt;
  return nullptr;
}

std::optional<Expected> Model::delete_one(Queue& queue, const std::optional<std::string>& handle) {
  if (!handle) return missing_parameter("ReceiptHandle");
  const Receipt* receipt = find_receipt(queue, *handle);
  if (receipt == nullptr)
    return Expected{
        ErrorCode::kReceiptHandleIsInvalid,
        fmt::format("The input receipt handle \"{}\" is not a valid receipt handle.", *handle)};
  const Message* message = queue.at(receipt->place);
  if (message == nullptr) return std::nullopt;
  const bool current =
      message->where == Where::kInFlight && message->receive_count == receipt->receive;
  note(current ? "a message was deleted" : "a message was deleted with a stale receipt");
  if (queue.fifo && !current)
    return wrong_value(*handle, "ReceiptHandle", "The receipt handle has expired.");
  queue.take(receipt->place);
  keep_line(queue);
  return std::nullopt;
}

void Model::remove(const DeleteMessage& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  const auto wrong = queue == nullptr ? no_queue() : delete_one(*queue, request.receipt_handle);
  refused(wrong ? std::vector{*wrong} : std::vector<Expected>(), got);
}

void Model::remove(const DeleteMessageBatch& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  const auto wrong = queue == nullptr
                         ? std::vector{no_queue()}
                         : wrong_batch(request.entries, "DeleteMessageBatchRequestEntry");
  if (refused(wrong, got)) return;
  const auto& result = value_of<BatchResult>(got);
  require(result.successful.size() + result.failed.size() == request.entries.size(),
          "every entry has one answer");
  for (const auto& entry : request.entries) {
    auto reason = delete_one(*queue, entry.receipt_handle);
    // In a batch SQS has another text for the expired receipt of a FIFO queue.
    if (reason && reason->code == ErrorCode::kInvalidParameterValue)
      reason = Expected{ErrorCode::kReceiptHandleIsInvalid, "The receipt handle has expired"};
    compare_entry(*entry.id, reason ? std::vector{*reason} : std::vector<Expected>(),
                  failure_of(result.failed, *entry.id));
  }
}

std::optional<Expected> Model::change_one(Queue& queue, const std::optional<std::string>& handle,
                                          std::int64_t timeout) {
  if (!handle) return missing_parameter("ReceiptHandle");
  const Receipt* receipt = find_receipt(queue, *handle);
  if (receipt == nullptr)
    return Expected{
        ErrorCode::kReceiptHandleIsInvalid,
        fmt::format("The input receipt handle \"{}\" is not a valid receipt handle.", *handle)};
  Message* message = queue.at(receipt->place);
  const bool in_flight = message != nullptr && message->where == Where::kInFlight;
  const bool current = in_flight && message->receive_count == receipt->receive;
  // On a standard queue it does not matter from which receive a receipt is.
  if (!queue.fifo && message != nullptr && !in_flight) return std::nullopt;
  if (queue.fifo ? !current : !in_flight)
    return wrong_value(*handle, "ReceiptHandle",
                       "Message does not exist or is not available for visibility timeout change.");
  if (now_ + seconds(timeout) > message->received + 12h)
    return wrong_value(fmt::to_string(timeout), "VisibilityTimeout",
                       "Total VisibilityTimeout for the message is beyond the limit [43200 "
                       "seconds]");
  note(timeout == 0 ? "a message was given back" : "a visibility timeout was changed");
  if (!current) note("a visibility timeout was changed with an old receipt");
  message->due = now_ + seconds(timeout);
  if (timeout == 0) message->where = Where::kReady;
  keep_line(queue);
  return std::nullopt;
}

void Model::change(const ChangeMessageVisibility& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  std::vector<Expected> wrong;
  const std::int64_t timeout = request.visibility_timeout.value_or(0);
  if (queue == nullptr) {
    wrong.push_back(no_queue());
  } else if (!request.visibility_timeout || !request.receipt_handle) {
    if (!request.visibility_timeout) wrong.push_back(missing_parameter("VisibilityTimeout"));
    if (!request.receipt_handle) wrong.push_back(missing_parameter("ReceiptHandle"));
  } else if (timeout < 0 || timeout > 43'200) {
    wrong.push_back({ErrorCode::kInvalidParameterValue, std::nullopt});
  } else if (const auto reason = change_one(*queue, request.receipt_handle, timeout)) {
    wrong.push_back(*reason);
  }
  refused(wrong, got);
}

void Model::change(const ChangeMessageVisibilityBatch& request, const Reply& got) {
  Queue* queue = find(request.queue.name);
  const auto wrong = queue == nullptr
                         ? std::vector{no_queue()}
                         : wrong_batch(request.entries, "ChangeMessageVisibilityBatchRequestEntry");
  if (refused(wrong, got)) return;
  const auto& result = value_of<BatchResult>(got);
  require(result.successful.size() + result.failed.size() == request.entries.size(),
          "every entry has one answer");
  for (std::size_t i = 0; i < request.entries.size(); ++i) {
    const auto& entry = request.entries[i];
    std::vector<Expected> reasons;
    const std::int64_t timeout = entry.visibility_timeout.value_or(0);
    if (!entry.visibility_timeout)
      reasons.push_back(missing_parameter(
          fmt::format("ChangeMessageVisibilityBatchRequestEntry.{}.VisibilityTimeout", i + 1)));
    if (timeout < 0 || timeout > 43'200)
      reasons.push_back(wrong_value(fmt::to_string(timeout), "VisibilityTimeout",
                                    "VisibilityTimeout must be an integer between 0 and 43200."));
    if (reasons.empty())
      if (const auto reason = change_one(*queue, entry.receipt_handle, timeout))
        reasons.push_back(*reason);
    compare_entry(*entry.id, reasons, failure_of(result.failed, *entry.id));
  }
}

}  // namespace stanchion::reference
