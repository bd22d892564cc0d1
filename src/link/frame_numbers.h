// The numbers of frames, requests and replies between nodes, which stay what they are whatever is
// added to the model, and the values of its enums. An alternative without a number does not compile.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "fleet/transport.h"
#include "model/queue_attributes.h"
#include "model/reply.h"
#include "model/request.h"
#include "model/transfer.h"

namespace stanchion::link {

template <class T>
inline constexpr std::uint8_t kNumberOf = 0;

#define STANCHION_NUMBER(Type, number) \
  template <>                          \
  inline constexpr std::uint8_t kNumberOf<Type> = number;

STANCHION_NUMBER(fleet::Forward, 1)
STANCHION_NUMBER(fleet::Answered, 2)
STANCHION_NUMBER(fleet::Cancel, 3)
STANCHION_NUMBER(fleet::Ask, 4)
STANCHION_NUMBER(fleet::Told, 5)
STANCHION_NUMBER(fleet::Deliver, 6)
STANCHION_NUMBER(fleet::Verdict, 7)

STANCHION_NUMBER(AddPermission, 1)
STANCHION_NUMBER(CancelMessageMoveTask, 2)
STANCHION_NUMBER(ChangeMessageVisibility, 3)
STANCHION_NUMBER(ChangeMessageVisibilityBatch, 4)
STANCHION_NUMBER(CreateQueue, 5)
STANCHION_NUMBER(DeleteMessage, 6)
STANCHION_NUMBER(DeleteMessageBatch, 7)
STANCHION_NUMBER(DeleteQueue, 8)
STANCHION_NUMBER(GetQueueAttributes, 9)
STANCHION_NUMBER(GetQueueUrl, 10)
STANCHION_NUMBER(ListDeadLetterSourceQueues, 11)
STANCHION_NUMBER(ListMessageMoveTasks, 12)
STANCHION_NUMBER(ListQueueTags, 13)
STANCHION_NUMBER(ListQueues, 14)
STANCHION_NUMBER(PurgeQueue, 15)
STANCHION_NUMBER(ReceiveMessage, 16)
STANCHION_NUMBER(RemovePermission, 17)
STANCHION_NUMBER(SendMessage, 18)
STANCHION_NUMBER(SendMessageBatch, 19)
STANCHION_NUMBER(SetQueueAttributes, 20)
STANCHION_NUMBER(StanchionAdvice, 21)
STANCHION_NUMBER(StanchionGroups, 22)
STANCHION_NUMBER(StanchionPeek, 23)
STANCHION_NUMBER(StartMessageMoveTask, 24)
STANCHION_NUMBER(TagQueue, 25)
STANCHION_NUMBER(UntagQueue, 26)

STANCHION_NUMBER(NoResult, 1)
STANCHION_NUMBER(QueueUrlResult, 2)
STANCHION_NUMBER(QueueListResult, 3)
STANCHION_NUMBER(QueueAttributesResult, 4)
STANCHION_NUMBER(QueueTagsResult, 5)
STANCHION_NUMBER(SentMessage, 6)
STANCHION_NUMBER(SendMessageBatchResult, 7)
STANCHION_NUMBER(ReceiveMessageResult, 8)
STANCHION_NUMBER(BatchResult, 9)
STANCHION_NUMBER(StartMessageMoveTaskResult, 10)
STANCHION_NUMBER(CancelMessageMoveTaskResult, 11)
STANCHION_NUMBER(ListMessageMoveTasksResult, 12)
STANCHION_NUMBER(StanchionPeekResult, 13)
STANCHION_NUMBER(StanchionGroupsResult, 14)
STANCHION_NUMBER(StanchionAdviceResult, 15)
#undef STANCHION_NUMBER

template <class... T>
consteval bool are_numbered(std::type_identity<std::variant<T...>>) {
  std::array<bool, 256> taken{};
  taken[0] = true;
  return (... && !std::exchange(taken[kNumberOf<T>], true));
}
static_assert(are_numbered(std::type_identity<fleet::Frame>()));
static_assert(are_numbered(std::type_identity<Request>()));
static_assert(are_numbered(std::type_identity<ReplyValue>()));

// Whether the value is one of the enum's; written without `default`, so that a new one is not
// forgotten.
constexpr bool is_known(MoveTaskStatus v) {
  switch (v) {
    case MoveTaskStatus::kRunning:
    case MoveTaskStatus::kCompleted:
    case MoveTaskStatus::kCancelling:
    case MoveTaskStatus::kCancelled:
    case MoveTaskStatus::kFailed:
      return true;
  }
  return false;
}
constexpr bool is_known(PeekedState v) {
  switch (v) {
    case PeekedState::kVisible:
    case PeekedState::kDelayed:
    case PeekedState::kInFlight:
      return true;
  }
  return false;
}
constexpr bool is_known(TransferReason v) {
  switch (v) {
    case TransferReason::kDeadLetter:
    case TransferReason::kRedrive:
      return true;
  }
  return false;
}
constexpr bool is_known(TransferVerdict v) {
  switch (v) {
    case TransferVerdict::kAccepted:
    case TransferVerdict::kRefused:
      return true;
  }
  return false;
}
constexpr bool is_known(RedriveAllowPolicy::Permission v) {
  switch (v) {
    case RedriveAllowPolicy::Permission::kAllowAll:
    case RedriveAllowPolicy::Permission::kDenyAll:
    case RedriveAllowPolicy::Permission::kByQueue:
      return true;
  }
  return false;
}

}  // namespace stanchion::link
