// A chunk: a page of a lane, the unit in which waiting messages are evicted from memory and read
// back.
//
//   line   [resident, being received] [cold] [cold] … [cold] [resident, open: new messages join]
//
// Every message has a home, the chunk that was open when it came. While it waits there it is a
// member. A message in another state (in flight, delayed on a standard queue, returned, leaving for
// another queue) is a detached message: it still belongs to its home, but does not wait in it. The
// record of a detached message is always in memory, and it keeps its chunk alive, because the store
// keeps its content among those of the chunk's members.
//
//   C1  The chunks of a lane are in order of Seq; their territories [from, until] are disjoint.
//   C2  A resident chunk links its members in order of Seq. A cold one has no members in memory:
//       they are what the store holds in its territory, except detached messages and messages
//       removed since the last checkpoint.
//   C3  A chunk without members and detached messages does not exist.
//   C4  A packed chunk has no detached messages and is equal to its pack, until it changes; then it
//       stays in memory until a checkpoint has written its remaining members one by one.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "engine/indexed_heap.h"
#include "engine/message.h"
#include "engine/store/stored_message.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Lane;

// What must be known about members that are not in memory.
struct ChunkSummary {
  std::uint32_t members = 0;
  Seq first;
  Seq last;
  Instant first_entered;
  Instant last_entered;
  Instant retained_min = kNever;  // The members' retention clocks are in this range.
  Instant retained_max;
  Instant due_max;  // FIFO: no member is delayed after this.

  void add(const Message& message);
};

// When a member of a cold chunk expires.
struct Expiry {
  Instant retained_from;
  Seq seq;
  Instant entered;
  friend auto operator<=>(const Expiry&, const Expiry&) = default;
};

struct ColdMembers {
  ChunkSummary summary;
  // All members, the first to expire last; read from the store when some are about to expire.
  // Empty: not read yet.
  std::vector<Expiry> expiries;
};

// What was read for somebody who only looks: it does not become part of the queue.
struct PeekRead {
  explicit PeekRead(std::uint64_t n) : number(n) {}

  const std::uint64_t number;
  bool ended = false;
  std::vector<StoredMessage> found;
};

using ResidentHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

using FilledHook =
    boost::intrusive::set_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>,
                                      boost::intrusive::optimize_size<true>>;

struct Chunk {
  Chunk(Lane& home, Seq first_seq) : lane(home), from(first_seq), until(first_seq) {}

  bool is_cold() const { return cold != nullptr; }
  bool is_packed() const { return pack != Seq(); }

  Lane& lane;
  const Seq from;  // Names the chunk in its lane.
  Seq until;
  Chunk* previous = nullptr;  // Neighbours in the lane.
  Chunk* next = nullptr;
  Message* first = nullptr;  // Members in memory.
  Message* last = nullptr;
  std::uint32_t members = 0;  // In memory or not.
  std::uint32_t detached = 0;
  std::uint32_t homed = 0;     // Messages that were ever added.
  std::uint32_t bytes = 0;     // Total size of their contents.
  Seq pack;                    // The store has its members as one entry, from this Seq on; or 0.
  bool saved = false;          // The store has an entry for it.
  bool reading = false;        // A read of it was requested and has not ended.
  bool deep = false;           // In the list of resident chunks that are far from being received.
  std::uint64_t saved_in = 0;  // The last checkpoint that wrote a member.
  // The checkpoint that erases what the store still has between this chunk and the next.
  std::uint64_t dead_behind = 0;
  std::uint32_t unsaved_index = kNoIndex;
  std::uint32_t to_unpack = 0;      // Of its bytes, what the next checkpoint writes again.
  std::uint32_t to_erase = 0;       // Of `removed`, what Memory::to_erase counts.
  mutable std::uint32_t looks = 0;  // How often a search for a chunk has come by; for tests.
  std::uint32_t expiry_index = kNoIndex;
  std::unique_ptr<ColdMembers> cold;
  // While someone who looks at it waits for a read, or uses it; not beyond the moment at which the
  // chunk becomes cold or resident.
  std::unique_ptr<PeekRead> peek;
  // Messages whose contents the store still has, or will have, although they are gone. `removed` is
  // erased by the next checkpoint of this chunk. `removed_before` are those that its last
  // checkpoint erased, and all erased since a read of it was requested (or a peek): that read may
  // still find them.
  std::vector<Seq> removed;
  std::vector<Seq> removed_before;
  ResidentHook resident_hook;
  FilledHook filled_hook;  // In Lane::filled, while it has members.
};

}  // namespace stanchion::engine
