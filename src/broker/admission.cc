#include "broker/admission.h"

namespace stanchion::broker {
namespace {

using journal::Room;

// What helps to drain a full disk, or writes nothing.
bool is_draining_action(Action action) {
  switch (action) {
    case Action::kChangeMessageVisibility:
    case Action::kChangeMessageVisibilityBatch:
    case Action::kDeleteMessage:
    case Action::kDeleteMessageBatch:
    case Action::kDeleteQueue:
    case Action::kPurgeQueue:
    case Action::kReceiveMessage:
    case Action::kCancelMessageMoveTask:
      return true;
    case Action::kAddPermission:
    case Action::kCreateQueue:
    case Action::kGetQueueAttributes:
    case Action::kGetQueueUrl:
    case Action::kListDeadLetterSourceQueues:
    case Action::kListMessageMoveTasks:
    case Action::kListQueueTags:
    case Action::kListQueues:
    case Action::kRemovePermission:
    case Action::kSendMessage:
    case Action::kSendMessageBatch:
    case Action::kSetQueueAttributes:
    case Action::kStartMessageMoveTask:
    case Action::kTagQueue:
    case Action::kUntagQueue:
      return false;
  }
  return false;
}

bool is_reading_action(Action action) {
  switch (action) {
    case Action::kGetQueueAttributes:
    case Action::kGetQueueUrl:
    case Action::kListDeadLetterSourceQueues:
    case Action::kListMessageMoveTasks:
    case Action::kListQueueTags:
    case Action::kListQueues:
      return true;
    default:
      return false;
  }
}

Reply unavailable(std::string message) {
  return refuse(ErrorCode::kServiceUnavailable, std::move(message));
}

}  // namespace

bool is_admitted(Action action, Room room) {
  switch (room) {
    case Room::kPlenty:
      return true;
    case Room::kReserveOnly:
      return is_draining_action(action) || is_reading_action(action);
    case Room::kBusy:
    case Room::kNone:
      return is_reading_action(action);
  }
  return false;
}

bool is_send(Action action) {
  return action == Action::kSendMessage || action == Action::kSendMessageBatch;
}

Reply disk_is_full() {
  return unavailable(
      "The disk that holds Stanchion's data is full. Nothing was lost and this request changed "
      "nothing. Free some space, or receive and delete messages, and try again.");
}

Reply disk_is_too_slow() {
  return unavailable(
      "The disk that holds Stanchion's data does not keep up with the requests. This one changed "
      "nothing. Try again in a moment, with fewer requests at a time.");
}

Reply memory_is_full() {
  return unavailable(
      "Stanchion's memory is full of messages and message groups that wait. Nothing was lost and "
      "this request changed nothing. Receive and delete messages, or give the server more --memory "
      "(docs/operations.md, Memory), and try again.");
}

Reply server_is_stopping() {
  return unavailable("Stanchion is stopping. This request changed nothing. Try again in a moment.");
}

}  // namespace stanchion::broker
