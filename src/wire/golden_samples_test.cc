#include "wire/golden_samples_test.h"

#include <fmt/format.h>

#include "base/text.h"
#include "wire/encode.h"

namespace stanchion::wire {
namespace {

class Dump {
 public:
  explicit Dump(std::string& out) : out_(out) {}

  void queue(const QueueRef& q) { line("queue", q.arn()); }
  void line(std::string_view name, std::string_view value) {
    out_ += fmt::format("{}{} = {}\n", indent_, name, value);
  }
  void text(std::string_view name, const std::optional<std::string>& value) {
    if (value) line(name, fmt::format("\"{}\"", *value));
  }
  void number(std::string_view name, std::optional<std::int64_t> value) {
    if (value) line(name, std::to_string(*value));
  }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    for (const auto& value : values) text(name, value);
  }
  void map(std::string_view name, const StringMap& values) {
    for (const auto& [key, value] : values) text(fmt::format("{}[{}]", name, key), value);
  }
  void attributes(std::string_view name, const std::vector<MessageAttribute>& values) {
    for (const auto& a : values) {
      line(name, a.name);
      within([&] {
        text("type", a.data_type);
        text("string", a.string_value);
        if (a.binary_value) line("bytes", to_hex(*a.binary_value));
        if (a.has_list_value) line("has list", "true");
      });
    }
  }
  void message(const OutgoingMessage& m) {
    text("body", m.body);
    number("delay", m.delay_seconds);
    attributes("attribute", m.attributes);
    attributes("system attribute", m.system_attributes);
    text("deduplication id", m.deduplication_id);
    text("group", m.group_id);
  }
  template <class Inner>
  void within(const Inner& inner) {
    indent_ += "  ";
    inner();
    indent_.resize(indent_.size() - 2);
  }

  void operator()(const AddPermission& r) {
    queue(r.queue);
    text("label", r.label);
    texts("account", r.account_ids);
    texts("action", r.actions);
  }
  void operator()(const CancelMessageMoveTask& r) { text("task handle", r.task_handle); }
  void operator()(const ChangeMessageVisibility& r) {
    queue(r.queue);
    text("receipt", r.receipt_handle);
    number("timeout", r.visibility_timeout);
  }
  void operator()(const ChangeMessageVisibilityBatch& r) {
    queue(r.queue);
    for (const auto& e : r.entries) {
      text("entry", e.id);
      within([&] {
        text("receipt", e.receipt_handle);
        number("timeout", e.visibility_timeout);
      });
    }
  }
  void operator()(const CreateQueue& r) {
    queue(r.queue);
    map("attribute", r.attributes);
    map("tag", r.tags);
  }
  void operator()(const DeleteMessage& r) {
    queue(r.queue);
    text("receipt", r.receipt_handle);
  }
  void operator()(const DeleteMessageBatch& r) {
    queue(r.queue);
    for (const auto& e : r.entries) {
      text("entry", e.id);
      within([&] { text("receipt", e.receipt_handle); });
    }
  }
  void operator()(const DeleteQueue& r) { queue(r.queue); }
  void operator()(const GetQueueAttributes& r) {
    queue(r.queue);
    texts("attribute name", r.attribute_names);
  }
  void operator()(const GetQueueUrl& r) { queue(r.queue); }
  void operator()(const ListDeadLetterSourceQueues& r) {
    queue(r.queue);
    number("max results", r.max_results);
    text("next token", r.next_token);
  }
  void operator()(const ListMessageMoveTasks& r) {
    text("source", r.source_arn);
    number("max results", r.max_results);
  }
  void operator()(const ListQueueTags& r) { queue(r.queue); }
  void operator()(const ListQueues& r) {
    line("account", r.account);
    line("region", r.region);
    text("prefix", r.prefix);
    number("max results", r.max_results);
    text("next token", r.next_token);
  }
  void operator()(const PurgeQueue& r) { queue(r.queue); }
  void operator()(const ReceiveMessage& r) {
    queue(r.queue);
    texts("attribute name", r.attribute_names);
    texts("message attribute name", r.message_attribute_names);
    number("max messages", r.max_number_of_messages);
    number("timeout", r.visibility_timeout);
    number("wait", r.wait_time_seconds);
    text("attempt", r.attempt_id);
    texts("position", r.positions);
  }
  void operator()(const RemovePermission& r) {
    queue(r.queue);
    text("label", r.label);
  }
  void operator()(const SendMessage& r) {
    queue(r.queue);
    message(r.message);
  }
  void operator()(const SendMessageBatch& r) {
    queue(r.queue);
    for (const auto& e : r.entries) {
      text("entry", e.id);
      within([&] { message(e.message); });
    }
  }
  void operator()(const SetQueueAttributes& r) {
    queue(r.queue);
    map("attribute", r.attributes);
  }
  void operator()(const StanchionAdvice& r) {
    line("account", r.account);
    line("region", r.region);
  }
  void operator()(const StanchionGroups& r) {
    queue(r.queue);
    number("max results", r.max_results);
    text("next token", r.next_token);
  }
  void operator()(const StanchionPeek& r) {
    queue(r.queue);
    texts("state", r.states);
    text("group", r.group_id);
    text("search", r.search);
    number("max results", r.max_results);
    text("next token", r.next_token);
  }
  void operator()(const StartMessageMoveTask& r) {
    text("source", r.source_arn);
    text("destination", r.destination_arn);
    number("messages per second", r.max_messages_per_second);
  }
  void operator()(const TagQueue& r) {
    queue(r.queue);
    map("tag", r.tags);
  }
  void operator()(const UntagQueue& r) {
    queue(r.queue);
    texts("tag key", r.tag_keys);
  }

 private:
  std::string& out_;
  std::string indent_ = "  ";
};

constexpr std::string_view kSourceArn = "arn:aws:sqs:us-east-1:000000000000:orders-dead";
constexpr std::string_view kTargetArn = "arn:aws:sqs:us-east-1:000000000000:orders";

QueueRef queue_named(std::string_view name) {
  return {"000000000000", "us-east-1", std::string(name)};
}

MessageId message_id(std::uint8_t n) {
  MessageId id;
  id.bytes = {0x5f, 0xea, 0x7f, 0x56, 0x0e, 0x0e, 0x4f, 0x4c, 0x8c, 0x5e, 0, 0, 0, 0, 0, n};
  return id;
}

SentMessage sent_message(std::string_view body) {
  return {message_id(1), md5(body), std::nullopt, std::nullopt, std::nullopt};
}

SentMessage sent_fifo_message() {
  SentMessage sent = sent_message("hello");
  sent.attributes_md5 = md5_of_attributes({{"Hello", "String", ValueKind::kString, "World"}});
  sent.system_attributes_md5 =
      md5_of_attributes({{"AWSTraceHeader", "String", ValueKind::kString, "some-trace-id"}});
  sent.sequence_number = Seq(42);
  return sent;
}

BatchFailure failure(std::string id) {
  return {std::move(id),
          {ErrorCode::kReceiptHandleIsInvalid,
           "The input receipt handle \"x\" is not a valid receipt handle."}};
}

ReceivedMessage received_message() {
  const std::string attributes =
      encode_attributes({{"a", "String", ValueKind::kString, "x<y"},
                         {"B", "Binary.png", ValueKind::kBinary, std::string_view("\0\1\2", 3)}});
  ContentParts parts{.id = message_id(1),
                     .sent = from_millis(1'545'082'649'183),
                     .body = "two\r\nlines & \"quotes\" \xE2\x82\xAC",
                     .group = "",
                     .deduplication_id = "",
                     .sender = "AIDAIENQZJOLO23YVJ4VO",
                     .trace_header = "Root=1-5e3d83c1",
                     .source_arn = "",
                     .last_received = {},
                     .attribute_section = attributes};
  return {Content::make(parts), "AQEBx1", 1, from_millis(1'545'082'649'185), std::nullopt};
}

ReceivedMessage received_fifo_message() {
  ContentParts parts{.id = message_id(2),
                     .sent = from_millis(1'545'082'649'183),
                     .body = "hello",
                     .group = "g1",
                     .deduplication_id = "d1",
                     .sender = "000000000000",
                     .trace_header = "",
                     .source_arn = kTargetArn,
                     .last_received = {},
                     .attribute_section = ""};
  return {Content::make(parts), "AQEBx2", 3, from_millis(1'545'082'649'185), Seq(7)};
}

ListMessageMoveTasksResult move_tasks() {
  ListMessageMoveTasksResult::Task running, failed;
  running.task_handle = "eyJ0YXNrSWQiOiIxIn0=";
  running.source_arn = kSourceArn;
  running.destination_arn = kTargetArn;
  running.max_messages_per_second = 50;
  running.moved = 3;
  running.to_move = 10;
  running.started = from_millis(1'700'000'000'123);
  failed.status = MoveTaskStatus::kFailed;
  failed.source_arn = kSourceArn;
  failed.failure_reason = "CouldNotDetermineMessageSource";
  failed.started = from_millis(1'600'000'000'000);
  return {{running, failed}};
}

StanchionPeekResult peeked() {
  const Instant base = from_millis(1'700'000'000'000);
  const ReceivedMessage plain = received_message(), fifo = received_fifo_message();
  return {{{.content = plain.content,
            .state = PeekedState::kVisible,
            .entered = base,
            .expires = base + std::chrono::hours(96),
            .due = {},
            .received = {},
            .first_received = {},
            .receive_count = 0,
            .sequence_number = std::nullopt,
            .position = "AgEB"},
           {.content = fifo.content,
            .state = PeekedState::kInFlight,
            .entered = base + std::chrono::seconds(1),
            .expires = base + std::chrono::hours(97),
            .due = base + std::chrono::seconds(60),
            .received = base + std::chrono::seconds(30),
            .first_received = base + std::chrono::seconds(10),
            .receive_count = 2,
            .sequence_number = Seq(7),
            .position = "AgIC"}},
          "MS4yLjM="};
}

StanchionGroupsResult groups() {
  StanchionGroupsResult result{.fifo = true, .groups = {}, .next_token = "MS4y"};
  result.groups.push_back({.id = "customer <7>", .waiting = 3, .in_flight = 1, .lock = {{}}});
  result.groups.back().lock->sequence_number = Seq(7);
  result.groups.back().lock->received = from_millis(1'700'000'000'000);
  result.groups.back().lock->until = from_millis(1'700'000'030'000);
  result.groups.back().lock->receive_count = 1;
  result.groups.push_back({.id = "idle", .waiting = 1, .lock = std::nullopt});
  return result;
}

Reply empty_reply(Action action) {
  switch (action) {
    case Action::kListQueues:
    case Action::kListDeadLetterSourceQueues:
      return QueueListResult{};
    case Action::kGetQueueAttributes:
      return QueueAttributesResult{};
    case Action::kListQueueTags:
      return QueueTagsResult{};
    case Action::kReceiveMessage:
      return ReceiveMessageResult{};
    case Action::kListMessageMoveTasks:
      return ListMessageMoveTasksResult{};
    case Action::kStanchionAdvice:
      return StanchionAdviceResult{};
    case Action::kStanchionGroups:
      return StanchionGroupsResult{};
    case Action::kStanchionPeek:
      return StanchionPeekResult{};
    case Action::kAddPermission:
    case Action::kCancelMessageMoveTask:
    case Action::kChangeMessageVisibility:
    case Action::kChangeMessageVisibilityBatch:
    case Action::kCreateQueue:
    case Action::kDeleteMessage:
    case Action::kDeleteMessageBatch:
    case Action::kDeleteQueue:
    case Action::kGetQueueUrl:
    case Action::kPurgeQueue:
    case Action::kRemovePermission:
    case Action::kSendMessage:
    case Action::kSendMessageBatch:
    case Action::kSetQueueAttributes:
    case Action::kStartMessageMoveTask:
    case Action::kTagQueue:
    case Action::kUntagQueue:
      return NoResult{};
  }
  return NoResult{};
}

Reply full_reply(Action action) {
  switch (action) {
    case Action::kCreateQueue:
    case Action::kGetQueueUrl:
      return QueueUrlResult{queue_named("orders")};
    case Action::kListQueues:
      return QueueListResult{{queue_named("orders"), queue_named("orders.fifo")}, "bmV4dA=="};
    case Action::kListDeadLetterSourceQueues:
      return QueueListResult{{queue_named("orders")}, std::nullopt};
    case Action::kGetQueueAttributes:
      return QueueAttributesResult{
          {{"VisibilityTimeout", "30"},
           {"RedrivePolicy", R"({"deadLetterTargetArn":"arn","maxReceiveCount":5})"}}};
    case Action::kListQueueTags:
      return QueueTagsResult{{{"team", "blue & green"}, {"empty", ""}}};
    case Action::kSendMessage:
      return sent_message("hello");
    case Action::kSendMessageBatch:
      return SendMessageBatchResult{{{"one", sent_message("hello")}}, {failure("two")}};
    case Action::kReceiveMessage:
      return ReceiveMessageResult{{received_message(), received_fifo_message()}, Duration(0)};
    case Action::kDeleteMessageBatch:
    case Action::kChangeMessageVisibilityBatch:
      return BatchResult{{"one"}, {failure("two")}};
    case Action::kStartMessageMoveTask:
      return StartMessageMoveTaskResult{"eyJ0YXNrSWQiOiIxIn0="};
    case Action::kCancelMessageMoveTask:
      return CancelMessageMoveTaskResult{3};
    case Action::kListMessageMoveTasks:
      return move_tasks();
    case Action::kStanchionAdvice:
      return StanchionAdviceResult{
          {{queue_named("orders"), "VisibilityLoop", "too short", "aws sqs set-queue-attributes"},
           {queue_named("orders"), "SingleSends", "one <by> one", ""}}};
    case Action::kStanchionGroups:
      return groups();
    case Action::kStanchionPeek:
      return peeked();
    case Action::kAddPermission:
    case Action::kChangeMessageVisibility:
    case Action::kDeleteMessage:
    case Action::kDeleteQueue:
    case Action::kPurgeQueue:
    case Action::kRemovePermission:
    case Action::kSetQueueAttributes:
    case Action::kTagQueue:
    case Action::kUntagQueue:
      return NoResult{};
  }
  return NoResult{};
}

}  // namespace

std::string dump_request(const Request& request) {
  std::string out = fmt::format("{}\n", name_of(action_of(request)));
  std::visit(Dump(out), request);
  return out;
}

Reply sample_reply(Action action, const std::string& sample) {
  if (sample == "empty") return empty_reply(action);
  if (sample == "fifo") return sent_fifo_message();
  return full_reply(action);
}

namespace {

// The server's error texts, word for word. The tests of errors compare the golden files with a
// running server, so a text that changes there has to be changed here.
std::string_view sample_text(ErrorCode code) {
  switch (code) {
    case ErrorCode::kQueueDoesNotExist:
      return kQueueDoesNotExist;
    case ErrorCode::kQueueNameExists:
      return "A queue already exists with the same name and a different value for attribute "
             "VisibilityTimeout";
    case ErrorCode::kQueueDeletedRecently:
      return "You must wait 60 seconds after deleting a queue before you can create another with "
             "the same name.";
    case ErrorCode::kPurgeQueueInProgress:
      return "Only one PurgeQueue operation on errors-small is allowed every 60 seconds.";
    case ErrorCode::kReceiptHandleIsInvalid:
      return "The input receipt handle \"x\" is not a valid receipt handle.";
    case ErrorCode::kInvalidMessageContents:
      return "Invalid binary character '#x7' was found in the message body, the set of allowed "
             "characters is #x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | "
             "[#x10000-#x10FFFF].";
    case ErrorCode::kInvalidAttributeName:
      return "Unknown Attribute Foo.";
    case ErrorCode::kInvalidAttributeValue:
      return "Invalid value for the parameter VisibilityTimeout.";
    case ErrorCode::kOverLimit:
      return "8 Actions were found, maximum allowed is 7.";
    case ErrorCode::kRequestThrottled:
      return "Request is throttled.";
    case ErrorCode::kUnsupportedOperation:
      return "Message attribute list values in SendMessage operation are not supported.";
    case ErrorCode::kResourceNotFound:
      return "The resource that you specified for the SourceArn parameter doesn't exist.";
    case ErrorCode::kInvalidAddress:
      return "The address http://localhost/x is not valid for this endpoint.";
    case ErrorCode::kInvalidSecurity:
      return "All requests to this queue must use HTTPS and SigV4.";
    case ErrorCode::kTooManyEntriesInBatchRequest:
      return "Maximum number of entries per request are 10. You have sent 11.";
    case ErrorCode::kEmptyBatchRequest:
      return "There should be at least one SendMessageBatchRequestEntry in the request.";
    case ErrorCode::kBatchEntryIdsNotDistinct:
      return "Id a repeated.";
    case ErrorCode::kBatchRequestTooLong:
      return "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.";
    case ErrorCode::kInvalidBatchEntryId:
      return "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
             "It can be at most 80 letters long.";
    case ErrorCode::kInvalidParameterValue:
      return "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 "
             "and <= 900.";
    case ErrorCode::kMissingParameter:
      return "The request must contain the parameter MessageBody.";
    case ErrorCode::kMalformedInput:
      return "Start of list found where not expected";
    case ErrorCode::kAccessDenied:
      return "User: arn:aws:iam::222222222222:root is not authorized to perform: sqs:sendmessage "
             "on "
             "resource: arn:aws:sqs:us-east-1:000000000000:errors because no resource-based policy "
             "allows the sqs:sendmessage action";
    case ErrorCode::kInvalidAction:
      return "The action Foo is not valid for this endpoint.";
    case ErrorCode::kMissingAuthenticationToken:
      return "Request is missing Authentication Token";
    case ErrorCode::kIncompleteSignature:
      return "Authorization header requires 'Credential' parameter.";
    case ErrorCode::kInvalidClientTokenId:
      return "The security token included in the request is invalid.";
    case ErrorCode::kSignatureDoesNotMatch:
      return "The request signature we calculated does not match the signature you provided. Check "
             "your AWS Secret Access Key and signing method. Consult the service documentation for "
             "details.";
    case ErrorCode::kExpiredToken:
      return "The security token included in the request is expired";
    case ErrorCode::kRequestEntityTooLarge:
      return "The request body is too large.";
    case ErrorCode::kInternalFailure:
      return "An internal failure occurred.";
    case ErrorCode::kServiceUnavailable:
      return "The disk that holds Stanchion's data is full. Nothing was lost and this request "
             "changed "
             "nothing. Free some space, or receive and delete messages, and try again.";
    // No action of SQS is answered with these; cloudwatch_test.cc has what CloudWatch's are.
    case ErrorCode::kShardHasMoved:
    case ErrorCode::kInvalidParameterCombination:
    case ErrorCode::kInvalidNextToken:
    case ErrorCode::kValidationError:
      return {};
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string, Error>> sample_errors() {
  std::vector<std::pair<std::string, Error>> samples;
#define STANCHION_SAMPLE_ERROR(name, type, query_code, status)                \
  if (const std::string text(sample_text(ErrorCode::k##name)); !text.empty()) \
    samples.emplace_back(#name, Error{ErrorCode::k##name, text});
  STANCHION_ERRORS(STANCHION_SAMPLE_ERROR)
#undef STANCHION_SAMPLE_ERROR
  samples.emplace_back("A text with every character that is escaped",
                       Error{ErrorCode::kInvalidParameterValue, "\"x\" < 'y' & \\ \t\r\n\x7F €"});
  samples.emplace_back("InvalidAction, because the call names none",
                       Error{ErrorCode::kInvalidAction, ""});
  return samples;
}

}  // namespace stanchion::wire
