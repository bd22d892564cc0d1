// What the auditor checks about a look at a queue.
#include <fmt/format.h>

#include <algorithm>

#include "sim/auditor.h"

namespace stanchion::sim {

// What is said of the last receive, here or before the message was moved to a dead-letter queue, is
// when a client got it, if the answer to that receive is known.
void Auditor::check_last_receive(const Message& message, const PeekedMessage& seen) const {
  if ((seen.received == Instant()) != (seen.receive_count == 0))
    broken("A12", fmt::format("{} is shown with {} receives, the last at {}{}", message.body,
                              seen.receive_count, to_millis(seen.received), story_of(message)));
  for (const Life& life : message.lives)
    for (const Delivery& delivery : life.deliveries)
      if (life.id == seen.content->id() && delivery.count == seen.receive_count &&
          delivery.attempt.empty() &&
          (seen.received < delivery.taken_lo || seen.received > delivery.hi))
        broken("A12", fmt::format("{} is shown as last received at {}, which is not when it was{}",
                                  message.body, to_millis(seen.received), story_of(message)));
}

// A message that is shown exists, or may have existed during the call, with the receives that are
// known of it.
std::size_t Auditor::check_sighting(const Call& call, const std::string& name,
                                    const PeekedMessage& seen) const {
  const std::string body(seen.content->body());
  const auto found = by_body_.find(body);
  if (found == by_body_.end()) broken("A12", fmt::format("{} is shown and was never sent", body));
  const Message& message = messages_[found->second];
  check_bytes(message, {.content = seen.content,
                        .receipt_handle = {},
                        .receive_count = seen.receive_count,
                        .first_received = seen.first_received,
                        .sequence_number = seen.sequence_number});
  if (!possibly_in(message, name))
    broken("A12",
           fmt::format("{} is shown in {}, where it cannot be{}", body, name, story_of(message)));
  if (message.gone && *message.gone < call.op->from)
    broken("A12",
           fmt::format("{} is gone, and still shown in {}{}", body, name, story_of(message)));
  check_last_receive(message, seen);
  const Life& life = message.life();
  // As a dead letter, or under another id because it was moved back, its receives count anew.
  const bool same_life = life.home == name && life.id == seen.content->id() &&
                         seen.content->source_arn().empty() && !life.dead_letter;
  if (!same_life) return found->second;
  std::uint32_t least = 0, most = 0;
  for (const Delivery& delivery : life.deliveries) {
    most = std::max(most, delivery.count);
    if (delivery.op->before(*call.op)) least = std::max(least, delivery.count);
  }
  most += unknown_receives(message, nullptr);
  if (seen.receive_count < least || seen.receive_count > most)
    broken("A12", fmt::format("{} is shown with {} receives; it must have had between {} and {}{}",
                              body, seen.receive_count, least, most, story_of(message)));
  return found->second;
}

void Auditor::settle(Call& call, const StanchionPeek& r, const ReplyValue& reply) {
  const auto& page = std::get<StanchionPeekResult>(reply);
  const std::string& name = r.queue.name;
  std::set<std::size_t> shown;
  for (const PeekedMessage& seen : page.messages) {
    const std::size_t index = check_sighting(call, name, seen);
    if (!shown.insert(index).second)
      broken("A12", fmt::format("{} is shown twice on a page", seen.content->body()));
    const Shown& before =
        by_position_.emplace(seen.position, Shown{index, seen.content->id(), call.op->from})
            .first->second;
    if (before.message != index)
      broken("A12", fmt::format("{} is shown at the position of {}", seen.content->body(),
                                messages_[before.message].body));
  }
  ++statistics_.peeks;
  statistics_.sightings += page.messages.size();
  if (r.next_token || page.next_token || !r.states.empty()) return;
  for (std::size_t i = 0; i < messages_.size(); ++i)
    if (!shown.contains(i) && was_there_before(messages_[i], *call.op) &&
        surely_in(messages_[i], name, nullptr))
      broken("A12", fmt::format("{} is in {} and is not shown{}", messages_[i].body, name,
                                story_of(messages_[i])));
}

}  // namespace stanchion::sim
