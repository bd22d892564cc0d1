#include "broker/admission.h"

#include <fmt/format.h>

namespace stanchion::broker {
namespace {

using journal::Room;

Reply unavailable(std::string message) {
  return refuse(ErrorCode::kServiceUnavailable, std::move(message));
}

}  // namespace

bool is_admitted(Action action, Room room) {
  const Effect effect = traits_of(action).effect;
  switch (room) {
    case Room::kPlenty:
      return true;
    case Room::kReserveOnly:
      return effect != Effect::kWrites;
    case Room::kBusy:
    case Room::kNone:
      return effect == Effect::kReads;
  }
  return false;
}

bool is_send(Action action) {
  return action == Action::kSendMessage || action == Action::kSendMessageBatch;
}

bool changes_settings(Action action) {
  return action == Action::kCreateQueue || action == Action::kDeleteQueue ||
         action == Action::kSetQueueAttributes || action == Action::kTagQueue ||
         action == Action::kUntagQueue || action == Action::kAddPermission ||
         action == Action::kRemovePermission || action == Action::kStartMessageMoveTask;
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

Reply too_many_answers() {
  return unavailable(
      "Stanchion has more answers under way than there is memory for (limits.memory). This request "
      "changed nothing. Try again in a moment, and read what was asked for.");
}

Reply too_many_ids(const std::string& queue) {
  return refuse(
      ErrorCode::kRequestThrottled,
      fmt::format("Stanchion's memory is full, most of what the queue {} takes being deduplication "
                  "ids, which are remembered for five minutes. This request changed nothing. Send "
                  "more slowly, or give the server more --memory (docs/operations.md, Memory), and "
                  "try again.",
                  queue));
}

Reply too_many_attempts() {
  return refuse(
      ErrorCode::kRequestThrottled,
      "Stanchion's memory is full, so that one more ReceiveRequestAttemptId cannot be remembered. "
      "This request changed nothing. Delete messages that were received, or receive without such "
      "an id, and try again.");
}

Reply account_takes_too_much(const std::string& account) {
  return unavailable(fmt::format(
      "Stanchion's memory is full, and account {} takes more than its share of it "
      "(limits.memory_share_per_account). Nothing was lost and this request changed nothing. "
      "Receive and delete messages of this account, and try again.",
      account));
}

Reply log_is_too_slow() {
  return unavailable(
      "Kafka, which holds Stanchion's log, does not keep up with the requests. This one changed "
      "nothing. Try again in a moment, with fewer requests at a time.");
}

Reply log_does_not_answer() {
  return unavailable(
      "Kafka, which holds Stanchion's log, did not answer within fleet.write_timeout, and without "
      "it nobody knows whether this node still serves the queue. This request changed nothing. Try "
      "again in a moment.");
}

Reply shard_has_moved() {
  return refuse(
      ErrorCode::kShardHasMoved,
      "Another node serves this queue now. This request changed nothing. Try again in a moment.");
}

Reply outcome_is_unknown() {
  return refuse(ErrorCode::kInternalFailure,
                "The node that served this queue was replaced. Whether this request was executed "
                "is not known: look, or try again.");
}

Reply log_has_not_confirmed() {
  return refuse(
      ErrorCode::kInternalFailure,
      "Kafka, which holds Stanchion's log, did not confirm this request within "
      "fleet.write_timeout. Whether it was executed, or will be when Kafka answers again, "
      "is not known: look, or try again.");
}

Reply server_is_stopping() {
  return unavailable("Stanchion is stopping. This request changed nothing. Try again in a moment.");
}

}  // namespace stanchion::broker
