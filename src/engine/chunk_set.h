// The chunks of a stock: which message has its home where, and which chunks are resident or cold.
//
// A new message joins the end of its line as a member, or becomes a detached message. From then on
// it has this home until it is gone, whether it waits there or not (see chunk.h).
//
//   CK1  Every chunk of a lane is either resident or cold.
//   CK2  A chunk's detached messages are the messages that have their home there and do not wait in
//        it.
//   CK3  The memory of chunks is accounted for.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/chunk.h"
#include "engine/cold_chunks.h"
#include "engine/lane_set.h"
#include "engine/memory.h"
#include "engine/memory_share.h"
#include "engine/message.h"
#include "engine/message_table.h"
#include "engine/resident_chunks.h"
#include "engine/store/checkpoint_writer.h"
#include "engine/store/chunk_record.h"
#include "engine/store/read_requests.h"

namespace stanchion::engine {

class ChunkSet {
 public:
  // The memory of the chunks is added to the share.
  ChunkSet(const Memory& memory, MemoryShare& share, CheckpointWriter& writer, ReadRequests& reads)
      : memory_(memory), share_(share), writer_(writer), reads_(reads), cold_(share) {}

  const ColdChunks& cold() const { return cold_; }
  const ResidentChunks& resident() const { return resident_; }
  ResidentChunks& resident() { return resident_; }

  // A new message joins the last chunk of its lane; a chunk that is made for it is deep if `many`
  // messages wait already.
  void append_member(Message& message, bool many);
  void add_detached(Message& message, bool many);
  // A delayed detached message of a standard queue becomes a member, in its place.
  void make_member(Message& message);
  // Adds the message to the returned ones of its lane.
  void rejoin(Message& message);
  // Takes the message out of the line, or from the returned ones: a detached message from now on.
  void take_from_line(Message& message);
  // The store no longer keeps a detached message's content here, and does so again.
  void withdraw_content(Message& message);
  void restore_content(Message& message);
  // A message that was loaded is a detached message of this chunk.
  void set_home(Message& message, Chunk& home);
  // A detached message no longer keeps its home alive.
  void leave_home(Message& message);

  // A resident chunk becomes cold: its members have left memory. It may become one with the chunk
  // before it.
  void become_cold(Chunk& chunk, std::unique_ptr<ColdMembers> cold);
  // A cold one becomes resident, without members …
  void become_resident(Chunk& chunk);
  // … which join it, in order.
  void link_last(Chunk& chunk, Message& message);

  // Members of a cold chunk expire: all of them, or those known to have expired by `deadline`.
  // Returns how many.
  std::size_t drop_members(Chunk& chunk);
  std::size_t drop_expired_members(Chunk& chunk, Instant deadline);

  // Recovery: a chunk as its record says, at the end of its lane; if it has members, index_loaded()
  // must follow, in order of their Seqs.
  Chunk& load(Lane& lane, Seq from, const ChunkRecord& record);
  void index_loaded(Chunk& chunk) { cold_.add(chunk); }

  // Ends the process if an invariant does not hold. Visits all chunks of these lanes, and all
  // messages.
  void check_invariants(const LaneSet& lanes, const MessageTable& messages) const;

 private:
  Chunk& open_chunk(Message& message, bool many);
  Chunk& append_chunk(Lane& lane, Seq from);
  void link_in_order(Chunk& chunk, Message& message);
  void unlink(Chunk& chunk, Message& message);
  void count_member(Chunk& chunk);
  void emptied(Chunk& chunk);
  void drop_if_empty(Chunk& chunk);
  void drop(Chunk& chunk);
  void remove_chunk(Chunk& chunk);
  void merge_into_previous(Chunk& chunk);
  void check_chunk(const Chunk& chunk) const;

  const Memory& memory_;
  MemoryShare& share_;
  CheckpointWriter& writer_;
  ReadRequests& reads_;
  ColdChunks cold_;
  ResidentChunks resident_;
};

}  // namespace stanchion::engine
