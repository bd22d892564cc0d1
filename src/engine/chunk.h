// A piece of a lane's line: the unit in which waiting messages leave memory and come back.
//
//   line   [resident, being received] [cold] [cold] … [cold] [resident, open: new messages join]
//
// Every message has a home, the chunk that was open when it came. While it waits in line it is a
// member. A message that is elsewhere (in flight, delayed on a standard queue, returned, leaving
// for another queue) is a stranger at home: its record is always in memory, and it keeps the chunk
// alive, because its content lies in the store among those of the members.
//
//   C1  The chunks of a lane are in order of Seq; their territories [from, until] are disjoint.
//   C2  A resident chunk links its members in order of Seq. A cold one has none in memory: they are
//       what the store holds in its territory, less strangers and what was removed since the last
//       checkpoint.
//   C3  A chunk without members and strangers does not exist.
//   C4  A packed chunk has no strangers and is what its pack is, until it changes; then it stays in
//       memory until a checkpoint has written what is left of it one by one.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "engine/indexed_heap.h"
#include "engine/message.h"
#include "model/ids.h"

namespace stanchion::engine {

struct Lane;

// What must be known of members that are not in memory.
struct ChunkSummary {
  std::uint32_t members = 0;
  Seq first;
  Seq last;
  Instant first_entered;
  Instant last_entered;
  Instant retained_min = kNever;  // The retention clocks of the members lie between these.
  Instant retained_max;
  Instant due_max;  // FIFO: a member is still delayed until then.

  void add(const Message& message);
};

// A member of a cold chunk, as far as its expiry goes.
struct Expiry {
  Instant retained_from;
  Seq seq;
  Instant entered;
  friend auto operator<=>(const Expiry&, const Expiry&) = default;
};

struct ColdMembers {
  ChunkSummary summary;
  // All members, the first to expire last; read when some of them are about to. Empty: not read.
  std::vector<Expiry> expiries;
};

using ResidentHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

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
  std::uint32_t strangers = 0;
  std::uint32_t homed = 0;     // Messages that ever came here.
  std::uint32_t bytes = 0;     // Of their contents.
  Seq pack;                    // The store has its members as one entry, from this one on; or 0.
  bool saved = false;          // The store knows it.
  bool reading = false;        // Something of it was asked for and has not come yet.
  bool deep = false;           // In the list of resident chunks that are far from being received.
  std::uint64_t saved_in = 0;  // The checkpoint that was the last to write a member.
  std::uint32_t unsaved_index = kNoIndex;
  std::uint32_t pending_index = kNoIndex;  // Among those that a checkpoint has still to write.
  std::uint32_t expiry_index = kNoIndex;
  std::unique_ptr<ColdMembers> cold;
  // Contents that the store has or will have but that are gone; the second are those that the last
  // checkpoint of this chunk erased, and all since a read of it was asked for.
  std::vector<Seq> removed;
  std::vector<Seq> removed_before;
  ResidentHook resident_hook;
};

}  // namespace stanchion::engine
