// What the auditor can be certain of, given what it has seen: when a message is invisible, whether
// it can have left, expired, or been purged, and whether it certainly exists.
#include <fmt/format.h>

#include <algorithm>

#include "model/limits.h"
#include "sim/auditor.h"

namespace stanchion::sim {

using std::chrono::seconds;

// The visibility timeout that a receive, or its repetition, sets: its own or that of its queue.
Auditor::Timeouts Auditor::timeouts_of(const std::string& name, std::optional<std::int64_t> given,
                                       const Op& op) const {
  if (given) return {seconds(*given), seconds(*given)};
  Timeouts found{seconds(limits::kVisibilityTimeoutSecondsMax), seconds(0)};
  queues_.at(name).visibility.possible(op.from, op.to, [&](std::int64_t v) {
    found.least = std::min<Duration>(found.least, seconds(v));
    found.most = std::max<Duration>(found.most, seconds(v));
  });
  return found;
}

Instant Auditor::until_min(const Delivery& delivery) const {
  Instant until = delivery.lo + delivery.visibility.least;
  for (const Change& change : delivery.changes) {
    if (!change.op->may_have_happened()) continue;
    const Timeouts timeouts = timeouts_of(delivery.queue, change.timeout, *change.op);
    const Instant changed = change.op->lo + timeouts.least;
    until = change.sure ? changed : std::min(until, changed);
  }
  return until;
}

Instant Auditor::until_max(const Delivery& delivery) const {
  Instant until = delivery.hi + delivery.visibility.most;
  for (const Change& change : delivery.changes) {
    if (!change.op->may_have_happened()) continue;
    const Timeouts timeouts = timeouts_of(delivery.queue, change.timeout, *change.op);
    until = std::max(until, std::min(change.op->hi, world_.high_water()) + timeouts.most);
  }
  return until;
}

Instant Auditor::sent_lo(const Message& message) const {
  return message.life().sent.value_or(message.op->lo);
}

Instant Auditor::sent_hi(const Message& message) const {
  return message.life().sent.value_or(std::min(message.op->hi, world_.high_water()));
}

// Receives in doubt that may have taken the message.
std::uint32_t Auditor::unknown_receives(const Message& message, const Op* except) const {
  std::uint32_t count = 0;
  for (const auto& [name, place] : queues_) {
    if (place.receives.empty() || !possibly_in(message, name)) continue;
    for (const OpPtr& op : place.receives) count += op.get() != except && op->to > message.op->from;
  }
  return count;
}

bool Auditor::may_have_left(const Message& message, const Op* except) const {
  const Life& life = message.life();
  const Queue& home = queues_.at(life.home);
  std::uint32_t received = 0;
  for (const Delivery& delivery : life.deliveries) received = std::max(received, delivery.count);
  received += unknown_receives(message, except);
  bool left = false;
  home.redrive.possible(message.op->from, moment_, [&](const std::optional<Redrive>& redrive) {
    left |= redrive && received >= redrive->max_receive_count;
  });
  for (const MoveTask& task : home.tasks)
    left |= task.op->may_have_happened() && task.ended > message.op->from;
  return left;
}

std::int64_t Auditor::retention(const std::string& name, Moment from, bool shortest) const {
  std::optional<std::int64_t> found;
  queues_.at(name).retention.possible(from, moment_, [&](std::int64_t r) {
    found = !found ? r : shortest ? std::min(*found, r) : std::max(*found, r);
  });
  return found.value_or(limits::kRetentionSecondsDefault);
}

bool Auditor::may_have_expired(const Message& message) const {
  std::int64_t shortest = retention(message.queue, message.op->from, true);
  for (const Life& life : message.lives)
    shortest = std::min(shortest, retention(life.home, message.op->from, true));
  for (const auto& [name, target] : queues_)
    if (possibly_in(message, name))
      shortest = std::min(shortest, retention(name, message.op->from, true));
  const Instant sent = std::min(sent_lo(message), message.op->lo);
  return world_.high_water() >= sent + seconds(shortest);
}

std::optional<Auditor::Expiry> Auditor::next_expiry() const {
  std::optional<Expiry> next;
  for (const Message& message : messages_) {
    const std::string& home = message.life().home;
    if (!surely_in(message, home, nullptr)) continue;
    const Duration retained = seconds(retention(home, message.op->from, true));
    const Instant lo = sent_lo(message) + retained;
    if (!next || lo < next->lo) next = {home, lo, sent_hi(message) + retained};
  }
  return next;
}

bool Auditor::may_be_wiped(const Message& message) const {
  for (const auto& [name, place] : queues_) {
    if (!possibly_in(message, name)) continue;
    for (const OpPtr& wipe : place.wipes)
      if (wipe->may_have_happened() && wipe->to > message.op->from) return true;
  }
  return false;
}

// Whether it has been in the queue in which it was last seen since before `op` began.
bool Auditor::was_there_before(const Message& message, const Op& op) const {
  if (!message.op->before(op)) return false;
  const bool where_it_was_sent = message.lives.size() == 1 && !message.life().dead_letter;
  return where_it_was_sent || message.life().first_seen < op.from;
}

// Whether the message can be, or have been, in that queue.
bool Auditor::possibly_in(const Message& message, const std::string& name) const {
  if (!message.op->may_have_happened() || message.duplicate) return false;
  // Called for every message and queue at every check of the counts, so nothing is copied.
  const auto was_in = [&](const std::string& place) {
    return message.queue == place ||
           std::ranges::any_of(message.lives, [&](const Life& life) { return life.home == place; });
  };
  if (was_in(name)) return true;
  // As a dead letter, and from there by a move task.
  if (std::ranges::any_of(queues_.at(name).sources, was_in)) return true;
  for (const auto& [dead_name, dead] : queues_) {
    if (dead.tasks.empty()) continue;
    if (!was_in(dead_name) && std::ranges::none_of(dead.sources, was_in)) continue;
    for (const MoveTask& task : dead.tasks)
      if (task.op->may_have_happened() &&
          (task.destination.empty() ? dead.sources.contains(name) : task.destination == name))
        return true;
  }
  return false;
}

bool Auditor::surely_in(const Message& message, const std::string& name, const Op* except) const {
  const bool exists = (message.op->done() && !message.twins) || !message.life().deliveries.empty();
  if (!exists || message.duplicate || message.gone || message.life().home != name) return false;
  if (std::ranges::any_of(message.deletes, [](const OpPtr& d) { return d->may_have_happened(); }))
    return false;
  for (const OpPtr& wipe : queues_.at(name).wipes)
    if (wipe->may_have_happened() && wipe->to > message.op->from) return false;
  return !may_have_left(message, except) && !may_have_expired(message);
}

// Whether the receipt was the message's current one during the whole of `op`.
bool Auditor::receipt_surely_valid(const Message& message, std::size_t life,
                                   const Delivery& delivery, const Op& op) const {
  if (life + 1 != message.lives.size() || message.life().home != delivery.queue) return false;
  if (op.hi >= until_min(delivery) || may_have_expired(message)) return false;
  for (const OpPtr& wipe : queues_.at(delivery.queue).wipes)
    if (wipe->may_have_happened() && wipe->to > message.op->from) return false;
  for (const OpPtr& other : message.deletes)
    if (other->may_have_happened() && other->from != op.from) return false;
  return std::ranges::none_of(message.lives[life].deliveries,
                              [&](const Delivery& d) { return d.count > delivery.count; });
}

std::string Auditor::story_of(const Message& message) const {
  std::string story =
      fmt::format("\n    {} to {}: asked at {}, {} at {}, clock {} to {}",
                  message.body.substr(0, message.body.find('.')), message.queue, message.op->from,
                  message.op->done() ? "acknowledged" : "in doubt", message.op->to,
                  to_millis(message.op->lo), to_millis(message.op->hi));
  for (const Life& life : message.lives) {
    story += fmt::format("\n    in {} as {}", life.home, life.id ? life.id->text() : "?");
    for (const Delivery& d : life.deliveries)
      story += fmt::format(
          "\n      receive {} from {}: moments {} to {}, decided {} to {}, "
          "invisible until {} at least",
          d.count, d.queue, d.op->from, d.op->to, to_millis(d.lo), to_millis(d.hi),
          to_millis(until_min(d)));
  }
  for (const OpPtr& d : message.deletes)
    story += fmt::format("\n    delete: moments {} to {}, {}", d->from, d->to,
                         d->done()                ? "done"
                         : d->may_have_happened() ? "in doubt"
                                                  : "refused");
  return story;
}

}  // namespace stanchion::sim
