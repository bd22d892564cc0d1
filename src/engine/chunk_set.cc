#include "engine/chunk_set.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <utility>

#include "base/check.h"

namespace stanchion::engine {

Chunk& ChunkSet::append_chunk(Lane& lane, Seq from) {
  CHECK(lane.last_chunk == nullptr || lane.last_chunk->until < from,
        "C1: territories are disjoint");
  auto* chunk = new Chunk(lane, from);
  share_.add(sizeof(Chunk));
  chunk->previous = lane.last_chunk;
  (lane.last_chunk == nullptr ? lane.first_chunk : lane.last_chunk->next) = chunk;
  lane.last_chunk = chunk;
  return *chunk;
}

Chunk& ChunkSet::open_chunk(Message& message, bool many) {
  // New messages join the last chunk of the lane. A new chunk begins if that is evicted or full.
  // All that were ever added count, also those that have left: the territory of a chunk must stay
  // small enough to be read by one scan.
  Lane& lane = *message.lane;
  Chunk* chunk = lane.last_chunk;
  const MemoryOptions& options = memory_.options;
  if (chunk == nullptr || chunk->is_cold() || options.fill_a_chunk(chunk->homed, chunk->bytes)) {
    chunk = &append_chunk(lane, message.seq);
    chunk->deep = lane.front() != nullptr || many;
    resident_.add(*chunk);
  }
  writer_.settle(*chunk);
  chunk->until = message.seq;
  ++chunk->homed;
  chunk->bytes += static_cast<std::uint32_t>(message.content->footprint());
  message.home = chunk;
  writer_.chunk_changed(*chunk);
  return *chunk;
}

void ChunkSet::append_member(Message& message, bool many) {
  Chunk& chunk = open_chunk(message, many);
  link_last(chunk, message);
  ++chunk.lane.waiting;
}

void ChunkSet::add_detached(Message& message, bool many) {
  ++open_chunk(message, many).detached;
  writer_.record_changed(message);
}

void ChunkSet::rejoin(Message& message) {
  CHECK(!message.in_line, "CK2: only a detached message comes back");
  message.lane->add_returned(message);
  ++message.lane->waiting;
}

void ChunkSet::link_last(Chunk& chunk, Message& message) {
  CHECK(chunk.last == nullptr || chunk.last->seq < message.seq, "the line is in order of Seq");
  message.previous = chunk.last;
  message.next = nullptr;
  (chunk.last == nullptr ? chunk.first : chunk.last->next) = &message;
  chunk.last = &message;
  message.in_line = true;
  count_member(chunk);
}

// Most often it is the last chunk of its lane, which needs no search.
void ChunkSet::count_member(Chunk& chunk) {
  if (chunk.members++ == 0) chunk.lane.filled.insert(chunk.lane.filled.end(), chunk);
}

void ChunkSet::link_in_order(Chunk& chunk, Message& message) {
  Message* before = chunk.last;
  while (before != nullptr && message.seq < before->seq) before = before->previous;
  message.previous = before;
  message.next = before == nullptr ? chunk.first : before->next;
  (before == nullptr ? chunk.first : before->next) = &message;
  (message.next == nullptr ? chunk.last : message.next->previous) = &message;
  message.in_line = true;
  count_member(chunk);
}

void ChunkSet::unlink(Chunk& chunk, Message& message) {
  CHECK(message.in_line && chunk.members > 0, "C2: only a member leaves the line");
  (message.previous == nullptr ? chunk.first : message.previous->next) = message.next;
  (message.next == nullptr ? chunk.last : message.next->previous) = message.previous;
  message.previous = message.next = nullptr;
  message.in_line = false;
  if (--chunk.members == 0) emptied(chunk);
}

void ChunkSet::make_member(Message& message) {
  Chunk& chunk = *message.home;
  Lane& lane = chunk.lane;
  // The home was evicted meanwhile. Adding a member to a cold chunk would need a read, so the
  // message waits among the returned ones instead.
  if (chunk.is_cold()) {
    writer_.record_changed(message);
    return rejoin(message);
  }
  CHECK(chunk.detached > 0, "CK2: a detached message that joins the line was counted");
  writer_.settle(chunk);
  writer_.forget_record(message);
  --chunk.detached;
  link_in_order(chunk, message);
  ++lane.waiting;
  writer_.chunk_changed(chunk);
}

void ChunkSet::take_from_line(Message& message) {
  Lane& lane = *message.lane;
  CHECK(lane.waiting > 0, "only what waits can leave");
  --lane.waiting;
  if (!message.in_line) return lane.remove_returned(message);
  Chunk& chunk = *message.home;
  writer_.settle(chunk);
  unlink(chunk, message);
  // The store has its content only in the pack, which will be broken up.
  if (chunk.is_packed()) message.saved = false;
  ++chunk.detached;
  writer_.chunk_changed(chunk);
}

// The chunk has no members any more. The one that is the first now is no longer far from being
// received.
void ChunkSet::emptied(Chunk& chunk) {
  Lane& lane = chunk.lane;
  lane.filled.erase(lane.filled.iterator_to(chunk));
  Chunk* front = lane.front();
  if (front == nullptr || !front->deep || front->is_cold()) return;
  resident_.come_near(*front);
}

void ChunkSet::withdraw_content(Message& message) {
  writer_.settle(*message.home);
  writer_.forget_record(message);
  if (!std::exchange(message.saved, false)) return;
  message.home->removed.push_back(message.seq);
  writer_.chunk_changed(*message.home);
}

void ChunkSet::restore_content(Message& message) {
  CHECK(!message.saved, "the content was withdrawn");
  writer_.settle(*message.home);
  // Unless a checkpoint has already erased its content, the store still has it.
  message.saved = std::erase(message.home->removed, message.seq) > 0;
  writer_.record_changed(message);
}

void ChunkSet::set_home(Message& message, Chunk& home) {
  message.home = &home;
  message.lane = &home.lane;
  ++home.detached;
}

void ChunkSet::leave_home(Message& message) {
  Chunk& chunk = *message.home;
  writer_.settle(chunk);
  writer_.forget_record(message);
  if (message.saved) {
    chunk.removed.push_back(message.seq);
    writer_.chunk_changed(chunk);
  }
  CHECK(chunk.detached > 0, "CK2: a detached message that leaves was counted");
  message.home = nullptr;
  --chunk.detached;
  writer_.detached_left(chunk);
  drop_if_empty(chunk);
}

void ChunkSet::drop_if_empty(Chunk& chunk) {
  if (chunk.members + chunk.detached == 0) drop(chunk);
}

// No message of the chunk's territory is left.
void ChunkSet::drop(Chunk& chunk) {
  const std::uint64_t erased_in = writer_.erase(chunk);
  if (Chunk* before = chunk.previous; before != nullptr)
    before->dead_behind = std::max({before->dead_behind, chunk.dead_behind, erased_in});
  remove_chunk(chunk);
}

void ChunkSet::remove_chunk(Chunk& chunk) {
  Lane& lane = chunk.lane;
  writer_.forget(chunk);
  reads_.forget(chunk);
  if (chunk.is_cold()) {
    cold_.remove(chunk);
  } else {
    resident_.remove(chunk);
  }
  (chunk.previous == nullptr ? lane.first_chunk : chunk.previous->next) = chunk.next;
  (chunk.next == nullptr ? lane.last_chunk : chunk.next->previous) = chunk.previous;
  if (chunk.members > 0) emptied(chunk);
  share_.subtract(sizeof(Chunk));
  delete &chunk;
}

void ChunkSet::become_cold(Chunk& chunk, std::unique_ptr<ColdMembers> cold) {
  CHECK(cold->summary.members == chunk.members, "RY2: a chunk is evicted as a whole");
  resident_.remove(chunk);
  chunk.first = chunk.last = nullptr;
  chunk.cold = std::move(cold);
  cold_.add(chunk);
  merge_into_previous(chunk);
}

void ChunkSet::become_resident(Chunk& chunk) {
  CHECK(chunk.first == nullptr && chunk.last == nullptr, "C2: a cold chunk has none in memory");
  cold_.remove(chunk);
  chunk.cold.reset();
  // Its members are linked one by one, which puts it back.
  chunk.lane.filled.erase(chunk.lane.filled.iterator_to(chunk));
  chunk.members = 0;
  chunk.deep = false;  // It was requested because it is needed soon.
  resident_.add(chunk);
}

// Merges small neighbours, so that a trickle of messages does not leave a chunk for each. What the
// store has between the two would become part of them, so it must be gone.
void ChunkSet::merge_into_previous(Chunk& chunk) {
  Chunk* into = chunk.previous;
  const MemoryOptions& options = memory_.options;
  if (into == nullptr || !into->is_cold() || into->reading || chunk.reading || into->peek ||
      chunk.peek || chunk.detached > 0 || !into->cold->expiries.empty() || chunk.is_packed() ||
      into->is_packed() || into->dead_behind > memory_.durable_checkpoint ||
      into->homed + chunk.homed > options.chunk_messages ||
      into->bytes + chunk.bytes > options.chunk_bytes)
    return;
  const ChunkSummary added = chunk.cold->summary;
  writer_.settle(*into);
  cold_.remove(*into);
  ChunkSummary& summary = into->cold->summary;
  summary.members += added.members;
  summary.last = added.last;
  summary.last_entered = added.last_entered;
  summary.retained_min = std::min(summary.retained_min, added.retained_min);
  summary.retained_max = std::max(summary.retained_max, added.retained_max);
  into->members += chunk.members;
  into->until = chunk.until;
  into->dead_behind = chunk.dead_behind;
  into->homed += chunk.homed;
  into->bytes += chunk.bytes;
  into->saved_in = std::max(into->saved_in, chunk.saved_in);
  into->removed.insert(into->removed.end(), chunk.removed.begin(), chunk.removed.end());
  into->removed_before.insert(into->removed_before.end(), chunk.removed_before.begin(),
                              chunk.removed_before.end());
  cold_.add(*into);
  writer_.chunk_changed(*into);
  writer_.erase_record(chunk);
  remove_chunk(chunk);
}

std::size_t ChunkSet::drop_members(Chunk& chunk) {
  const std::size_t dropped = chunk.members;
  writer_.settle(chunk);
  Lane& lane = chunk.lane;
  lane.waiting -= chunk.members;
  for (const Expiry& expiry : chunk.cold->expiries) chunk.removed.push_back(expiry.seq);
  // If it has detached messages, the chunk lives on, resident and without members.
  cold_.remove(chunk);
  chunk.cold.reset();
  chunk.members = 0;
  resident_.add(chunk);
  writer_.chunk_changed(chunk);
  emptied(chunk);
  drop_if_empty(chunk);
  return dropped;
}

std::size_t ChunkSet::drop_expired_members(Chunk& chunk, Instant deadline) {
  const std::size_t before = chunk.members;
  std::vector<Expiry>& expiries = chunk.cold->expiries;
  if (expiries.front().retained_from <= deadline) return drop_members(chunk);
  writer_.settle(chunk);
  cold_.remove(chunk);
  while (expiries.back().retained_from <= deadline) {
    chunk.removed.push_back(expiries.back().seq);
    expiries.pop_back();
    --chunk.members;
    --chunk.lane.waiting;
  }
  ChunkSummary& summary = chunk.cold->summary;
  summary.members = chunk.members;
  summary.retained_min = expiries.back().retained_from;
  const Expiry& first = std::ranges::min(expiries, {}, &Expiry::seq);
  summary.first = first.seq;
  summary.first_entered = first.entered;
  cold_.add(chunk);
  writer_.chunk_changed(chunk);
  return before - chunk.members;
}

Chunk& ChunkSet::load(Lane& lane, Seq from, const ChunkRecord& record) {
  const ChunkSummary& summary = record.summary;
  Chunk& chunk = append_chunk(lane, from);
  chunk.until = record.until;
  chunk.members = summary.members;
  chunk.homed = record.homed;
  chunk.bytes = record.bytes;
  chunk.saved = true;
  if (record.packed) chunk.pack = summary.first;
  if (summary.members == 0) {
    resident_.add(chunk);
    return chunk;
  }
  chunk.cold = std::make_unique<ColdMembers>(ColdMembers{summary, {}});
  lane.filled.insert(lane.filled.end(), chunk);
  lane.waiting += summary.members;
  return chunk;
}

void ChunkSet::check_invariants(const LaneSet& lanes, const MessageTable& messages) const {
  cold_.check_invariants();
  resident_.check_invariants();
  boost::unordered_flat_map<const Chunk*, std::size_t> detached;
  messages.for_each([&](const Message& m) {
    if (!m.in_line) ++detached[m.home];
  });
  std::size_t cold = 0;
  std::size_t resident = 0;
  std::size_t being_read = 0;
  std::size_t peeked = 0;
  lanes.for_each([&](const Lane& lane) {
    for (const Chunk* chunk = lane.first_chunk; chunk != nullptr; chunk = chunk->next) {
      ++(chunk->is_cold() ? cold : resident);
      being_read += chunk->reading;
      peeked += chunk->peek != nullptr;
      // Those on their way to another queue are not in memory here.
      const auto here = detached.find(chunk);
      CHECK(chunk->detached >= (here == detached.end() ? 0 : here->second),
            "CK2: detached messages");
      check_chunk(*chunk);
    }
  });
  CHECK(cold == cold_.size() && resident == resident_.count(), "CK1: resident or cold");
  CHECK(being_read == reads_.chunks_being_read() && peeked == reads_.chunks_peeked(),
        "RQ1, RQ2: only chunks that exist are being read");
  const std::size_t bytes = cold * ColdChunks::kBytes + (cold + resident) * sizeof(Chunk);
  CHECK(bytes + lanes.bytes() == share_.bytes(), "CK3: lanes and chunks are accounted for");
}

void ChunkSet::check_chunk(const Chunk& chunk) const {
  reads_.check(chunk);
  if (chunk.is_cold())
    CHECK(cold_.find(chunk.cold->summary.first) == &chunk, "CI1: cold chunks are found");
  if (!chunk.is_packed() || writer_.is_unsaved(chunk) || writer_.is_pending(chunk)) return;
  CHECK(chunk.detached == 0 && chunk.removed.empty(), "C4: a pack without detached messages");
  CHECK(chunk.pack == (chunk.is_cold() ? chunk.cold->summary.first : chunk.first->seq),
        "C4: a pack from its first member on");
}

}  // namespace stanchion::engine
