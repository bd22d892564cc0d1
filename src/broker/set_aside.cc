#include "broker/set_aside.h"

#include <fmt/format.h>

namespace stanchion::broker {
namespace {

bool needs_messages(Action action) {
  switch (action) {
    case Action::kChangeMessageVisibility:
    case Action::kChangeMessageVisibilityBatch:
    case Action::kDeleteMessage:
    case Action::kDeleteMessageBatch:
    case Action::kReceiveMessage:
    case Action::kSendMessage:
    case Action::kSendMessageBatch:
    case Action::kSetQueueAttributes:
    case Action::kStartMessageMoveTask:
      return true;
    case Action::kAddPermission:
    case Action::kCancelMessageMoveTask:
    case Action::kCreateQueue:
    case Action::kDeleteQueue:
    case Action::kGetQueueAttributes:
    case Action::kGetQueueUrl:
    case Action::kListDeadLetterSourceQueues:
    case Action::kListMessageMoveTasks:
    case Action::kListQueueTags:
    case Action::kListQueues:
    case Action::kPurgeQueue:
    case Action::kRemovePermission:
    case Action::kTagQueue:
    case Action::kUntagQueue:
      return false;
  }
  return true;
}

}  // namespace

bool SetAside::add(QueueId queue, const Failure& why) {
  return queues_.emplace(queue, why.message).second;
}

std::optional<Error> SetAside::refusal(Action action, QueueId queue) const {
  if (!contains(queue) || !needs_messages(action)) return std::nullopt;
  return refusal(queue);
}

Error SetAside::refusal(QueueId queue) const {
  return {ErrorCode::kInternalFailure,
          fmt::format("This queue is set aside, because messages of it that are on the server's "
                      "disk cannot be read: {}. This request changed nothing. The operator of the "
                      "server can restore a backup; purging or deleting the queue gives up its "
                      "messages.",
                      queues_.at(queue))};
}

}  // namespace stanchion::broker
