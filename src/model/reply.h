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

enum class PeekedState : std::uint8_t { kVisible, kDelayed, kInFlight };

struct PeekedMessage {
  ContentPtr content;
  PeekedState state = PeekedState::kVisible;
  Instant entered;  // When it came into this queue.
  Instant expires;
  Instant due;             // Delayed or in flight: when it becomes visible.
  Instant received;        // The last time; 0 if it never was, or is not known any more.
  Instant first_received;  // Valid if receive_count > 0.
  std::uint32_t receive_count = 0;
  std::optional<Seq> sequence_number;  // FIFO only.
  std::string position;                // With which a ReceiveMessage can choose it.
};

struct StanchionPeekResult {
  std::vector<PeekedMessage> messages;
  std::optional<std::string> next_token;  // There may be more, even if there are no messages here.
};

struct StanchionGroupsResult {
  // The message that locks a FIFO group: nothing behind it may be received.
  struct Lock {
    Seq sequence_number;
    std::optional<MessageId> message;  // If it is in memory.
    Instant received;
    Instant until;
    std::uint32_t receive_count = 0;
  };
  struct Group {
    std::string id;  // Empty: the messages without a group.
    std::uint64_t waiting = 0;
    std::uint64_t delayed = 0;  // On FIFO queues delayed messages are among those waiting.
    std::uint64_t in_flight = 0;
    std::optional<Lock> lock;
    // Fair queues: its part of the messages in flight, and of the recent time of consumers.
    std::uint32_t in_flight_percent = 0;
    std::uint32_t busy_percent = 0;
    bool noisy = false;
  };
  bool fifo = false;
  std::vector<Group> groups;
  std::optional<std::string> next_token;
};

struct StanchionAdviceResult {
  struct Advice {
    QueueRef queue;
    std::string kind;     // One word per kind, as VisibilityLoop.
    std::string text;     // What was seen, and what it costs.
    std::string command;  // A call of the AWS CLI that mends it; empty: it is the client's to mend.
  };
  std::vector<Advice> advice;
  std::uint64_t left_out = 0;  // How many more there are, about later queues.
};

using ReplyValue = std::variant<NoResult, QueueUrlResult, QueueListResult, QueueAttributesResult,
                                QueueTagsResult, SentMessage, SendMessageBatchResult,
                                ReceiveMessageResult, BatchResult, StartMessageMoveTaskResult,
                                CancelMessageMoveTaskResult, ListMessageMoveTasksResult,
                                StanchionPeekResult, StanchionGroupsResult, StanchionAdviceResult>;

using Reply = Answer<ReplyValue>;

}  // namespace stanchion
