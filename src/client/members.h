// The members of every request and result on the wire, each described once: the JSON writer and the
// JSON reader iterate over these tables and contain nothing about single actions.
//
// The server's tables (wire/schema.h) describe its own types, in which a queue's URL has been
// parsed; json_test.cc keeps the two consistent by passing every request and reply through both.
#pragma once

#include <string_view>
#include <tuple>

#include "client/types.h"
#include "model/action.h"

namespace stanchion::client {

template <class Owner, class Type>
struct Member {
  std::string_view name;
  Type Owner::*member;
  bool base64 = false;
  bool may_lack = false;  // An answer may lack it, though its type cannot express that.
};

template <class Owner, class Type>
constexpr auto member(std::string_view name, Type Owner::*at) {
  return Member<Owner, Type>{name, at};
}
template <class Owner, class Type>
constexpr auto base64_member(std::string_view name, Type Owner::*at) {
  return Member<Owner, Type>{name, at, true};
}

template <class T>
struct Members {  // Of results without members.
  static constexpr auto list = std::tuple();
};

// The action of a request type.
template <class Request>
struct ActionOf;

#define STANCHION_CLIENT_ACTION(name, ...)           \
  template <>                                        \
  struct ActionOf<name##Request> {                   \
    static constexpr Action value = Action::k##name; \
  };
STANCHION_ACTIONS(STANCHION_CLIENT_ACTION)
#undef STANCHION_CLIENT_ACTION

template <>
struct Members<MessageAttributeValue> {
  using T = MessageAttributeValue;
  static constexpr auto list =
      std::tuple(member("DataType", &T::data_type), member("StringValue", &T::string_value),
                 base64_member("BinaryValue", &T::binary_value));
};

template <>
struct Members<BatchResultErrorEntry> {
  using T = BatchResultErrorEntry;
  static constexpr auto list =
      std::tuple(member("Id", &T::id), member("Code", &T::code),
                 Member<T, std::string>{"Message", &T::message, false, true},
                 member("SenderFault", &T::sender_fault));
};

template <>
struct Members<BatchResultEntry> {
  static constexpr auto list = std::tuple(member("Id", &BatchResultEntry::id));
};

template <>
struct Members<SendMessageRequest> {
  using T = SendMessageRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("MessageBody", &T::message_body),
                 member("DelaySeconds", &T::delay_seconds),
                 member("MessageAttributes", &T::message_attributes),
                 member("MessageSystemAttributes", &T::message_system_attributes),
                 member("MessageDeduplicationId", &T::message_deduplication_id),
                 member("MessageGroupId", &T::message_group_id));
};

template <>
struct Members<SendMessageResult> {
  using T = SendMessageResult;
  static constexpr auto list = std::tuple(
      member("MessageId", &T::message_id), member("MD5OfMessageBody", &T::md5_of_message_body),
      member("MD5OfMessageAttributes", &T::md5_of_message_attributes),
      member("MD5OfMessageSystemAttributes", &T::md5_of_message_system_attributes),
      member("SequenceNumber", &T::sequence_number));
};

template <>
struct Members<SendMessageBatchRequestEntry> {
  using T = SendMessageBatchRequestEntry;
  static constexpr auto list =
      std::tuple(member("Id", &T::id), member("MessageBody", &T::message_body),
                 member("DelaySeconds", &T::delay_seconds),
                 member("MessageAttributes", &T::message_attributes),
                 member("MessageSystemAttributes", &T::message_system_attributes),
                 member("MessageDeduplicationId", &T::message_deduplication_id),
                 member("MessageGroupId", &T::message_group_id));
};

template <>
struct Members<SendMessageBatchRequest> {
  using T = SendMessageBatchRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Entries", &T::entries));
};

template <>
struct Members<SendMessageBatchResultEntry> {
  using T = SendMessageBatchResultEntry;
  static constexpr auto list =
      std::tuple(member("Id", &T::id), member("MessageId", &T::message_id),
                 member("MD5OfMessageBody", &T::md5_of_message_body),
                 member("MD5OfMessageAttributes", &T::md5_of_message_attributes),
                 member("MD5OfMessageSystemAttributes", &T::md5_of_message_system_attributes),
                 member("SequenceNumber", &T::sequence_number));
};

template <>
struct Members<SendMessageBatchResult> {
  using T = SendMessageBatchResult;
  static constexpr auto list =
      std::tuple(member("Successful", &T::successful), member("Failed", &T::failed));
};

template <>
struct Members<Message> {
  using T = Message;
  static constexpr auto list =
      std::tuple(member("MessageId", &T::message_id), member("ReceiptHandle", &T::receipt_handle),
                 member("MD5OfBody", &T::md5_of_body), member("Body", &T::body),
                 member("Attributes", &T::attributes),
                 member("MD5OfMessageAttributes", &T::md5_of_message_attributes),
                 member("MessageAttributes", &T::message_attributes));
};

template <>
struct Members<ReceiveMessageRequest> {
  using T = ReceiveMessageRequest;
  static constexpr auto list = std::tuple(
      member("QueueUrl", &T::queue_url), member("MaxNumberOfMessages", &T::max_number_of_messages),
      member("WaitTimeSeconds", &T::wait_time_seconds),
      member("VisibilityTimeout", &T::visibility_timeout),
      member("MessageSystemAttributeNames", &T::message_system_attribute_names),
      member("MessageAttributeNames", &T::message_attribute_names),
      member("ReceiveRequestAttemptId", &T::receive_request_attempt_id),
      member("StanchionPositions", &T::stanchion_positions));
};

template <>
struct Members<ReceiveMessageResult> {
  static constexpr auto list = std::tuple(member("Messages", &ReceiveMessageResult::messages));
};

template <>
struct Members<DeleteMessageRequest> {
  using T = DeleteMessageRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("ReceiptHandle", &T::receipt_handle));
};

template <>
struct Members<DeleteMessageBatchRequestEntry> {
  using T = DeleteMessageBatchRequestEntry;
  static constexpr auto list =
      std::tuple(member("Id", &T::id), member("ReceiptHandle", &T::receipt_handle));
};

template <>
struct Members<DeleteMessageBatchRequest> {
  using T = DeleteMessageBatchRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Entries", &T::entries));
};

template <>
struct Members<DeleteMessageBatchResult> {
  using T = DeleteMessageBatchResult;
  static constexpr auto list =
      std::tuple(member("Successful", &T::successful), member("Failed", &T::failed));
};

template <>
struct Members<ChangeMessageVisibilityRequest> {
  using T = ChangeMessageVisibilityRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("ReceiptHandle", &T::receipt_handle),
                 member("VisibilityTimeout", &T::visibility_timeout));
};

template <>
struct Members<ChangeMessageVisibilityBatchRequestEntry> {
  using T = ChangeMessageVisibilityBatchRequestEntry;
  static constexpr auto list =
      std::tuple(member("Id", &T::id), member("ReceiptHandle", &T::receipt_handle),
                 member("VisibilityTimeout", &T::visibility_timeout));
};

template <>
struct Members<ChangeMessageVisibilityBatchRequest> {
  using T = ChangeMessageVisibilityBatchRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Entries", &T::entries));
};

template <>
struct Members<ChangeMessageVisibilityBatchResult> {
  using T = ChangeMessageVisibilityBatchResult;
  static constexpr auto list =
      std::tuple(member("Successful", &T::successful), member("Failed", &T::failed));
};

template <>
struct Members<CreateQueueRequest> {
  using T = CreateQueueRequest;
  static constexpr auto list =
      std::tuple(member("QueueName", &T::queue_name), member("Attributes", &T::attributes),
                 member("tags", &T::tags));
};

template <>
struct Members<CreateQueueResult> {
  static constexpr auto list = std::tuple(member("QueueUrl", &CreateQueueResult::queue_url));
};

template <>
struct Members<DeleteQueueRequest> {
  static constexpr auto list = std::tuple(member("QueueUrl", &DeleteQueueRequest::queue_url));
};

template <>
struct Members<GetQueueUrlRequest> {
  using T = GetQueueUrlRequest;
  static constexpr auto list =
      std::tuple(member("QueueName", &T::queue_name),
                 member("QueueOwnerAWSAccountId", &T::queue_owner_aws_account_id));
};

template <>
struct Members<GetQueueUrlResult> {
  static constexpr auto list = std::tuple(member("QueueUrl", &GetQueueUrlResult::queue_url));
};

template <>
struct Members<ListQueuesRequest> {
  using T = ListQueuesRequest;
  static constexpr auto list =
      std::tuple(member("QueueNamePrefix", &T::queue_name_prefix),
                 member("MaxResults", &T::max_results), member("NextToken", &T::next_token));
};

template <>
struct Members<ListQueuesResult> {
  using T = ListQueuesResult;
  static constexpr auto list =
      std::tuple(member("QueueUrls", &T::queue_urls), member("NextToken", &T::next_token));
};

template <>
struct Members<ListDeadLetterSourceQueuesRequest> {
  using T = ListDeadLetterSourceQueuesRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("MaxResults", &T::max_results),
                 member("NextToken", &T::next_token));
};

template <>
struct Members<ListDeadLetterSourceQueuesResult> {
  using T = ListDeadLetterSourceQueuesResult;
  static constexpr auto list =
      std::tuple(member("queueUrls", &T::queue_urls), member("NextToken", &T::next_token));
};

template <>
struct Members<GetQueueAttributesRequest> {
  using T = GetQueueAttributesRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("AttributeNames", &T::attribute_names));
};

template <>
struct Members<GetQueueAttributesResult> {
  static constexpr auto list =
      std::tuple(member("Attributes", &GetQueueAttributesResult::attributes));
};

template <>
struct Members<SetQueueAttributesRequest> {
  using T = SetQueueAttributesRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Attributes", &T::attributes));
};

template <>
struct Members<PurgeQueueRequest> {
  static constexpr auto list = std::tuple(member("QueueUrl", &PurgeQueueRequest::queue_url));
};

template <>
struct Members<ListQueueTagsRequest> {
  static constexpr auto list = std::tuple(member("QueueUrl", &ListQueueTagsRequest::queue_url));
};

template <>
struct Members<ListQueueTagsResult> {
  static constexpr auto list = std::tuple(member("Tags", &ListQueueTagsResult::tags));
};

template <>
struct Members<TagQueueRequest> {
  using T = TagQueueRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Tags", &T::tags));
};

template <>
struct Members<UntagQueueRequest> {
  using T = UntagQueueRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("TagKeys", &T::tag_keys));
};

template <>
struct Members<AddPermissionRequest> {
  using T = AddPermissionRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Label", &T::label),
                 member("AWSAccountIds", &T::aws_account_ids), member("Actions", &T::actions));
};

template <>
struct Members<RemovePermissionRequest> {
  using T = RemovePermissionRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Label", &T::label));
};

template <>
struct Members<StartMessageMoveTaskRequest> {
  using T = StartMessageMoveTaskRequest;
  static constexpr auto list =
      std::tuple(member("SourceArn", &T::source_arn), member("DestinationArn", &T::destination_arn),
                 member("MaxNumberOfMessagesPerSecond", &T::max_number_of_messages_per_second));
};

template <>
struct Members<StartMessageMoveTaskResult> {
  static constexpr auto list =
      std::tuple(member("TaskHandle", &StartMessageMoveTaskResult::task_handle));
};

template <>
struct Members<CancelMessageMoveTaskRequest> {
  static constexpr auto list =
      std::tuple(member("TaskHandle", &CancelMessageMoveTaskRequest::task_handle));
};

template <>
struct Members<CancelMessageMoveTaskResult> {
  using T = CancelMessageMoveTaskResult;
  static constexpr auto list = std::tuple(
      member("ApproximateNumberOfMessagesMoved", &T::approximate_number_of_messages_moved));
};

template <>
struct Members<ListMessageMoveTasksRequest> {
  using T = ListMessageMoveTasksRequest;
  static constexpr auto list =
      std::tuple(member("SourceArn", &T::source_arn), member("MaxResults", &T::max_results));
};

template <>
struct Members<ListMessageMoveTasksResultEntry> {
  using T = ListMessageMoveTasksResultEntry;
  static constexpr auto list = std::tuple(
      member("TaskHandle", &T::task_handle), member("Status", &T::status),
      member("SourceArn", &T::source_arn), member("DestinationArn", &T::destination_arn),
      member("MaxNumberOfMessagesPerSecond", &T::max_number_of_messages_per_second),
      member("ApproximateNumberOfMessagesMoved", &T::approximate_number_of_messages_moved),
      member("ApproximateNumberOfMessagesToMove", &T::approximate_number_of_messages_to_move),
      member("FailureReason", &T::failure_reason),
      member("StartedTimestamp", &T::started_timestamp));
};

template <>
struct Members<ListMessageMoveTasksResult> {
  static constexpr auto list = std::tuple(member("Results", &ListMessageMoveTasksResult::results));
};

template <>
struct Members<PeekedMessage> {
  using T = PeekedMessage;
  static constexpr auto list =
      std::tuple(member("MessageId", &T::message_id),
                 Member<T, std::string>{"StanchionPosition", &T::stanchion_position, false, true},
                 member("State", &T::state), member("EnteredTimestamp", &T::entered_timestamp),
                 member("ExpiresTimestamp", &T::expires_timestamp),
                 member("VisibleTimestamp", &T::visible_timestamp),
                 member("LastReceiveTimestamp", &T::last_receive_timestamp),
                 member("MD5OfBody", &T::md5_of_body), member("Body", &T::body),
                 member("Attributes", &T::attributes),
                 member("MD5OfMessageAttributes", &T::md5_of_message_attributes),
                 member("MessageAttributes", &T::message_attributes));
};

template <>
struct Members<StanchionPeekRequest> {
  using T = StanchionPeekRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("States", &T::states),
                 member("MessageGroupId", &T::message_group_id), member("Search", &T::search),
                 member("MaxResults", &T::max_results), member("NextToken", &T::next_token));
};

template <>
struct Members<StanchionPeekResult> {
  using T = StanchionPeekResult;
  static constexpr auto list =
      std::tuple(member("Messages", &T::messages), member("NextToken", &T::next_token));
};

template <>
struct Members<MessageGroup> {
  using T = MessageGroup;
  static constexpr auto list = std::tuple(
      member("MessageGroupId", &T::message_group_id), member("Waiting", &T::waiting),
      member("Delayed", &T::delayed), member("InFlight", &T::in_flight),
      member("InFlightPercent", &T::in_flight_percent), member("BusyPercent", &T::busy_percent),
      member("Noisy", &T::noisy), member("Locked", &T::locked),
      member("LockedBySequenceNumber", &T::locked_by_sequence_number),
      member("LockedByMessageId", &T::locked_by_message_id),
      member("LockedSinceTimestamp", &T::locked_since_timestamp),
      member("LockedUntilTimestamp", &T::locked_until_timestamp),
      member("LockedByReceiveCount", &T::locked_by_receive_count));
};

template <>
struct Members<StanchionGroupsRequest> {
  using T = StanchionGroupsRequest;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("MaxResults", &T::max_results),
                 member("NextToken", &T::next_token));
};

template <>
struct Members<StanchionGroupsResult> {
  using T = StanchionGroupsResult;
  static constexpr auto list =
      std::tuple(member("Groups", &T::groups), member("NextToken", &T::next_token));
};

template <>
struct Members<QueueAdvice> {
  using T = QueueAdvice;
  static constexpr auto list =
      std::tuple(member("QueueUrl", &T::queue_url), member("Kind", &T::kind),
                 member("Text", &T::text), member("Command", &T::command));
};

template <>
struct Members<StanchionAdviceResult> {
  using T = StanchionAdviceResult;
  static constexpr auto list =
      std::tuple(member("Advice", &T::advice), member("LeftOut", &T::left_out));
};

}  // namespace stanchion::client
