#include "engine/cold_chunks.h"

#include "base/check.h"

namespace stanchion::engine {

void ColdChunks::add(Chunk& chunk) {
  CHECK(chunk.is_cold() && chunk.members > 0, "CI2: a cold chunk has members");
  const ChunkSummary& summary = chunk.cold->summary;
  share_.add(kBytes);
  by_first_.emplace_hint(by_first_.end(), summary.first, &chunk);
  by_expiry_.push(chunk, summary.retained_min);
}

void ColdChunks::remove(Chunk& chunk) {
  share_.subtract(kBytes);
  CHECK(by_first_.erase(chunk.cold->summary.first) == 1, "CI1: a cold chunk is found by its first");
  by_expiry_.remove(chunk);
}

Chunk* ColdChunks::find(Seq first) const {
  const auto found = by_first_.find(first);
  return found == by_first_.end() ? nullptr : found->second;
}

Chunk* ColdChunks::last_around(Seq seq) const {
  Chunk* last = nullptr;
  for (const auto& [first, chunk] : by_first_) {
    if (first > seq) break;
    if (chunk->cold->summary.last >= seq) last = chunk;
  }
  return last;
}

std::size_t ColdChunks::bytes_entered_after(Instant entered) const {
  std::size_t bytes = 0;
  for (const auto& [first, chunk] : by_first_)
    if (chunk->cold->summary.last_entered > entered)
      bytes += chunk->bytes + chunk->members * sizeof(Message);
  return bytes;
}

void ColdChunks::check_invariants() const {
  for (const auto& [first, chunk] : by_first_) {
    CHECK(chunk->is_cold() && chunk->cold->summary.first == first, "CI1: found by the first");
    const ChunkSummary& summary = chunk->cold->summary;
    CHECK(by_expiry_.key_of(*chunk) == summary.retained_min, "CI1: found by expiry");
    CHECK(chunk->members > 0 && summary.members == chunk->members, "CI2: members are counted");
  }
  CHECK(by_first_.size() == by_expiry_.size() && by_expiry_.is_sound(), "CI1: both have the same");
}

}  // namespace stanchion::engine
