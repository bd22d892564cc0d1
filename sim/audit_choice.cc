// What the auditor checks about a receive that chooses its messages.
#include <fmt/format.h>

#include <algorithm>

#include "sim/auditor.h"

namespace stanchion::sim {

// That what it got was there to be received, as any receive must, is checked elsewhere.
void Auditor::check_choice(const Call& call, const ReceiveMessage& r,
                           const ReceiveMessageResult& result) {
  ++statistics_.choices;
  statistics_.chosen += result.messages.size();
  // Not by message: one that went to a dead-letter queue and came back has another id and position,
  // and both may be chosen.
  std::map<MessageId, const Message*> wanted;
  for (const std::string& position : r.positions) {
    const Shown& shown = by_position_.at(position);
    wanted.emplace(shown.id, &messages_[shown.message]);
  }
  for (const ReceivedMessage& message : result.messages) {
    const auto found = wanted.find(message.content->id());
    if (found == wanted.end() || found->second->body != message.content->body())
      broken("A13", fmt::format("{} was received though nobody chose it", message.content->body()));
    wanted.erase(found);
  }
  if (call.impaired || !queue(r.queue.name).receives.empty()) return;
  for (const auto& [id, message] : wanted) {
    if (surely_receivable(call, *message, call.op->lo, true))
      broken("A13", fmt::format("{} was chosen and there, and was not received{}", message->body,
                                story_of(*message)));
  }
}

// A position means nothing only if its queue has been deleted since.
void Auditor::check_refused_choice(const Call& call, const ReceiveMessage& r) {
  for (const std::string& position : r.positions) {
    const Shown& shown = by_position_.at(position);
    const bool wiped = std::ranges::any_of(queue(r.queue.name).wipes, [&](const OpPtr& wipe) {
      return wipe->may_have_happened() && wipe->to > shown.from && wipe->from < call.op->to;
    });
    if (wiped) return;
  }
  if (!r.positions.empty()) broken("A13", "a receive was refused that chose messages of its queue");
}

}  // namespace stanchion::sim
