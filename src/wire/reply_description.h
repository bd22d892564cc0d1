// The members of every reply, each described once, for whichever writer is used.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "model/action.h"
#include "model/reply.h"
#include "wire/limits.h"
#include "wire/queue_url.h"
#include "wire/reply_writers.h"
#include "wire/selection.h"

namespace stanchion::wire {

// What a description needs besides the reply itself.
struct Describing {
  Action action;
  std::string_view base_url;
  const Request& request;
};

inline std::string_view status_name(MoveTaskStatus status) {
  switch (status) {
    case MoveTaskStatus::kRunning:
      return "RUNNING";
    case MoveTaskStatus::kCompleted:
      return "COMPLETED";
    case MoveTaskStatus::kCancelling:
      return "CANCELLING";
    case MoveTaskStatus::kCancelled:
      return "CANCELLED";
    case MoveTaskStatus::kFailed:
      return "FAILED";
  }
  return "";
}

// A member that a reply may lack.
template <class Writer>
void describe_text(Writer& w, Name name, const std::optional<std::string>& value) {
  if (value)
    w.text(name, *value);
  else
    w.none(name);
}

template <class Writer>
void describe_md5(Writer& w, Name name, const std::optional<Md5>& value) {
  if (value)
    w.token(name, HexOf{*value});
  else
    w.none(name);
}

template <class Writer>
void describe(Writer&, const NoResult&, const Describing&) {}

template <class Writer>
void describe(Writer& w, const QueueUrlResult& reply, const Describing& about) {
  std::string url;
  append_queue_url(url, about.base_url, reply.queue);
  w.text("QueueUrl", url);
}

template <class Writer>
void describe(Writer& w, const QueueListResult& reply, const Describing& about) {
  const bool dead_letter_sources = about.action == Action::kListDeadLetterSourceQueues;
  const Name name(dead_letter_sources ? "queueUrls" : "QueueUrls", "QueueUrl", "queueUrls");
  if (dead_letter_sources && reply.queues.empty()) w.empty_list(name);
  w.texts(name, reply.queues, [&](const QueueRef& queue, std::string& out) {
    append_queue_url(out, about.base_url, queue);
  });
  describe_text(w, "NextToken", reply.next_token);
}

template <class Writer>
void describe(Writer& w, const QueueAttributesResult& reply, const Describing&) {
  w.map({"Attributes", "Attribute"}, {"Name", "Value"}, reply.attributes);
}

template <class Writer>
void describe(Writer& w, const QueueTagsResult& reply, const Describing&) {
  w.map({"Tags", "Tag"}, {"Key", "Value"}, reply.tags);
}

template <class Writer>
void describe(Writer& w, const SentMessage& sent, const Describing&) {
  w.token("MessageId", UuidOf{sent.id.bytes});
  w.token("MD5OfMessageBody", HexOf{sent.body_md5});
  describe_md5(w, "MD5OfMessageAttributes", sent.attributes_md5);
  describe_md5(w, "MD5OfMessageSystemAttributes", sent.system_attributes_md5);
  if (sent.sequence_number)
    w.token("SequenceNumber", format_sequence_number(*sent.sequence_number));
  else
    w.none("SequenceNumber");
}

// Messages may quote what a client sent: as much as fits into a request, which grows when it is
// escaped; or bytes of a header, which nobody has checked to be UTF-8.
inline std::string error_text(const Error& error) {
  const std::string& whole = error.message;
  std::size_t size = std::min(whole.size(), kErrorTextMax);
  // Not in the middle of a character.
  while (size > 0 && size < whole.size() &&
         (static_cast<unsigned char>(whole[size]) & 0xC0) == 0x80)
    --size;
  std::string text = whole.substr(0, size);
  if (size < whole.size()) text += "…";
  if (is_utf8(text)) return text;
  for (char& c : text)
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return text;
}

template <class Writer>
void describe_failures(Writer& w, const std::vector<BatchFailure>& failed) {
  w.structures({"Failed", "BatchResultErrorEntry"}, failed, [&](const BatchFailure& failure) {
    const ErrorInfo& info = info_of(failure.error.code);
    std::string_view code = info.query_code;
    if (constexpr std::string_view kPrefix = "AWS.SimpleQueueService."; code.starts_with(kPrefix))
      code.remove_prefix(kPrefix.size());
    w.text("Id", failure.id);
    w.token("Code", code);
    w.text("Message", error_text(failure.error));
    w.boolean("SenderFault", info.sender_fault());
  });
}

template <class Writer>
void describe(Writer& w, const SendMessageBatchResult& reply, const Describing& about) {
  w.structures({"Successful", "SendMessageBatchResultEntry"}, reply.successful,
               [&](const SendMessageBatchResult::Success& success) {
                 w.text("Id", success.id);
                 describe(w, success.message, about);
               });
  describe_failures(w, reply.failed);
}

template <class Writer>
void describe(Writer& w, const BatchResult& reply, const Describing& about) {
  const Name name("Successful", about.action == Action::kDeleteMessageBatch
                                    ? "DeleteMessageBatchResultEntry"
                                    : "ChangeMessageVisibilityBatchResultEntry");
  w.structures(name, reply.successful, [&](const std::string& id) { w.text("Id", id); });
  describe_failures(w, reply.failed);
}

template <class Writer>
void describe(Writer& w, const AttributeView& attribute) {
  if (attribute.kind == ValueKind::kBinary)
    w.token("BinaryValue", to_base64(attribute.value));
  else
    w.text("StringValue", attribute.value);
  w.text("DataType", attribute.data_type);
}

template <class Writer>
void describe(Writer& w, const ReceiveMessageResult& reply, const Describing& about) {
  static constexpr Name kMessages("Messages", "Message", "messages");
  if (reply.messages.empty()) return w.none(kMessages);
  const Selection selection(std::get<ReceiveMessage>(about.request));
  std::vector<Selection::SystemValue> system;
  w.structures(kMessages, reply.messages, [&](const ReceivedMessage& message) {
    const Content& content = *message.content;
    w.token("MessageId", UuidOf{content.id().bytes});
    w.token("ReceiptHandle", message.receipt_handle);
    w.token("MD5OfBody", HexOf{content.body_md5()});
    w.text("Body", content.body());
    selection.system_attributes(message, system);
    w.map({"Attributes", "Attribute"}, {"Name", "Value"}, system);
    const auto attributes = selection.message_attributes(content);
    describe_md5(w, "MD5OfMessageAttributes",
                 attributes.empty() ? std::nullopt : std::optional(md5_of_attributes(attributes)));
    w.structure_map(
        {"MessageAttributes", "MessageAttribute"}, attributes,
        [](const AttributeView& a) { return a.name; },
        [&](const AttributeView& a) { describe(w, a); });
  });
}

template <class Writer>
void describe(Writer& w, const StartMessageMoveTaskResult& reply, const Describing&) {
  w.text("TaskHandle", reply.task_handle);
}

template <class Writer>
void describe(Writer& w, const CancelMessageMoveTaskResult& reply, const Describing&) {
  w.number("ApproximateNumberOfMessagesMoved", reply.moved);
}

template <class Writer>
void describe(Writer& w, const ListMessageMoveTasksResult& reply, const Describing&) {
  w.structures({"Results", "ListMessageMoveTasksResultEntry"}, reply.tasks, [&](const auto& task) {
    describe_text(w, "TaskHandle", task.task_handle);
    w.token("Status", status_name(task.status));
    w.text("SourceArn", task.source_arn);
    describe_text(w, "DestinationArn", task.destination_arn);
    if (task.max_messages_per_second)
      w.number("MaxNumberOfMessagesPerSecond", *task.max_messages_per_second);
    else
      w.none("MaxNumberOfMessagesPerSecond");
    w.number("ApproximateNumberOfMessagesMoved", task.moved);
    w.number("ApproximateNumberOfMessagesToMove", task.to_move);
    describe_text(w, "FailureReason", task.failure_reason);
    w.number("StartedTimestamp", to_millis(task.started));
  });
}

inline std::string_view state_name(PeekedState state) {
  switch (state) {
    case PeekedState::kVisible:
      return "Visible";
    case PeekedState::kDelayed:
      return "Delayed";
    case PeekedState::kInFlight:
      return "InFlight";
  }
  return "";
}

template <class Writer>
void describe_time(Writer& w, Name name, bool has, Instant at) {
  if (has)
    w.number(name, to_millis(at));
  else
    w.none(name);
}

// The attributes of a message as a receive that wants all of them shows them.
template <class Writer>
void describe_attributes(Writer& w, const PeekedMessage& message, const Selection& all) {
  std::vector<Selection::SystemValue> system;
  all.system_attributes({.content = message.content,
                         .receipt_handle = {},
                         .receive_count = message.receive_count,
                         .first_received = message.first_received,
                         .sequence_number = message.sequence_number},
                        system);
  if (message.receive_count == 0)
    std::erase_if(system, [](const Selection::SystemValue& value) {
      return value.first == "ApproximateFirstReceiveTimestamp";
    });
  w.map({"Attributes", "Attribute"}, {"Name", "Value"}, system);
  const auto attributes = message.content->attributes();
  describe_md5(w, "MD5OfMessageAttributes",
               attributes.empty() ? std::nullopt : std::optional(md5_of_attributes(attributes)));
  w.structure_map(
      {"MessageAttributes", "MessageAttribute"}, attributes,
      [](const AttributeView& a) { return a.name; },
      [&](const AttributeView& a) { describe(w, a); });
}

template <class Writer>
void describe(Writer& w, const StanchionPeekResult& reply, const Describing&) {
  const ReceiveMessage everything{.queue = {},
                                  .attribute_names = {"All"},
                                  .message_attribute_names = {},
                                  .max_number_of_messages = {},
                                  .visibility_timeout = {},
                                  .wait_time_seconds = {},
                                  .attempt_id = {},
                                  .positions = {}};
  const Selection all(everything);
  w.structures({"Messages", "Message"}, reply.messages, [&](const PeekedMessage& message) {
    const Content& content = *message.content;
    w.token("MessageId", UuidOf{content.id().bytes});
    w.token("StanchionPosition", message.position);
    w.token("State", state_name(message.state));
    w.number("EnteredTimestamp", to_millis(message.entered));
    w.number("ExpiresTimestamp", to_millis(message.expires));
    describe_time(w, "VisibleTimestamp", message.state != PeekedState::kVisible, message.due);
    describe_time(w, "LastReceiveTimestamp", message.received != Instant(), message.received);
    w.token("MD5OfBody", HexOf{content.body_md5()});
    w.text("Body", content.body());
    describe_attributes(w, message, all);
  });
  describe_text(w, "NextToken", reply.next_token);
}

template <class Writer>
void describe(Writer& w, const StanchionAdviceResult& reply, const Describing& about) {
  w.structures({"Advice", "Advice"}, reply.advice, [&](const StanchionAdviceResult::Advice& one) {
    std::string url;
    append_queue_url(url, about.base_url, one.queue);
    w.text("QueueUrl", url);
    w.token("Kind", one.kind);
    w.text("Text", one.text);
    if (one.command.empty())
      w.none("Command");
    else
      w.text("Command", one.command);
  });
  if (reply.left_out > 0) w.number("LeftOut", reply.left_out);
}

template <class Writer>
void describe(Writer& w, const StanchionGroupsResult& reply, const Describing&) {
  w.structures({"Groups", "Group"}, reply.groups, [&](const StanchionGroupsResult::Group& group) {
    w.text("MessageGroupId", group.id);
    w.number("Waiting", group.waiting);
    w.number("Delayed", group.delayed);
    w.number("InFlight", group.in_flight);
    if (!reply.fifo) {
      w.number("InFlightPercent", group.in_flight_percent);
      w.number("BusyPercent", group.busy_percent);
      w.boolean("Noisy", group.noisy);
      return;
    }
    w.boolean("Locked", group.lock.has_value());
    if (!group.lock) return;
    w.token("LockedBySequenceNumber", format_sequence_number(group.lock->sequence_number));
    if (group.lock->message) w.token("LockedByMessageId", UuidOf{group.lock->message->bytes});
    w.number("LockedSinceTimestamp", to_millis(group.lock->received));
    w.number("LockedUntilTimestamp", to_millis(group.lock->until));
    w.number("LockedByReceiveCount", group.lock->receive_count);
  });
  describe_text(w, "NextToken", reply.next_token);
}

}  // namespace stanchion::wire
