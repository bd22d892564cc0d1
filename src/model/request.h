// What a client asks for, action by action, independent of the protocol.
//
// Members that a client may leave out are optional; values are as the client gave them. The engine
// validates them once it has found the queue, because SQS reports a missing queue first.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/action.h"
#include "model/ids.h"

namespace stanchion {

using StringMap = std::map<std::string, std::string, std::less<>>;

// A message attribute as the client gave it; it may turn out to be invalid.
struct MessageAttribute {
  std::string name;
  std::optional<std::string> data_type;
  std::optional<std::string> string_value;
  std::optional<std::string> binary_value;  // Decoded from base64.
  bool has_list_value = false;              // StringListValues or BinaryListValues were given.
};

struct AddPermission {
  QueueRef queue;
  std::optional<std::string> label;
  std::vector<std::string> account_ids;
  std::vector<std::string> actions;
};

struct CancelMessageMoveTask {
  std::optional<std::string> task_handle;
};

struct ChangeMessageVisibility {
  QueueRef queue;
  std::optional<std::string> receipt_handle;
  std::optional<std::int64_t> visibility_timeout;
};

struct ChangeMessageVisibilityBatch {
  struct Entry {
    std::optional<std::string> id;
    std::optional<std::string> receipt_handle;
    std::optional<std::int64_t> visibility_timeout;
  };
  QueueRef queue;
  std::vector<Entry> entries;
};

struct CreateQueue {
  QueueRef queue;
  StringMap attributes;
  StringMap tags;
};

struct DeleteMessage {
  QueueRef queue;
  std::optional<std::string> receipt_handle;
};

struct DeleteMessageBatch {
  struct Entry {
    std::optional<std::string> id;
    std::optional<std::string> receipt_handle;
  };
  QueueRef queue;
  std::vector<Entry> entries;
};

struct DeleteQueue {
  QueueRef queue;
};

struct GetQueueAttributes {
  QueueRef queue;
  std::vector<std::string> attribute_names;
};

struct GetQueueUrl {
  QueueRef queue;
};

struct ListDeadLetterSourceQueues {
  QueueRef queue;
  std::optional<std::int64_t> max_results;
  std::optional<std::string> next_token;
};

struct ListMessageMoveTasks {
  std::optional<std::string> source_arn;
  std::optional<std::int64_t> max_results;
};

struct ListQueueTags {
  QueueRef queue;
};

struct ListQueues {
  std::string account;
  std::string region;
  std::string prefix;
  std::optional<std::int64_t> max_results;
  std::optional<std::string> next_token;
};

struct PurgeQueue {
  QueueRef queue;
};

struct ReceiveMessage {
  QueueRef queue;
  // AttributeNames and MessageSystemAttributeNames together.
  std::vector<std::string> attribute_names;
  std::vector<std::string> message_attribute_names;
  std::optional<std::int64_t> max_number_of_messages;
  std::optional<std::int64_t> visibility_timeout;
  std::optional<std::int64_t> wait_time_seconds;
  std::optional<std::string> attempt_id;
  // Receives these messages instead of the next ones; positions as StanchionPeek shows them.
  std::vector<std::string> positions;
};

struct RemovePermission {
  QueueRef queue;
  std::optional<std::string> label;
};

// The members that SendMessage and each entry of SendMessageBatch have in common.
struct OutgoingMessage {
  std::optional<std::string> body;
  std::optional<std::int64_t> delay_seconds;
  std::vector<MessageAttribute> attributes;
  std::vector<MessageAttribute> system_attributes;
  std::optional<std::string> deduplication_id;
  std::optional<std::string> group_id;
};

struct SendMessage {
  QueueRef queue;
  std::string sender_id;  // The sender; set by the service from the caller's identity.
  OutgoingMessage message;
};

struct SendMessageBatch {
  struct Entry {
    std::optional<std::string> id;
    OutgoingMessage message;
  };
  QueueRef queue;
  std::string sender_id;
  std::vector<Entry> entries;
};

struct SetQueueAttributes {
  QueueRef queue;
  StringMap attributes;
};

// How the caller's queues could be used better. Answered by the service, not by a shard.
struct StanchionAdvice {
  std::string account;
  std::string region;
};

// The groups of a queue: those of a FIFO queue, or the tenants of a fair one.
struct StanchionGroups {
  QueueRef queue;
  std::optional<std::int64_t> max_results;
  std::optional<std::string> next_token;
};

// Messages of a queue, in whatever state, without receiving them.
struct StanchionPeek {
  QueueRef queue;
  std::vector<std::string> states;      // None: all.
  std::optional<std::string> group_id;  // Only messages of this group.
  std::optional<std::string> search;    // Only messages that contain this text.
  std::optional<std::int64_t> max_results;
  std::optional<std::string> next_token;
};

struct StartMessageMoveTask {
  std::optional<std::string> source_arn;
  std::optional<std::string> destination_arn;
  std::optional<std::int64_t> max_messages_per_second;
};

struct TagQueue {
  QueueRef queue;
  StringMap tags;
};

struct UntagQueue {
  QueueRef queue;
  std::vector<std::string> tag_keys;
};

// One alternative per action, in the order of the table of actions.
using Request = std::variant<
    AddPermission, CancelMessageMoveTask, ChangeMessageVisibility, ChangeMessageVisibilityBatch,
    CreateQueue, DeleteMessage, DeleteMessageBatch, DeleteQueue, GetQueueAttributes, GetQueueUrl,
    ListDeadLetterSourceQueues, ListMessageMoveTasks, ListQueueTags, ListQueues, PurgeQueue,
    ReceiveMessage, RemovePermission, SendMessage, SendMessageBatch, SetQueueAttributes,
    StanchionAdvice, StanchionGroups, StanchionPeek, StartMessageMoveTask, TagQueue, UntagQueue>;
static_assert(std::variant_size_v<Request> == kActionNames.size());

inline Action action_of(const Request& request) {
  return static_cast<Action>(request.index());
}

}  // namespace stanchion
