// The requests and results of the 23 actions of SQS, named as AWS names them, and of Stanchion's
// own, which other servers do not have.
//
// An optional member is left out of the request unless it is set; empty lists and maps are left
// out. Texts must be UTF-8; binary values of attributes are plain bytes and are encoded when
// written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stanchion::client {

using StringMap = std::map<std::string, std::string>;

struct MessageAttributeValue {
  std::string data_type = {};  // String, Number or Binary, with an optional ".label".
  std::optional<std::string> string_value = {};
  std::optional<std::string> binary_value = {};

  static MessageAttributeValue text(std::string value) {
    return {.data_type = "String", .string_value = std::move(value)};
  }
  static MessageAttributeValue number(std::string value) {
    return {.data_type = "Number", .string_value = std::move(value)};
  }
  static MessageAttributeValue binary(std::string value) {
    return {.data_type = "Binary", .binary_value = std::move(value)};
  }
};
using MessageAttributes = std::map<std::string, MessageAttributeValue>;

// An entry of a batch that was refused.
struct BatchResultErrorEntry {
  std::string id = {};
  std::string code = {};
  std::string message = {};
  bool sender_fault = false;
};

// Messages.

struct SendMessageResult {
  std::string message_id = {};
  std::string md5_of_message_body = {};
  std::optional<std::string> md5_of_message_attributes = {};
  std::optional<std::string> md5_of_message_system_attributes = {};
  std::optional<std::string> sequence_number = {};  // FIFO queues only.
};
struct SendMessageRequest {
  using Result = SendMessageResult;
  std::string queue_url = {};
  std::string message_body = {};
  std::optional<std::int64_t> delay_seconds = {};
  MessageAttributes message_attributes = {};
  MessageAttributes message_system_attributes = {};
  std::optional<std::string> message_deduplication_id = {};
  std::optional<std::string> message_group_id = {};
};

struct SendMessageBatchRequestEntry {
  std::string id = {};  // Empty: the entry's position in its batch, from "0" on.
  std::string message_body = {};
  std::optional<std::int64_t> delay_seconds = {};
  MessageAttributes message_attributes = {};
  MessageAttributes message_system_attributes = {};
  std::optional<std::string> message_deduplication_id = {};
  std::optional<std::string> message_group_id = {};
};
struct SendMessageBatchResultEntry {
  std::string id = {};
  std::string message_id = {};
  std::string md5_of_message_body = {};
  std::optional<std::string> md5_of_message_attributes = {};
  std::optional<std::string> md5_of_message_system_attributes = {};
  std::optional<std::string> sequence_number = {};
};
struct SendMessageBatchResult {
  std::vector<SendMessageBatchResultEntry> successful = {};
  std::vector<BatchResultErrorEntry> failed = {};
};
struct SendMessageBatchRequest {
  using Result = SendMessageBatchResult;
  std::string queue_url = {};
  std::vector<SendMessageBatchRequestEntry> entries = {};
};

struct Message {
  std::string message_id = {};
  std::string receipt_handle = {};
  std::string md5_of_body = {};
  std::string body = {};
  StringMap attributes = {};  // ApproximateReceiveCount, SentTimestamp and the like.
  std::optional<std::string> md5_of_message_attributes = {};
  MessageAttributes message_attributes = {};
};
struct ReceiveMessageResult {
  std::vector<Message> messages = {};
  // Messages whose MD5 does not match the data that arrived. They are in flight, and become visible
  // again when their visibility timeout ends.
  std::vector<Message> damaged = {};
};
struct ReceiveMessageRequest {
  using Result = ReceiveMessageResult;
  std::string queue_url = {};
  std::optional<std::int64_t> max_number_of_messages = {};
  std::optional<std::int64_t> wait_time_seconds = {};
  std::optional<std::int64_t> visibility_timeout = {};
  std::vector<std::string> message_system_attribute_names = {};  // "All" for all of them.
  std::vector<std::string> message_attribute_names = {};
  // FIFO only. Empty: the client generates one, so that a repeated receive gets the same messages.
  std::optional<std::string> receive_request_attempt_id = {};
  // Stanchion only: receives these messages, as stanchion_peek() has shown them, instead of the
  // next ones.
  std::vector<std::string> stanchion_positions = {};
};

struct DeleteMessageResult {};
struct DeleteMessageRequest {
  using Result = DeleteMessageResult;
  std::string queue_url = {};
  std::string receipt_handle = {};
};

struct BatchResultEntry {
  std::string id = {};
};
struct DeleteMessageBatchRequestEntry {
  std::string id = {};
  std::string receipt_handle = {};
};
struct DeleteMessageBatchResult {
  std::vector<BatchResultEntry> successful = {};
  std::vector<BatchResultErrorEntry> failed = {};
};
struct DeleteMessageBatchRequest {
  using Result = DeleteMessageBatchResult;
  std::string queue_url = {};
  std::vector<DeleteMessageBatchRequestEntry> entries = {};
};

struct ChangeMessageVisibilityResult {};
struct ChangeMessageVisibilityRequest {
  using Result = ChangeMessageVisibilityResult;
  std::string queue_url = {};
  std::string receipt_handle = {};
  std::int64_t visibility_timeout = 0;
};

struct ChangeMessageVisibilityBatchRequestEntry {
  std::string id = {};
  std::string receipt_handle = {};
  std::int64_t visibility_timeout = 0;
};
struct ChangeMessageVisibilityBatchResult {
  std::vector<BatchResultEntry> successful = {};
  std::vector<BatchResultErrorEntry> failed = {};
};
struct ChangeMessageVisibilityBatchRequest {
  using Result = ChangeMessageVisibilityBatchResult;
  std::string queue_url = {};
  std::vector<ChangeMessageVisibilityBatchRequestEntry> entries = {};
};

// Queues.

struct CreateQueueResult {
  std::string queue_url = {};
};
struct CreateQueueRequest {
  using Result = CreateQueueResult;
  std::string queue_name = {};
  StringMap attributes = {};
  StringMap tags = {};
};

struct DeleteQueueResult {};
struct DeleteQueueRequest {
  using Result = DeleteQueueResult;
  std::string queue_url = {};
};

struct GetQueueUrlResult {
  std::string queue_url = {};
};
struct GetQueueUrlRequest {
  using Result = GetQueueUrlResult;
  std::string queue_name = {};
  std::optional<std::string> queue_owner_aws_account_id = {};
};

struct ListQueuesResult {
  std::vector<std::string> queue_urls = {};
  std::optional<std::string> next_token = {};
};
struct ListQueuesRequest {
  using Result = ListQueuesResult;
  std::optional<std::string> queue_name_prefix = {};
  std::optional<std::int64_t> max_results = {};
  std::optional<std::string> next_token = {};
};

struct ListDeadLetterSourceQueuesResult {
  std::vector<std::string> queue_urls = {};
  std::optional<std::string> next_token = {};
};
struct ListDeadLetterSourceQueuesRequest {
  using Result = ListDeadLetterSourceQueuesResult;
  std::string queue_url = {};
  std::optional<std::int64_t> max_results = {};
  std::optional<std::string> next_token = {};
};

struct GetQueueAttributesResult {
  StringMap attributes = {};
};
struct GetQueueAttributesRequest {
  using Result = GetQueueAttributesResult;
  std::string queue_url = {};
  std::vector<std::string> attribute_names = {};  // "All" for all of them.
};

struct SetQueueAttributesResult {};
struct SetQueueAttributesRequest {
  using Result = SetQueueAttributesResult;
  std::string queue_url = {};
  StringMap attributes = {};
};

struct PurgeQueueResult {};
struct PurgeQueueRequest {
  using Result = PurgeQueueResult;
  std::string queue_url = {};
};

struct ListQueueTagsResult {
  StringMap tags = {};
};
struct ListQueueTagsRequest {
  using Result = ListQueueTagsResult;
  std::string queue_url = {};
};

struct TagQueueResult {};
struct TagQueueRequest {
  using Result = TagQueueResult;
  std::string queue_url = {};
  StringMap tags = {};
};

struct UntagQueueResult {};
struct UntagQueueRequest {
  using Result = UntagQueueResult;
  std::string queue_url = {};
  std::vector<std::string> tag_keys = {};
};

struct AddPermissionResult {};
struct AddPermissionRequest {
  using Result = AddPermissionResult;
  std::string queue_url = {};
  std::string label = {};
  std::vector<std::string> aws_account_ids = {};
  std::vector<std::string> actions = {};
};

struct RemovePermissionResult {};
struct RemovePermissionRequest {
  using Result = RemovePermissionResult;
  std::string queue_url = {};
  std::string label = {};
};

// Moving messages back from a dead-letter queue.

struct StartMessageMoveTaskResult {
  std::string task_handle = {};
};
struct StartMessageMoveTaskRequest {
  using Result = StartMessageMoveTaskResult;
  std::string source_arn = {};
  std::optional<std::string> destination_arn = {};
  std::optional<std::int64_t> max_number_of_messages_per_second = {};
};

struct CancelMessageMoveTaskResult {
  std::int64_t approximate_number_of_messages_moved = 0;
};
struct CancelMessageMoveTaskRequest {
  using Result = CancelMessageMoveTaskResult;
  std::string task_handle = {};
};

struct ListMessageMoveTasksResultEntry {
  std::optional<std::string> task_handle = {};  // Of running tasks only.
  std::string status = {};  // RUNNING, COMPLETED, CANCELLING, CANCELLED, FAILED.
  std::string source_arn = {};
  std::optional<std::string> destination_arn = {};
  std::optional<std::int64_t> max_number_of_messages_per_second = {};
  std::int64_t approximate_number_of_messages_moved = 0;
  std::optional<std::int64_t> approximate_number_of_messages_to_move = {};
  std::optional<std::string> failure_reason = {};
  std::int64_t started_timestamp = 0;  // Milliseconds since 1970.
};
struct ListMessageMoveTasksResult {
  std::vector<ListMessageMoveTasksResultEntry> results = {};
};
struct ListMessageMoveTasksRequest {
  using Result = ListMessageMoveTasksResult;
  std::string source_arn = {};
  std::optional<std::int64_t> max_results = {};
};

// Looking at a queue without changing it: Stanchion only, and not if the server is strict.

struct PeekedMessage {
  std::string message_id = {};
  std::string stanchion_position = {};  // With which a receive can choose it.
  std::string state = {};               // Visible, Delayed or InFlight.
  std::int64_t entered_timestamp = 0;   // Milliseconds since 1970, as the other times.
  std::int64_t expires_timestamp = 0;
  std::optional<std::int64_t> visible_timestamp = {};       // Unless it is visible.
  std::optional<std::int64_t> last_receive_timestamp = {};  // If it was ever received.
  std::string md5_of_body = {};
  std::string body = {};
  StringMap attributes = {};
  std::optional<std::string> md5_of_message_attributes = {};
  MessageAttributes message_attributes = {};
};
struct StanchionPeekResult {
  std::vector<PeekedMessage> messages = {};
  std::optional<std::string> next_token = {};  // There may be more, even if there are none here.
};
struct StanchionPeekRequest {
  using Result = StanchionPeekResult;
  std::string queue_url = {};
  std::vector<std::string> states = {};  // Empty: all.
  std::optional<std::string> message_group_id = {};
  std::optional<std::string> search = {};
  std::optional<std::int64_t> max_results = {};
  std::optional<std::string> next_token = {};
};

// A group of a FIFO queue, or a tenant of a fair one.
struct MessageGroup {
  std::string message_group_id = {};
  std::int64_t waiting = 0;
  std::int64_t delayed = 0;
  std::int64_t in_flight = 0;
  std::optional<std::int64_t> in_flight_percent = {};  // Fair queues, as the next two.
  std::optional<std::int64_t> busy_percent = {};
  std::optional<bool> noisy = {};
  std::optional<bool> locked = {};  // FIFO queues, as all that follow.
  std::optional<std::string> locked_by_sequence_number = {};
  std::optional<std::string> locked_by_message_id = {};
  std::optional<std::int64_t> locked_since_timestamp = {};
  std::optional<std::int64_t> locked_until_timestamp = {};
  std::optional<std::int64_t> locked_by_receive_count = {};
};
struct StanchionGroupsResult {
  std::vector<MessageGroup> groups = {};
  std::optional<std::string> next_token = {};
};
struct StanchionGroupsRequest {
  using Result = StanchionGroupsResult;
  std::string queue_url = {};
  std::optional<std::int64_t> max_results = {};
  std::optional<std::string> next_token = {};
};

// How queues could be used better.
struct QueueAdvice {
  std::string queue_url = {};
  std::string kind = {};
  std::string text = {};
  std::optional<std::string> command = {};
};
struct StanchionAdviceResult {
  std::vector<QueueAdvice> advice = {};
  std::optional<std::int64_t> left_out = {};  // How many more there are, about later queues.
};
struct StanchionAdviceRequest {
  using Result = StanchionAdviceResult;
};

}  // namespace stanchion::client
