// The chunks of a stock whose members are only in the store: found by a message, and by when the
// first of them expires.
//
//   CI1  A cold chunk is in by_first_, under the first of its members, and in by_expiry_, with when
//        the first retention began; a resident one is in neither. So both have the same chunks.
//   CI2  A cold chunk has members, and its summary counts them.
#pragma once

#include <cstddef>
#include <map>

#include "engine/chunk.h"
#include "engine/indexed_heap.h"
#include "engine/memory_share.h"

namespace stanchion::engine {

class ColdChunks {
 public:
  // The memory of what belongs to cold chunks is added to the share.
  explicit ColdChunks(MemoryShare& share) : share_(share) {}

  // What a cold chunk takes besides itself: its members, and its nodes in the map and in the heap.
  static constexpr std::size_t kBytes =
      sizeof(ColdMembers) + 6 * sizeof(void*) + 3 * sizeof(std::uint64_t);

  // The chunk has become cold, or its summary will not change for now.
  void add(Chunk& chunk);
  // Before it becomes resident, or its summary changes.
  void remove(Chunk& chunk);

  bool empty() const { return by_first_.empty(); }
  std::size_t size() const { return by_first_.size(); }
  // In order of their first members.
  const std::map<Seq, Chunk*>& by_first() const { return by_first_; }
  // The one whose first member this is; nullptr if there is none.
  Chunk* find(Seq first) const;
  // The last one that may have this message as a member; nullptr if there is none.
  Chunk* last_around(Seq seq) const;

  // When the first retention of all began; kNever if there are none.
  Instant first_retention() const { return by_expiry_.empty() ? kNever : by_expiry_.top_key(); }
  // REQUIRES: !empty().
  Chunk& first_to_expire() const { return by_expiry_.top(); }

  // Bytes of memory that the members would take that came later than this.
  std::size_t bytes_entered_after(Instant entered) const;

  // Ends the process if an invariant does not hold. Visits all chunks.
  void check_invariants() const;

 private:
  MemoryShare& share_;
  std::map<Seq, Chunk*> by_first_;
  IndexedHeap<Chunk, Instant, &Chunk::expiry_index> by_expiry_;
};

}  // namespace stanchion::engine
