#include "engine/lane.h"

#include <algorithm>
#include <utility>

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

void ChunkSummary::add(const Message& message) {
  if (members++ == 0) {
    first = message.seq;
    first_entered = message.entered;
  }
  last = message.seq;
  last_entered = message.entered;
  retained_min = std::min(retained_min, message.retained_from);
  retained_max = std::max(retained_max, message.retained_from);
  if (message.state == State::kDelayed) due_max = std::max(due_max, message.due);
}

Lane::~Lane() {
  while (first_chunk != nullptr) delete std::exchange(first_chunk, first_chunk->next);
}

void Lane::add_returned(Message& message) {
  if (!returned) returned = std::make_unique<Returned>();
  returned->push(message, message.seq.value());
}

void Lane::remove_returned(Message& message) {
  returned->remove(message);
  if (returned->empty()) returned.reset();
}

Seq Lane::head_seq() const {
  CHECK(waiting > 0, "somebody waits");
  const Chunk* first = front();
  if (first == nullptr) return returned->top().seq;
  const Seq line = first->is_cold() ? first->cold->summary.first : first->first->seq;
  return returned ? std::min(line, returned->top().seq) : line;
}

Message* Lane::head() const {
  const Chunk* first = front();
  if (first == nullptr) return returned ? &returned->top() : nullptr;
  if (!returned) return first->first;
  const Seq line = first->is_cold() ? first->cold->summary.first : first->first->seq;
  return returned->top().seq < line ? &returned->top() : first->first;
}

// The taken message was the head. So it goes to the end of the blockers or, if later messages are
// still away, near the beginning, after those that were taken with it.
void Lane::block(Message& taken) {
  Message* before = last_blocker;
  if (before != nullptr && taken.seq < before->seq) {
    before = nullptr;
    for (Message* m = first_blocker; m->seq < taken.seq; m = m->next) before = m;
  }
  taken.previous = before;
  taken.next = before == nullptr ? first_blocker : before->next;
  (before == nullptr ? first_blocker : before->next) = &taken;
  (taken.next == nullptr ? last_blocker : taken.next->previous) = &taken;
}

void Lane::unblock(Message& taken) {
  (taken.previous == nullptr ? first_blocker : taken.previous->next) = taken.next;
  (taken.next == nullptr ? last_blocker : taken.next->previous) = taken.previous;
  taken.previous = taken.next = nullptr;
}

// A line may have a hundred thousand chunks, so the search begins near the position if a chunk with
// members is found there.
Chunk* Lane::first_chunk_behind(Seq after) const {
  Chunk* near = last_filled_by(after);
  Chunk* chunk = near != nullptr ? near : first_chunk;
  for (; chunk != nullptr && chunk->until <= after; chunk = chunk->next) ++chunk->looks;
  return chunk;
}

bool Lane::has_more_behind(const Message& leaving) const {
  if (first_blocker != &leaving || waiting == 0) return false;
  if (leaving.next != nullptr && leaving.next->seq < head_seq()) return false;
  const Message* first = head();
  return first == nullptr || first->state == State::kReady;
}

bool Lane::is_sound() const {
  std::size_t blockers = 0;
  for (const Message* m = first_blocker; m != nullptr; m = m->next, ++blockers) {
    if (m->lane != this || m->in_line) return false;
    if (m->next == nullptr ? m != last_blocker : m->next->previous != m || !(m->seq < m->next->seq))
      return false;
  }
  if (blockers > 0 && blockers != locks) return false;
  std::size_t count = 0;
  auto with_members = filled.begin();
  Seq above;
  for (const Chunk* chunk = first_chunk; chunk != nullptr; chunk = chunk->next) {
    if (&chunk->lane != this || chunk->from <= above || chunk->until < chunk->from) return false;
    if (chunk->next == nullptr ? chunk != last_chunk : chunk->next->previous != chunk) return false;
    if (chunk->members + chunk->detached == 0) return false;
    above = chunk->until;
    count += chunk->members;
    if (chunk->members > 0 && (with_members == filled.end() || &*with_members++ != chunk))
      return false;
    std::uint32_t linked = 0;
    for (const Message* m = chunk->first; m != nullptr; m = m->next, ++linked) {
      if (m->lane != this || m->home != chunk || !m->in_line) return false;
      if (m->seq < chunk->from || chunk->until < m->seq) return false;
      if (m->next == nullptr ? m != chunk->last
                             : m->next->previous != m || !(m->seq < m->next->seq))
        return false;
    }
    if (chunk->is_cold() ? linked != 0 || chunk->cold->summary.members != chunk->members
                         : linked != chunk->members)
      return false;
  }
  if (with_members != filled.end() || (returned && !returned->is_sound())) return false;
  return waiting == count + (returned ? returned->size() : 0);
}

}  // namespace stanchion::engine
