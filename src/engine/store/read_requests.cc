#include "engine/store/read_requests.h"

#include <utility>

#include "base/check.h"
#include "engine/lane.h"

namespace stanchion::engine {

KeyRange ReadRequests::members_of(const Chunk& chunk) const {
  CHECK(chunk.is_cold(), "the members of a resident chunk are in memory");
  const ChunkSummary& summary = chunk.cold->summary;
  return messages_between(name_, lane_name(chunk.lane.group), summary.first, summary.last);
}

KeyRange ReadRequests::content_of(const Message& message) const {
  return messages_between(name_, lane_name(message.lane->group), message.seq, message.seq);
}

ColdRead ReadRequests::read_of(const Chunk& chunk, ColdRead::Purpose purpose) const {
  return {.purpose = purpose,
          .stock = name_,
          .group = chunk.lane.group,
          .from = chunk.from,
          .range = members_of(chunk)};
}

void ReadRequests::want(Chunk& chunk, ColdRead::Purpose purpose) {
  if (std::exchange(chunk.reading, true)) return;
  CHECK(reading_.emplace(chunk.from, &chunk).second, "RQ1: chunks begin with different messages");
  memory_.wanted.push_back(read_of(chunk, purpose));
}

void ReadRequests::want_chunk(Chunk& chunk) {
  want(chunk, ColdRead::Purpose::kChunk);
}

void ReadRequests::want_expiries(Chunk& chunk) {
  want(chunk, chunk.is_packed() ? ColdRead::Purpose::kChunk : ColdRead::Purpose::kExpiries);
}

void ReadRequests::want_content(Message& message) {
  if (std::exchange(message.reading, true)) return;
  memory_.wanted.push_back({.purpose = ColdRead::Purpose::kContent,
                            .stock = name_,
                            .group = message.lane->group,
                            .from = message.seq,
                            .range = content_of(message)});
}

void ReadRequests::want_peek(Chunk& chunk) {
  if (chunk.peek && !chunk.peek->ended) return;
  drop_peek(chunk);
  chunk.peek = std::make_unique<PeekRead>(++memory_.peeks);
  peeks_.push_back(&chunk);
  memory_.wanted.push_back(
      {.purpose = ColdRead::Purpose::kPeek,
       .stock = name_,
       .group = chunk.lane.group,
       .from = chunk.from,
       .range = messages_between(name_, lane_name(chunk.lane.group), chunk.from, chunk.until),
       .peek = chunk.peek->number});
}

Chunk* ReadRequests::find(const ColdRead& read) const {
  if (read.purpose == ColdRead::Purpose::kPeek) {
    const auto found = std::ranges::find(peeks_, read.from, &Chunk::from);
    return found == peeks_.end() ? nullptr : *found;
  }
  const auto found = reading_.find(read.from);
  return found == reading_.end() ? nullptr : found->second;
}

void ReadRequests::ended(Chunk& chunk) {
  CHECK(reading_.erase(chunk.from) == 1, "RQ1: a read that ends was requested");
  chunk.reading = false;
}

void ReadRequests::drop_peek(Chunk& chunk) {
  if (!chunk.peek) return;
  chunk.peek.reset();
  CHECK(std::erase(peeks_, &chunk) == 1, "RQ2: a chunk with a peek is known");
}

// Someone who waits for several chunks begins again when the last of them has been read.
void ReadRequests::drop_peeks() {
  if (!std::ranges::all_of(peeks_, [](const Chunk* chunk) { return chunk->peek->ended; })) return;
  for (Chunk* chunk : peeks_) chunk->peek.reset();
  peeks_.clear();
}

void ReadRequests::forget(Chunk& chunk) {
  if (chunk.reading) ended(chunk);
  drop_peek(chunk);
}

void ReadRequests::release() {
  awaited_.clear();
  held_ = false;
}

void ReadRequests::check(const Chunk& chunk) const {
  const auto being_read = reading_.find(chunk.from);
  CHECK(chunk.reading == (being_read != reading_.end() && being_read->second == &chunk),
        "RQ1: chunks that are being read");
  CHECK(std::ranges::count(peeks_, &chunk) == (chunk.peek ? 1 : 0),
        "RQ2: chunks that are peeked at");
}

}  // namespace stanchion::engine
