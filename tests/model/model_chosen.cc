// The model's receive of chosen messages.
#include <fmt/format.h>

#include <algorithm>

#include "tests/model/reference_model.h"

namespace stanchion::reference {

using std::chrono::seconds;
using Where = Message::Where;

// A FIFO queue gives only what any receive could get, or what follows in a group that this one has
// already taken from.
bool Model::may_be_chosen(const Queue& queue, const Message& message,
                          const std::set<std::uint64_t>& taken) const {
  if (message.where != Where::kReady) return false;
  if (!queue.fifo) return true;
  return queue.first_waiting(message.group) == &message &&
         !comes_after_one_away(queue, message, taken);
}

std::vector<std::uint64_t> Model::take_chosen(Queue& queue, const std::vector<Sighting>& chosen,
                                              Instant due) {
  std::set<std::uint64_t> places;
  for (const Sighting& sighting : chosen) places.insert(sighting.place);
  std::vector<std::uint64_t> out;
  std::set<std::uint64_t> taken;
  for (const std::uint64_t place : places) {
    Message* message = queue.at(place);
    if (message == nullptr || !may_be_chosen(queue, *message, taken)) {
      note("a chosen message could not be received");
      continue;
    }
    if (leaves(queue, *message)) {
      note("a chosen message was a dead letter");
      depart(queue, place, queue.redrive->target, TransferReason::kDeadLetter, 0);
      continue;
    }
    if (!queue.fifo && queue.first_waiting(message->group) != message)
      note("a chosen message was not the first");
    note("a chosen message was received");
    // A tenant that is chosen is served out of turn.
    std::erase_if(queue.newcomers,
                  [&](const auto& newcomer) { return newcomer.group == message->group; });
    taken.insert(place);
    take_one(queue, *message, due);
    out.push_back(place);
  }
  queue.forget_newcomers();
  return out;
}

void Model::receive_chosen(const ReceiveMessage& request, const std::vector<Sighting>& chosen,
                           const Reply& got, const std::vector<Transfer>& left) {
  Queue* queue = find(request.queue.name);
  if (queue == nullptr) {
    refused({no_queue()}, got);
    return;
  }
  std::vector<Expected> wrong;
  const std::int64_t visibility = request.visibility_timeout.value_or(queue->visibility);
  if (visibility < 0 || visibility > 43'200)
    wrong.push_back(wrong_value(fmt::to_string(visibility), "VisibilityTimeout",
                                "Must be >= 0 and <= 43200, if provided."));
  if (chosen.size() > 10)
    wrong.push_back(
        {ErrorCode::kInvalidParameterValue,
         "Value for parameter StanchionPositions is invalid. Reason: Must not have more "
         "than 10 entries."});
  if (std::ranges::any_of(chosen, [&](const Sighting& s) { return s.queue != queue->number; }))
    wrong.push_back(
        {ErrorCode::kInvalidParameterValue,
         "Value for parameter StanchionPositions is invalid. Reason: It is not one that "
         "StanchionPeek has shown for this queue; look at the queue again."});
  if (refused(wrong, got)) return;
  const auto& messages = value_of<ReceiveMessageResult>(got).messages;
  const std::size_t passages = passages_.size();
  const auto taken = take_chosen(*queue, chosen, now_ + seconds(visibility));
  compare_departures(passages, left);
  require(messages.size() == taken.size(),
          fmt::format("{} chosen messages instead of {}", messages.size(), taken.size()));
  for (std::size_t i = 0; i < taken.size(); ++i) {
    Message& message = *queue->at(taken[i]);
    check_received(*queue, message, messages[i]);
    const std::string& handle = messages[i].receipt_handle;
    require(handles_.insert(handle).second, "every receive has its own receipt");
    receipts_.push_back({handle, queue->name, queue->number, message.place, message.receive_count});
  }
}

}  // namespace stanchion::reference
