// Which FIFO group comes first.
//
// Groups stand in a line. A group that was received from stands behind all groups that waited then,
// once it has a message to give again. So the auditor knows the order of two groups if one of them
// has waited, untouched, since before somebody last received from the other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/auditor.h"

namespace stanchion::sim {

using std::chrono::seconds;

// A message of a group that certainly waits, and by when it did at the latest. Nothing earlier of
// its group can exist: it is the head.
std::optional<Instant> Auditor::waits_since(const Call& call, const Message& head) const {
  const std::string& name = head.queue;
  const auto& seq = head.life().seq;
  if (!seq || !surely_in(head, name, call.op.get()) || unknown_receives(head, call.op.get()) > 0)
    return std::nullopt;
  std::int64_t delay = 0;
  queues_.at(name).delay.possible(head.op->from, call.op->to,
                                  [&](std::int64_t d) { delay = std::max(delay, d); });
  Instant since = sent_hi(head) + seconds(delay);
  for (const Delivery& delivery : head.life().deliveries)
    if (delivery.op != call.op) since = std::max(since, until_max(delivery));
  for (const Message& other : messages_) {
    if (&other == &head || other.queue != name || other.group() != head.group() ||
        !other.op->may_have_happened() || other.duplicate)
      continue;
    // A message that was moved elsewhere held the group back until it had arrived there.
    if (other.lives.size() > 1 || other.life().dead_letter) return std::nullopt;
    // A message that was deleted may have held the group back until then.
    if (other.gone) {
      if (*other.gone < head.op->from) continue;
      if (other.deletes.empty()) return std::nullopt;
      for (const OpPtr& op : other.deletes) since = std::max(since, op->hi);
    } else if (!other.life().seq || *other.life().seq < *seq) {
      return std::nullopt;
    }
  }
  return since;
}

// Messages come into the queue only by sends, and no task moves any away.
bool Auditor::only_sends_fill(const Queue& target) const {
  if (!target.sources.empty() || !target.tasks.empty()) return false;
  return std::ranges::none_of(queues_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.tasks, [&](const MoveTask& task) {
      return task.destination == target.name ||
             (task.destination.empty() && entry.second.sources.contains(target.name));
    });
  });
}

void Auditor::check_line(const Call& call, const ReceiveMessage& r,
                         const ReceiveMessageResult& result) {
  const Queue& target = queue(r.queue.name);
  // A repeated attempt gets the same messages as before, and one that chooses gets those, wherever
  // their group stands.
  if (!target.fifo || r.attempt_id || !r.positions.empty() || !only_sends_fill(target)) return;
  // When somebody last received from each group, at the earliest.
  std::map<std::string, Instant> received;
  for (const Message& message : messages_) {
    if (message.queue != target.name || message.lives.size() > 1) continue;
    for (const Delivery& delivery : message.life().deliveries) {
      if (delivery.queue != target.name || !delivery.op->before(*call.op)) continue;
      const auto found = received.emplace(message.group(), delivery.taken_lo).first;
      found->second = std::max(found->second, delivery.taken_lo);
    }
  }
  std::set<std::string> served;
  for (const ReceivedMessage& message : result.messages) {
    const std::string group(message.content->group());
    if (!served.insert(group).second || !received.contains(group)) continue;
    check_nobody_waits_before(call, target, group, received.at(group), served);
  }
}

void Auditor::check_nobody_waits_before(const Call& call, const Queue& target,
                                        const std::string& group, Instant received,
                                        const std::set<std::string>& served) {
  for (const Message& head : messages_) {
    if (head.queue != target.name || head.gone || head.lives.size() > 1 ||
        head.life().dead_letter || served.contains(head.group()))
      continue;
    const auto since = waits_since(call, head);
    if (!since) continue;
    ++statistics_.places_compared;
    if (*since < received)
      broken("A11", fmt::format("group {} of {} was served at {} and is served again, while {} of "
                                "group {} waits since {}{}",
                                group, target.name, to_millis(received), head.body, head.group(),
                                to_millis(*since), story_of(head)));
  }
}

}  // namespace stanchion::sim
