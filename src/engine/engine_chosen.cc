// Receives messages that the client chooses, instead of the next ones.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/rules/validation.h"
#include "model/limits.h"
#include "model/message_position.h"

namespace stanchion::engine {
namespace {

// The lanes from which this receive has taken messages: as for any receive, these do not hold back
// later messages of their lane.
class Holds {
 public:
  Hold of(const Lane& lane) const {
    const auto found = std::ranges::find(holds_, &lane, &Hold::lane);
    return found == holds_.end() ? Hold() : *found;
  }
  void add(const Lane& lane) {
    if (of(lane).lane == nullptr) holds_.emplace_back(lane);
  }
  void remove(const Lane& lane) {
    std::erase_if(holds_, [&](const Hold& hold) { return hold.lane == &lane; });
  }

 private:
  std::vector<Hold> holds_;
};

// Whether everything that may be received is in memory. Nothing is taken before all of it is, and
// what is there must not be evicted while the rest is read.
bool are_there(const std::vector<MessagePosition>& chosen, Queue& queue, Instant now) {
  bool there = true;
  std::vector<std::string_view> begun;  // Groups of which an earlier message may be received.
  for (const MessagePosition& position : chosen) {
    const bool first = std::ranges::find(begun, position.group) == begun.end();
    if (!queue.stock().may_come(position.seq, position.group, first)) continue;
    begun.push_back(position.group);
    if (queue.look_for(position.seq, true, &position.group) == Presence::kAskedFor) there = false;
  }
  if (there) return true;
  queue.hold(now);
  for (const MessagePosition& position : chosen) queue.stock().residency().await(position.seq);
  return false;
}

}  // namespace

Answer<std::vector<MessagePosition>> Engine::chosen_by(const ReceiveMessage& request,
                                                       const Queue& queue) const {
  if (request.positions.size() > limits::kPositionsMax)
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Value for parameter StanchionPositions is invalid. Reason: Must not "
                              "have more than {} entries.",
                              limits::kPositionsMax));
  if (request.attempt_id)
    return refuse(ErrorCode::kInvalidParameterValue,
                  "Value for parameter ReceiveRequestAttemptId is invalid. Reason: Must not be "
                  "given together with StanchionPositions.");
  std::vector<MessagePosition> chosen;
  for (const std::string& text : request.positions) {
    auto position = parse_position(text, receipt_key_);
    if (!position || position->queue != queue.id)
      return refuse(ErrorCode::kInvalidParameterValue,
                    "Value for parameter StanchionPositions is invalid. Reason: It is not one that "
                    "StanchionPeek has shown for this queue; look at the queue again.");
    chosen.push_back(std::move(*position));
  }
  // Messages of a group are taken in order.
  std::ranges::sort(chosen);
  const auto repeated = std::ranges::unique(chosen);
  chosen.erase(repeated.begin(), repeated.end());
  return chosen;
}

Answer<ReceiveMessageResult> Engine::receive_chosen(Queue& queue, const ReceiveMessage& request,
                                                    Duration visibility, Decision& decision) {
  const auto chosen = chosen_by(request, queue);
  if (!chosen) return std::unexpected(chosen.error());
  ReceiveMessageResult result;
  if (!are_there(*chosen, queue, decision.now)) {
    touch(queue);  // It is held, until a deadline.
    decision.blocked = true;
    return result;
  }
  MessagesChosen places{queue.id, {}};
  MessagesReceived received{queue.id, {}, {}};
  MessagesLeft left{queue.id, TransferReason::kDeadLetter, {}, {}};
  Holds holds;
  bool full = false;
  for (const MessagePosition& position : *chosen) {
    if (position.seq >= queue.next_seq()) decision.newer_receipt_seen = true;
    Message* message = queue.find(position.seq);
    if (message == nullptr || !queue.stock().may_be_taken(*message, holds.of(*message->lane)))
      continue;
    CHECK(message->content != nullptr, "what may be taken was brought into memory");
    // The server was restored from an older copy, and has given the number again.
    if (message->content->id() != position.id) continue;
    full = queue.counts().in_flight >= limits::kInFlightMax;
    if (full) break;
    const bool leaves = !decision.nothing_leaves && is_dead_letter(queue, *message);
    if (leaves && !may_leave_or_wait(queue)) continue;
    places.items.push_back({position.seq, position.group});
    if (leaves) {
      holds.remove(*message->lane);
      leave_as_dead_letter(queue, *message, left, decision.now);
      continue;
    }
    holds.add(*message->lane);
    result.messages.push_back(take(queue, *message, visibility, received, decision));
  }
  // On a FIFO queue each was the first of its group, which is where replay looks for it.
  if (!places.items.empty() && !queue.fifo()) decision.record.add(places);
  record_receive(queue, left, received, decision);
  if (full && result.messages.empty()) return std::unexpected(too_many_in_flight());
  return result;
}

}  // namespace stanchion::engine
