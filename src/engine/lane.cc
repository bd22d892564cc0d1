#include "engine/lane.h"

#include <algorithm>

#include "base/check.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

std::int64_t epoch_of(Instant now) {
  return to_millis(now) / limits::kBusyHalfLife.count();
}

}  // namespace

void RecentSum::add(std::uint64_t amount, Instant now) {
  value_ = at(now) + amount;
  epoch_ = epoch_of(now);
}

std::uint64_t RecentSum::at(Instant now) const {
  const std::int64_t halvings = std::max<std::int64_t>(0, epoch_of(now) - epoch_);
  return halvings >= 64 ? 0 : value_ >> halvings;
}

void Lane::join(Message& message) {
  CHECK(last == nullptr || last->seq < message.seq, "the line is in order of Seq");
  message.previous = last;
  (last == nullptr ? first : last->next) = &message;
  last = &message;
  message.in_line = true;
  ++waiting;
}

void Lane::rejoin(Message& message) {
  if (!returned) returned = std::make_unique<Returned>();
  returned->push(message, message.seq.value());
  ++waiting;
}

void Lane::leave(Message& message) {
  CHECK(waiting > 0, "only what waits can leave");
  --waiting;
  if (!message.in_line) {
    returned->remove(message);
    if (returned->empty()) returned.reset();
    return;
  }
  (message.previous == nullptr ? first : message.previous->next) = message.next;
  (message.next == nullptr ? last : message.next->previous) = message.previous;
  message.previous = message.next = nullptr;
  message.in_line = false;
}

Message* Lane::head() const {
  if (!returned) return first;
  if (first == nullptr || returned->top().seq < first->seq) return &returned->top();
  return first;
}

bool Lane::is_sound() const {
  std::uint32_t count = 0;
  for (const Message* m = first; m != nullptr; m = m->next, ++count) {
    if (m->lane != this || !m->in_line) return false;
    if (m->next == nullptr ? m != last : m->next->previous != m || !(m->seq < m->next->seq))
      return false;
  }
  if (returned && !returned->is_sound()) return false;
  return waiting == count + (returned ? returned->size() : 0);
}

}  // namespace stanchion::engine
