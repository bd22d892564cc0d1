// What a client gets, action by action. Queues are named by QueueRef; the service makes URLs of
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/time.h"
#include "model/content.h"
#include "model/error.h"
#include "model/ids.h"
#include "model/request.h"

namespace stanchion {

struct NoResult {};  // The action succeeded and returns nothing.

struct QueueUrlResult {  // CreateQueue, GetQueueUrl
  QueueRef queue;
};

struct QueueListResult {  // ListQueues, ListDeadLetterSourceQueues
  std::vector<QueueRef> queues;
  std::optional<std::string> next_token;
};

struct QueueAttributesResult {
  StringMap attributes;
};

struct QueueTagsResult {
  StringMap tags;
};

struct SentMessage {
  MessageId id;
  Md5 body_md5{};
  std::optional<Md5> attributes_md5;
  std::optional<Md5> system_attributes_md5;
  std::optional<Seq> sequence_number;  // FIFO only.
};

struct BatchFailure {
  std::string id;
  Error error;
};

struct SendMessageBatchResult {
  struct Success {
    std::string id;
    SentMessage message;
  };
  std::vector<Success> successful;
  std::vector<BatchFailure> failed;
};

struct ReceivedMessage {
  ContentPtr content;
  std::string receipt_handle;
  std::uint32_t receive_count = 0;
  Instant first_received;
  std::optional<Seq> sequence_number;  // FIFO only.
};

struct ReceiveMessageResult {
  std::vector<ReceivedMessage> messages;
  // How long this receive may wait for a message; the broker parks it while `messages` is empty.
  Duration wait{};
};

struct BatchResult {  // DeleteMessageBatch, ChangeMessageVisibilityBatch
  std::vector<std::string> successful;
  std::vector<BatchFailure> failed;
};

struct StartMessageMoveTaskResult {
  std::string task_handle;
};

struct CancelMessageMoveTaskResult {
  std::uint64_t moved = 0;
};

enum class MoveTaskStatus : std::uint8_t {
  kRunning = 1,
  kCompleted = 2,
  kCancelling = 3,
  kCancelled = 4,
  kFailed = 5,
};

struct ListMessageMoveTasksResult {
  struct Task {
    std::optional<std::string> task_handle;  // Running tasks only.
    MoveTaskStatus status = MoveTaskStatus::kRunning;
    std::string source_arn;
    std::optional<std::string> destination_arn;
    std::optional<std::int64_t> max_messages_per_second;
    std::uint64_t moved = 0;
    std::uint64_t to_move = 0;
    std::optional<std::string> failure_reason;
    Instant started;
  };
  std::vector<Task> tasks;  // Newest first.
};

using ReplyValue = std::variant<NoResult, QueueUrlResult, QueueListResult, QueueAttributesResult,
                                QueueTagsResult, SentMessage, SendMessageBatchResult,
                                ReceiveMessageResult, BatchResult, StartMessageMoveTaskResult,
                                CancelMessageMoveTaskResult, ListMessageMoveTasksResult>;

using Reply = Answer<ReplyValue>;

}  // namespace stanchion
