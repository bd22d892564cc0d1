#include "engine/store/residency.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/fetch_soon.h"
#include "engine/store/cold_members.h"
#include "engine/store/peek_walk.h"

namespace stanchion::engine {
namespace {

// How many chunks evict() makes cold at a time.
constexpr std::size_t kEvictChunksMax = 16;

}  // namespace

// Eviction.

// Only what a durable checkpoint has, and has unchanged, may be evicted. A changed pack must stay
// until it is broken up (C4).
bool Residency::may_leave_memory(const Chunk& chunk) const {
  if (chunk.members == 0 || !chunk.saved || chunk.saved_in > memory_.durable_checkpoint ||
      parts_.writer.is_pending(chunk))
    return false;
  if (chunk.is_packed() && parts_.writer.is_unsaved(chunk)) return false;
  fetch_members(parts_.messages.table(), chunk);
  for (const Message* m = chunk.first; m != nullptr; m = m->next) {
    if (!m->saved || m->entry_changed || m->state != State::kReady) return false;
    fetch_soon(m->content.get());  // It is freed together with its record.
  }
  return true;
}

std::size_t Residency::make_cold(Chunk& chunk) {
  const std::size_t before = parts_.messages.bytes();
  parts_.writer.settle(chunk.lane);
  reads_.drop_peek(chunk);
  auto cold = std::make_unique<ColdMembers>();
  for (Message* message = chunk.first; message != nullptr;) {
    Message& leaving = *std::exchange(message, message->next);
    CHECK(leaving.saved, "RY1: the store has what leaves memory");
    cold->summary.add(leaving);
    parts_.states.went_out(leaving);
    parts_.messages.let_go(leaving);
  }
  chunks_.become_cold(chunk, std::move(cold));
  return before - parts_.messages.bytes();
}

Evicted Residency::evict(std::size_t target, bool near_too) {
  if (reads_.is_held()) return {0, false};
  std::size_t gone = 0;
  std::size_t looks = kEvictLooksMax;
  std::size_t chunks = kEvictChunksMax;
  const auto enough = [&] {
    if (gone >= target || chunks == 0 || looks == 0) return true;
    --looks;
    return false;
  };
  const auto look_at = [&](Chunk& chunk) {
    if (!may_leave_memory(chunk)) return;
    gone += make_cold(chunk);
    --chunks;
  };
  const std::uint64_t durable = memory_.durable_checkpoint;
  chunks_.resident().walk_deep(durable);
  while (chunks_.resident().has_next_deep() && !enough())
    look_at(chunks_.resident().take_next_deep());
  if (!near_too) return {gone, chunks_.resident().has_next_deep()};
  chunks_.resident().walk_near(durable);
  while (chunks_.resident().has_next_near() && !enough())
    look_at(chunks_.resident().take_next_near());
  return {gone, chunks_.resident().has_next_deep() || chunks_.resident().has_next_near()};
}

// Reading back.

void Residency::want(const Next& next) {
  if (next.message != nullptr) {
    reads_.want_content(*next.message);
  } else {
    reads_.want_chunk(*next.lane->front());
  }
}

Residency::Behind Residency::look_behind(const Lane& lane, std::size_t most, std::uint64_t start) {
  Behind found;
  std::size_t looks = most / 2;
  for (Chunk* chunk = lane.front(); chunk != nullptr && looks > 0;
       chunk = lane.next_filled(*chunk)) {
    if (chunk->is_cold()) {
      reads_.want_chunk(*chunk);
      found.cold = true;
      break;
    }
    for (Message* m = chunk->first; m != nullptr && looks > 0; m = m->next, --looks)
      found.messages.push_back(m);
  }
  const std::size_t returned = lane.returned ? lane.returned->size() : 0;
  for (std::size_t i = 0; i < std::min(returned, most - most / 2); ++i)
    found.messages.push_back(&lane.returned->at((start + i) % returned));
  return found;
}

bool Residency::is_wanted(const Next& next) const {
  if (!next || !next.is_cold()) return false;
  return next.message != nullptr ? next.message->reading : next.lane->front()->reading;
}

Presence Residency::look_for(Seq seq, bool with_content, const std::string* group) {
  if (Message* message = parts_.messages.find(seq)) {
    if (message->content || !with_content) return Presence::kInMemory;
    reads_.want_content(*message);
    return Presence::kAskedFor;
  }
  Chunk* chunk = chunks_.cold().find(seq);
  if (chunk == nullptr && group != nullptr) chunk = cold_chunk_around(*group, seq);
  if (chunk == nullptr) return Presence::kBehindAnother;
  reads_.want_chunk(*chunk);
  return Presence::kAskedFor;
}

// The chunk that has the message as a member if it is cold; whether it has, only a read can tell.
Chunk* Residency::cold_chunk_around(const std::string& group, Seq seq) const {
  const Lane* lane = parts_.lanes.find(group);
  if (lane == nullptr) return nullptr;
  Chunk* chunk = lane->first_chunk_behind(Seq(seq.value() - 1));
  if (chunk == nullptr || !chunk->is_cold()) return nullptr;
  const ChunkSummary& summary = chunk->cold->summary;
  return seq < summary.first || summary.last < seq ? nullptr : chunk;
}

// Repair only: the message is somewhere among the members of a cold chunk.
bool Residency::want_around(Seq seq) {
  Chunk* candidate = chunks_.cold().last_around(seq);
  if (candidate != nullptr) reads_.want_chunk(*candidate);
  return candidate != nullptr;
}

void Residency::give_up(const ColdRead& read) {
  if (read.purpose == ColdRead::Purpose::kContent) {
    if (Message* message = parts_.messages.find(read.from)) message->reading = false;
    return;
  }
  Chunk* chunk = reads_.find(read);
  if (chunk == nullptr) return;
  if (read.purpose != ColdRead::Purpose::kPeek) {
    reads_.ended(*chunk);
  } else {
    reads_.drop_peek(*chunk);
  }
}

// Together these chunks may exceed the budget: unless all are held, the first would be evicted
// before the last is read.
bool Residency::want_entered_after(Instant entered) {
  reads_.hold(false);
  for (const auto& [first, chunk] : chunks_.cold().by_first()) {
    if (chunk->cold->summary.last_entered <= entered) continue;
    reads_.want_chunk(*chunk);
    reads_.hold(true);
  }
  return !reads_.is_held();
}

void Residency::read_ahead(const Lane& lane) {
  const MemoryOptions& options = memory_.options;
  const std::size_t sharing = std::max<std::size_t>(parts_.lanes.size(), 1);
  const std::size_t enough = std::max<std::size_t>(
      options.read_ahead / sharing, std::min(options.chunk_messages, options.read_ahead));
  const std::size_t enough_bytes = options.read_ahead_bytes / sharing;
  std::size_t ahead = 0;
  std::size_t bytes = 0;
  Chunk* chunk = lane.front();
  while (chunk != nullptr && (!chunk->is_cold() || chunk->reading)) {
    ahead += chunk->members;
    bytes += chunk->bytes;
    ++chunk->looks;
    // Reads are made when half of the read-ahead is used up: many small reads take longer.
    if (ahead > enough / 2 || bytes > enough_bytes / 2) return;
    chunk = lane.next_filled(*chunk);
  }
  for (; chunk != nullptr && ahead < enough && bytes <= enough_bytes;
       chunk = lane.next_filled(*chunk)) {
    ++chunk->looks;
    if (chunk->is_cold()) reads_.want_chunk(*chunk);
    ahead += chunk->members;
    bytes += chunk->bytes;
  }
}

Status Residency::install(const ColdRead& read, std::vector<StoredMessage> found, Instant now) {
  if (read.purpose != ColdRead::Purpose::kPeek) reads_.release();
  if (read.purpose == ColdRead::Purpose::kContent)
    return install_content(read.from, std::move(found));
  // It may be gone since the read was requested.
  Chunk* chunk = reads_.find(read);
  if (chunk == nullptr) return {};
  if (read.purpose == ColdRead::Purpose::kPeek) return take_peek(*chunk, read, std::move(found));
  reads_.ended(*chunk);
  if (!chunk->is_cold()) return {};
  if (read.purpose == ColdRead::Purpose::kExpiries) return learn_expiries(*chunk, std::move(found));
  RETURN_IF_FAILED(bring_in(*chunk, std::move(found), now));
  parts_.lanes.refresh(chunk->lane);
  return {};
}

Status Residency::install_content(Seq seq, std::vector<StoredMessage> found) {
  // It may be gone since the read was requested.
  Message* message = parts_.messages.find(seq);
  if (message == nullptr) return {};
  message->reading = false;
  if (message->content) return {};
  if (found.size() != 1 || found.front().seq != message->seq ||
      found.front().content->group() != message->lane->group)
    return fail("the store is damaged: the content of a message is missing");
  parts_.messages.set_content(*message, std::move(found.front().content));
  return {};
}

Status Residency::take_peek(Chunk& chunk, const ColdRead& read, std::vector<StoredMessage> found) {
  if (!chunk.peek || chunk.peek->number != read.peek) return {};
  if (chunk.is_cold()) {
    std::vector<StoredMessage> members = found;
    RETURN_IF_FAILED(take_members(parts_.messages.table(), chunk, members));
  }
  chunk.peek->found = std::move(found);
  chunk.peek->ended = true;
  return {};
}

void Residency::peek(Peek& peek) {
  PeekWalk(parts_.lanes, parts_.messages.table(), reads_, peek).run();
}

Status Residency::bring_in(Chunk& chunk, std::vector<StoredMessage> found, Instant now) {
  RETURN_IF_FAILED(take_members(parts_.messages.table(), chunk, found));
  parts_.writer.settle(chunk.lane);
  reads_.drop_peek(chunk);
  chunks_.become_resident(chunk);
  const std::size_t before = parts_.messages.bytes();
  for (StoredMessage& stored : found) {
    auto owned = std::make_unique<Message>();
    owned->seq = stored.seq;
    owned->content = std::move(stored.content);
    owned->lane = &chunk.lane;
    owned->home = &chunk;
    owned->entered = stored.entered;
    owned->retained_from = stored.retained_from;
    owned->due = stored.due;
    owned->receive_count = stored.receive_count;
    owned->first_received = stored.first_received;
    owned->received = last_receive_of(*owned->content);
    owned->saved = true;
    Message& message = parts_.messages.keep(std::move(owned));
    chunks_.link_last(chunk, message);
    parts_.states.came_in(message);
    // Delayed messages of a FIFO queue are here only if a checkpoint wrote them while they were
    // delayed.
    if (fifo_ && message.due > now) parts_.states.change(message, State::kDelayed, message.due);
  }
  CHECK(chunk.members == found.size(), "RY2: a chunk is brought in as a whole");
  memory_.brought_in += parts_.messages.bytes() - before;
  return {};
}

Status Residency::learn_expiries(Chunk& chunk, std::vector<StoredMessage> found) {
  RETURN_IF_FAILED(take_members(parts_.messages.table(), chunk, found));
  std::vector<Expiry> expiries;
  for (const StoredMessage& stored : found)
    expiries.push_back({stored.retained_from, stored.seq, stored.entered});
  std::ranges::sort(expiries, std::greater());
  chunk.cold->expiries = std::move(expiries);
  return {};
}

std::vector<StoredMessage> Residency::read_members(const Chunk& chunk, const ReadNow& read) const {
  std::vector<StoredMessage> found = read(reads_.members_of(chunk));
  std::erase_if(found, [&](const StoredMessage& stored) {
    return !is_member(parts_.messages.table(), chunk, stored);
  });
  return found;
}

void Residency::for_each_cold(const ReadNow& read, const ColdVisitor& visit) const {
  for (const auto& [first, chunk] : chunks_.cold().by_first())
    visit(chunk->members, read_members(*chunk, read));
}

ContentPtr Residency::content_of(const Message& message, const ReadNow& read) const {
  if (message.content) return message.content;
  const auto found = read(reads_.content_of(message));
  CHECK(found.size() == 1, "the store has the content of every message that is without");
  return found.front().content;
}

// Expires cold chunks in order of their first expiry. A chunk of which only some members have
// expired needs their times, which are read from the store.
Residency::ColdExpiry Residency::expire_cold(Instant deadline) {
  ColdExpiry outcome;
  while (cold().first_retention() <= deadline) {
    Chunk& chunk = chunks_.cold().first_to_expire();
    Lane& lane = chunk.lane;
    parts_.writer.settle(lane);
    std::size_t expired = 0;
    if (!chunk.cold->expiries.empty()) {
      expired = chunks_.drop_expired_members(chunk, deadline);
    } else if (chunk.detached == 0 && chunk.cold->summary.retained_max <= deadline) {
      expired = chunks_.drop_members(chunk);
    } else {
      reads_.want_expiries(chunk);
      outcome.stalled = true;
      return outcome;
    }
    parts_.states.remove_cold(expired);
    outcome.messages += expired;
    parts_.lanes.refresh(lane);
  }
  return outcome;
}

void Residency::check_invariants() const {
  chunks_.check_invariants(parts_.lanes, parts_.messages.table());
}

}  // namespace stanchion::engine
