// Actions on messages: send, receive, delete, change visibility, and their batches.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/remember_attempt.h"
#include "model/limits.h"
#include "model/receipt.h"

namespace stanchion::engine {
namespace {

using std::chrono::seconds;

std::optional<Md5> md5_unless_empty(const std::vector<AttributeView>& attributes) {
  if (attributes.empty()) return std::nullopt;
  return md5_of_attributes(attributes);
}

template <class Entries>
std::vector<const std::optional<std::string>*> ids_of(const Entries& entries) {
  std::vector<const std::optional<std::string>*> ids;
  for (const auto& entry : entries) ids.push_back(&entry.id);
  return ids;
}

// An optional number with its bounds.
Answer<std::int64_t> bounded(const std::optional<std::int64_t>& given, std::int64_t otherwise,
                             std::int64_t least, std::int64_t most, std::string_view name,
                             std::string_view reason) {
  if (!given) return otherwise;
  if (*given < least || *given > most)
    return std::unexpected(invalid_value(fmt::to_string(*given), name, reason));
  return *given;
}

Error receipt_is_invalid(std::string_view handle) {
  return {ErrorCode::kReceiptHandleIsInvalid,
          fmt::format("The input receipt handle \"{}\" is not a valid receipt handle.", handle)};
}

// One invalid entry fails its batch. In that case AWS reports a missing group as a wrong value.
std::unexpected<Error> refuse_batch(Error error) {
  if (error == missing("MessageGroupId")) error.code = ErrorCode::kInvalidParameterValue;
  return std::unexpected(std::move(error));
}

// Checks the message, and prefetches what sending it will need.
Answer<CheckedMessage> check(const OutgoingMessage& message, const Queue& queue) {
  auto checked = check_message(message, queue.attributes());
  if (checked && checked->deduplication_key) queue.expect_original(*checked->deduplication_key);
  return checked;
}

}  // namespace

SentMessage Engine::send(Queue& queue, const CheckedMessage& message, const Md5& body_md5,
                         const std::string& sender, Decision& decision) {
  SentMessage sent;
  sent.body_md5 = body_md5;
  sent.attributes_md5 = md5_unless_empty(message.attributes);
  sent.system_attributes_md5 = md5_unless_empty(message.system_attributes);
  MessageSent fact;
  if (queue.fifo()) {
    fact.deduplication = message.deduplication_key;
    // A repetition within the window: the original is reported again, and nothing is written.
    if (const auto* original = queue.find_original(*fact.deduplication)) {
      ++queue.activity.deduplicated;
      sent.id = original->id;
      sent.sequence_number = original->seq;
      return sent;
    }
  }
  fact.queue = queue.id;
  fact.seq = queue.next_seq();
  fact.due = decision.now + seconds(message.delay_seconds);
  fact.content =
      Content::make({.id = decision.random.uuid<MessageId>(),
                     .sent = decision.now,
                     .body = message.body,
                     .group = message.group,
                     .deduplication_id = message.deduplication_id,
                     .sender = std::string_view(sender).substr(0, limits::kSenderIdSizeMax),
                     .trace_header = message.trace_header,
                     .source_arn = {},
                     .last_received = {},
                     .attribute_section = encode_attributes(message.attributes),
                     .body_md5 = &body_md5});
  sent.id = fact.content->id();
  if (queue.fifo()) sent.sequence_number = fact.seq;
  record(fact, decision);
  return sent;
}

Reply Engine::on(const SendMessage& request, Queue& queue, const Neighbours&, Decision& decision) {
  const auto checked = check(request.message, queue);
  if (!checked) return std::unexpected(checked.error());
  queue.habits.single_sends.add(1, decision.now);
  return send(queue, *checked, md5(checked->body), request.sender_id, decision);
}

Reply Engine::on(const SendMessageBatch& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  const auto ok = check_batch_ids(ids_of(request.entries), "SendMessageBatchRequestEntry");
  if (!ok) return std::unexpected(ok.error());
  std::size_t total = 0;
  for (const auto& entry : request.entries) total += size_of(entry.message);
  if (total > static_cast<std::size_t>(limits::kMessageSizeMax))
    return refuse(ErrorCode::kBatchRequestTooLong,
                  fmt::format("Batch requests cannot be longer than {} bytes. You have sent {} "
                              "bytes.",
                              limits::kMessageSizeMax, total));
  std::vector<Answer<CheckedMessage>> checked;
  checked.reserve(request.entries.size());
  for (const auto& entry : request.entries) {
    checked.push_back(check(entry.message, queue));
    if (queue.fifo() && !checked.back()) return refuse_batch(checked.back().error());
  }
  std::array<std::string_view, limits::kBatchEntriesMax> bodies;
  std::array<Md5, limits::kBatchEntriesMax> sums;
  for (std::size_t i = 0; i < checked.size(); ++i)
    if (checked[i]) bodies[i] = checked[i]->body;
  md5_each(std::span(bodies).first(checked.size()), std::span(sums).first(checked.size()));
  SendMessageBatchResult result;
  result.successful.reserve(checked.size());
  for (std::size_t i = 0; i < checked.size(); ++i) {
    const std::string& id = *request.entries[i].id;
    if (checked[i]) {
      result.successful.push_back(
          {id, send(queue, *checked[i], sums[i], request.sender_id, decision)});
    } else {
      result.failed.push_back({id, checked[i].error()});
    }
  }
  queue.habits.batched_sends.add(result.successful.size(), decision.now);
  return result;
}

Reply Engine::on(const ReceiveMessage& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  const QueueAttributes& attributes = queue.attributes();
  const auto visibility = bounded(request.visibility_timeout, attributes.visibility_timeout_seconds,
                                  0, limits::kVisibilityTimeoutSecondsMax, "VisibilityTimeout",
                                  "Must be >= 0 and <= 43200, if provided.");
  if (!visibility) return std::unexpected(visibility.error());
  const auto wait = bounded(request.wait_time_seconds, attributes.wait_time_seconds, 0,
                            limits::kWaitTimeSecondsMax, "WaitTimeSeconds",
                            "Must be >= 0 and <= 20, if provided.");
  if (!wait) return std::unexpected(wait.error());
  const auto most = bounded(request.max_number_of_messages, 1, 1, limits::kReceiveMessagesMax,
                            "MaxNumberOfMessages", "Must be between 1 and 10, if provided.");
  if (!most) return std::unexpected(most.error());
  if (const auto ok = check_system_attribute_names(request.attribute_names); !ok)
    return std::unexpected(ok.error());
  if (request.attempt_id && request.positions.empty()) {
    if (!queue.fifo())
      return std::unexpected(
          invalid_value(*request.attempt_id, "ReceiveRequestAttemptId",
                        "The request includes a parameter that is not valid for this queue type."));
    if (const auto ok = check_token("ReceiveRequestAttemptId", *request.attempt_id); !ok)
      return std::unexpected(ok.error());
    if (auto repeated = repeat_attempt(queue, *request.attempt_id, seconds(*visibility), decision))
      return std::move(*repeated);
  }
  auto result = request.positions.empty()
                    ? receive(queue, request, seconds(*visibility), seconds(*wait), decision)
                    : receive_chosen(queue, request, seconds(*visibility), decision);
  if (!result) return std::unexpected(result.error());
  return std::move(*result);
}

Answer<ReceiveMessageResult> Engine::receive(Queue& queue, const ReceiveMessage& request,
                                             Duration visibility, Duration wait,
                                             Decision& decision) {
  ReceiveMessageResult result{.messages = {}, .wait = wait};
  const auto most = static_cast<std::size_t>(request.max_number_of_messages.value_or(1));
  MessagesReceived received{queue.id, {}, request.attempt_id.value_or("")};
  MessagesLeft left{queue.id, TransferReason::kDeadLetter, {}, {}};
  Bypass bypass{.places = {queue.id, {}}, .looks = options_.decision_messages};
  Hold held;
  std::size_t bytes = 0;
  while (received.items.size() < most && bytes < memory_.options.receive_bytes &&
         queue.counts().in_flight < limits::kInFlightMax) {
    const Next next = queue.next_to_receive(held);
    if (!next) break;
    if (next.is_cold()) {
      queue.want(next);
      // Returning a few messages now is better than returning all of them later.
      decision.blocked = received.items.empty();
      break;
    }
    Message* message = next.message;
    if (!decision.nothing_leaves && is_dead_letter(queue, *message)) {
      // Whatever stands behind so many dead letters is reached by the decisions that follow.
      if (left.items.size() == options_.decision_messages) {
        decision.unfinished = received.items.empty();
        break;
      }
      if (!may_leave_or_wait(queue)) {
        // As below, it is a matter of moments, unless the dead-letter queue is full.
        result.wait = std::max<Duration>(wait, seconds(1));
        held = {};
        if (bypass.looks == 0) break;
        receive_behind(queue, *message->lane, most, visibility, bypass, received, result, decision);
        continue;
      }
      held = {};
      leave_as_dead_letter(queue, *message, left, decision.now);
      // A FIFO message that leaves holds back later ones of its group until it has arrived. They
      // become receivable within moments, so even a short poll waits for them.
      if (queue.fifo() && queue.has_more_behind(*message))
        result.wait = std::max<Duration>(wait, seconds(1));
      continue;
    }
    // A receive goes on with the group it took from, as AWS does: its messages do not block each
    // other.
    if (held.lane != message->lane) held = Hold(*message->lane);
    result.messages.push_back(take(queue, *message, visibility, received, decision));
    bytes += result.messages.back().content->footprint();
    queue.read_ahead(*held.lane);
  }
  for (Lane* lane : bypass.lanes) queue.stock().take_back(*lane);
  if (received.items.empty() && bypass.cold) decision.blocked = true;
  if (!bypass.places.items.empty()) decision.record.add(bypass.places);
  record_receive(queue, left, received, decision);
  if (result.messages.empty() && wait == Duration::zero() && !queue.fifo() &&
      queue.counts().in_flight >= limits::kInFlightMax)
    return std::unexpected(too_many_in_flight());
  return result;
}

// Dead letters may not leave for as long as too many others have not arrived. On a standard queue the
// one at the head of its lane is in nobody's way, on a FIFO queue in that of its group.
void Engine::receive_behind(Queue& queue, Lane& lane, std::size_t most, Duration visibility,
                            Bypass& bypass, MessagesReceived& received,
                            ReceiveMessageResult& result, Decision& decision) {
  --bypass.looks;
  if (!queue.fifo()) {
    const auto start = static_cast<std::uint64_t>(to_millis(decision.now));
    const Residency::Behind behind =
        queue.stock().residency().look_behind(lane, bypass.looks, start);
    bypass.looks -= behind.messages.size();
    bypass.cold |= behind.cold;
    for (Message* message : behind.messages) {
      if (received.items.size() == most || queue.counts().in_flight >= limits::kInFlightMax) break;
      if (is_dead_letter(queue, *message)) continue;
      if (queue.look_for(message->seq, true) != Presence::kInMemory) {
        bypass.cold = true;
        continue;
      }
      bypass.places.items.push_back({message->seq, lane.group});
      result.messages.push_back(take(queue, *message, visibility, received, decision));
    }
  }
  if (queue.stock().pass_over(lane)) bypass.lanes.push_back(&lane);
}

void Engine::leave_as_dead_letter(Queue& queue, Message& message, MessagesLeft& left, Instant now) {
  left.items.push_back(
      {message.seq, outbox_.next(), *parse_queue_arn(queue.attributes().redrive->target_arn)});
  apply_departure(queue, left, left.items.back(), now);
}

ReceivedMessage Engine::take(Queue& queue, Message& message, Duration visibility,
                             MessagesReceived& received, Decision& decision) {
  received.items.push_back({message.seq, decision.now + visibility});
  queue.receive(message, decision.now + visibility, decision.now);
  if (message.receive_count >= limits::kOftenReceived)
    queue.habits.often_received.add(1, decision.now);
  return hand_out(queue, message);
}

void Engine::record_receive(Queue& queue, const MessagesLeft& left,
                            const MessagesReceived& received, Decision& decision) {
  // Each message was applied when it was chosen, because the next choice depends on it. The facts
  // follow in the order that replay needs: departures never depend on receives.
  if (!left.items.empty()) decision.record.add(left);
  if (!received.items.empty()) {
    decision.record.add(received);
    queue.habits.full_receives.add(1, decision.now);
    remember_attempt(queue, received, decision.now);
  }
  if (!left.items.empty() || !received.items.empty()) touch(queue);
}

std::optional<ReceiveMessageResult> Engine::repeat_attempt(Queue& queue,
                                                           const std::string& attempt_id,
                                                           Duration visibility,
                                                           Decision& decision) {
  const ReceiveAttempt* attempt = queue.find_attempt(attempt_id);
  if (attempt == nullptr) return std::nullopt;
  const auto untouched = [&](const ReceiveAttempt::Item& item) {
    const Message* message = queue.find(item.seq);
    return message != nullptr && message->state == State::kInFlight &&
           message->receive_count == item.receive && message->due == item.visible_again;
  };
  // Once any of the messages was deleted, changed or has expired, the attempt counts as an ordinary
  // receive.
  if (!std::ranges::all_of(attempt->items, untouched)) return std::nullopt;
  VisibilityChanged fact{queue.id, {}, attempt_id};
  ReceiveMessageResult result;
  for (const auto& item : attempt->items) {
    if (queue.look_for(item.seq, true) != Presence::kInMemory) {
      decision.blocked = true;
      continue;
    }
    fact.items.push_back({item.seq, decision.now + visibility});
    result.messages.push_back(hand_out(queue, *queue.find(item.seq)));
  }
  if (decision.blocked) {
    // The messages are read one by one, and all of them are needed: the first must not be evicted
    // again before the last is there.
    for (const auto& item : attempt->items) queue.stock().residency().await(item.seq);
    return ReceiveMessageResult{};
  }
  record(fact, decision);
  return result;
}

ReceivedMessage Engine::hand_out(const Queue& queue, const Message& message) const {
  ReceivedMessage out;
  out.content = message.content;
  out.receipt_handle = format_receipt({queue.id, message.seq, message.receive_count}, receipt_key_);
  out.receive_count = message.receive_count;
  out.first_received = message.first_received;
  if (queue.fifo()) out.sequence_number = message.seq;
  return out;
}

Error Engine::too_many_in_flight() {
  return {ErrorCode::kOverLimit,
          "Too many messages have been received without being deleted.\nPlease delete your "
          "received messages or let them timeout before receiving more."};
}

bool Engine::is_dead_letter(const Queue& queue, const Message& message) const {
  const auto& redrive = queue.attributes().redrive;
  return redrive && message.receive_count >= redrive->max_receive_count && !message.stays;
}

// The message that a handle names, or nullptr if it is gone.
Answer<Message*> Engine::find_received(const Queue& queue, const std::optional<std::string>& handle,
                                       Receipt& receipt, Decision& decision) const {
  if (!handle || handle->empty()) return std::unexpected(missing("ReceiptHandle"));
  const auto parsed = parse_receipt(*handle, receipt_key_);
  if (!parsed || parsed->queue != queue.id) return std::unexpected(receipt_is_invalid(*handle));
  receipt = *parsed;
  Message* const message = queue.find(receipt.seq);
  if (receipt.seq >= queue.next_seq() ||
      (message != nullptr && receipt.receive > message->receive_count))
    decision.newer_receipt_seen = true;
  return message;
}

// When the receipt was given is no longer known if the message was received again since; then the
// consumer has held the message for at least its queue's timeout and the time of that receive.
void Engine::note_late_delete(Queue& queue, const Message& message, Instant now) const {
  const bool again = message.state == State::kInFlight;
  const Duration timeout = std::chrono::seconds(queue.attributes().visibility_timeout_seconds);
  queue.habits.deleted_late(again ? timeout + (now - message.received) : now - message.received,
                            now);
}

Answer<void> Engine::delete_one(Queue& queue, const std::optional<std::string>& handle,
                                MessagesDeleted& fact, Decision& decision) {
  Receipt receipt;
  const auto message = find_received(queue, handle, receipt, decision);
  if (!message) return std::unexpected(message.error());
  if (*message == nullptr) {
    ++queue.activity.deleted_again;
    return {};
  }
  const bool current =
      (*message)->state == State::kInFlight && (*message)->receive_count == receipt.receive;
  if (current) {
    queue.habits.deletes.add(1, decision.now);
  } else {
    note_late_delete(queue, **message, decision.now);
  }
  if (queue.fifo() && !current)
    return std::unexpected(
        invalid_value(*handle, "ReceiptHandle", "The receipt handle has expired."));
  fact.seqs.push_back(receipt.seq);
  queue.remove(**message, decision.now);
  return {};
}

Reply Engine::on(const DeleteMessage& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  MessagesDeleted fact{queue.id, {}};
  if (const auto ok = delete_one(queue, request.receipt_handle, fact, decision); !ok)
    return std::unexpected(ok.error());
  if (!fact.seqs.empty()) {
    decision.record.add(fact);
    touch(queue);
  }
  return NoResult{};
}

Reply Engine::on(const DeleteMessageBatch& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  const auto ids = check_batch_ids(ids_of(request.entries), "DeleteMessageBatchRequestEntry");
  if (!ids) return std::unexpected(ids.error());
  MessagesDeleted fact{queue.id, {}};
  BatchResult result;
  for (const auto& entry : request.entries) {
    const auto ok = delete_one(queue, entry.receipt_handle, fact, decision);
    if (ok) {
      result.successful.push_back(*entry.id);
    } else if (queue.fifo() && ok.error().code == ErrorCode::kInvalidParameterValue) {
      result.failed.push_back(
          {*entry.id, {ErrorCode::kReceiptHandleIsInvalid, "The receipt handle has expired"}});
    } else {
      result.failed.push_back({*entry.id, ok.error()});
    }
  }
  if (!fact.seqs.empty()) {
    decision.record.add(fact);
    touch(queue);
  }
  return result;
}

Answer<void> Engine::change_one(Queue& queue, const std::optional<std::string>& handle,
                                std::int64_t timeout, VisibilityChanged& fact, Decision& decision) {
  Receipt receipt;
  const auto found = find_received(queue, handle, receipt, decision);
  if (!found) return std::unexpected(found.error());
  Message* message = *found;
  const bool in_flight = message != nullptr && message->state == State::kInFlight;
  // On a standard queue any receipt of the message will do. If the message is visible, it stays so.
  if (message != nullptr && !in_flight && !queue.fifo()) return {};
  if (!in_flight || (queue.fifo() && message->receive_count != receipt.receive))
    return std::unexpected(
        invalid_value(*handle, "ReceiptHandle",
                      "Message does not exist or is not available for visibility timeout change."));
  const Instant visible_again = decision.now + seconds(timeout);
  if (visible_again > message->received + limits::kVisibilityTotalMax)
    return std::unexpected(
        invalid_value(fmt::to_string(timeout), "VisibilityTimeout",
                      "Total VisibilityTimeout for the message is beyond the limit [43200 "
                      "seconds]"));
  fact.items.push_back({message->seq, visible_again});
  queue.change_visibility(*message, visible_again, decision.now);
  return {};
}

Reply Engine::on(const ChangeMessageVisibility& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  if (!request.receipt_handle) return std::unexpected(missing("ReceiptHandle"));
  if (!request.visibility_timeout) return std::unexpected(missing("VisibilityTimeout"));
  const auto timeout =
      bounded(request.visibility_timeout, 0, 0, limits::kVisibilityTimeoutSecondsMax,
              "VisibilityTimeout", "Must be between 0 and 43200.");
  if (!timeout) return std::unexpected(timeout.error());
  VisibilityChanged fact{queue.id, {}, {}};
  if (const auto ok = change_one(queue, request.receipt_handle, *timeout, fact, decision); !ok)
    return std::unexpected(ok.error());
  if (!fact.items.empty()) {
    decision.record.add(fact);
    touch(queue);
  }
  return NoResult{};
}

Reply Engine::on(const ChangeMessageVisibilityBatch& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  static constexpr std::string_view kEntry = "ChangeMessageVisibilityBatchRequestEntry";
  const auto ids = check_batch_ids(ids_of(request.entries), kEntry);
  if (!ids) return std::unexpected(ids.error());
  VisibilityChanged fact{queue.id, {}, {}};
  BatchResult result;
  for (std::size_t i = 0; i < request.entries.size(); ++i) {
    const auto& entry = request.entries[i];
    Answer<void> ok;
    if (!entry.visibility_timeout) {
      ok = std::unexpected(missing(fmt::format("{}.{}.VisibilityTimeout", kEntry, i + 1)));
    } else if (*entry.visibility_timeout < 0 ||
               *entry.visibility_timeout > limits::kVisibilityTimeoutSecondsMax) {
      ok = std::unexpected(
          invalid_value(fmt::to_string(*entry.visibility_timeout), "VisibilityTimeout",
                        "VisibilityTimeout must be an integer between 0 and 43200."));
    } else {
      ok = change_one(queue, entry.receipt_handle, *entry.visibility_timeout, fact, decision);
    }
    if (ok) {
      result.successful.push_back(*entry.id);
    } else {
      result.failed.push_back({*entry.id, ok.error()});
    }
  }
  if (!fact.items.empty()) {
    decision.record.add(fact);
    touch(queue);
  }
  return result;
}

}  // namespace stanchion::engine
