// What of a stock differs from the last checkpoint, and what the checkpoint under way has yet to
// write of it.
//
// The content of a checkpoint is fixed at once and written little by little: chunks, records of
// detached messages and places of lanes that it has yet to write are pending, and are written at
// the latest before anything in them changes. So neither its beginning nor a call of save_some()
// takes longer if there is more to write, and every other call writes, besides, only what it is
// about to change.
//
//   K1  The unsaved chunks and detached messages are exactly those that differ from the last
//       checkpoint, where what is pending counts as written.
//   K2  Only messages that do not wait in a line have unsaved records, and their chunks are unsaved
//       too.
//   K3  What the store should not have any more is in to_erase_, or in erasing_ if the checkpoint
//       under way erases it. Nothing that the store never had is in either.
//   K4  memory_.to_unpack has what is left of each unsaved or pending chunk that is packed: about as
//       much will be written again.
//   K5  memory_.to_erase has each entry that is in to_erase_, and each message that an unsaved or
//       pending chunk has lost.
#pragma once

#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/chunk.h"
#include "engine/lane_set.h"
#include "engine/memory.h"
#include "engine/memory_share.h"
#include "engine/message_table.h"
#include "engine/store/store_keys.h"
#include "engine/unsaved_list.h"

namespace stanchion::engine {

class CheckpointWriter {
 public:
  CheckpointWriter(StockName name, bool fifo, Memory& memory, LaneSet& lanes,
                   const MessageTable& messages)
      : name_(name), fifo_(fifo), memory_(memory), lanes_(lanes), messages_(messages) {}

  // Must precede any change of the chunk, or of a member's entry: writes the chunk if it is
  // pending.
  void settle(Chunk& chunk) {
    if (unsaved_chunks_.is_pending(chunk)) save(chunk);
  }
  // Must precede any change of what waits in the lane, of its locks, or of its head's state or
  // content: writes its place if that is pending.
  void settle(Lane& lane) {
    if (lanes_.is_pending(lane)) save(lane);
  }
  // The same for the message's lane. Must also precede any change of the record of a detached
  // message, which is written too.
  void settle(Message& message) {
    settle(*message.lane);
    if (unsaved_detached_.is_pending(message)) save(message);
  }

  // What has changed, after it was settled.
  void chunk_changed(Chunk& chunk) {
    unsaved_chunks_.add(chunk);
    count_work(chunk);
  }
  // A chunk that has changed has one detached message less.
  void detached_left(Chunk& chunk) {
    if (unsaved_chunks_.is_unsaved(chunk)) count_work(chunk);
  }
  void entry_changed(Message& member);
  void record_changed(Message& detached);
  // The detached message has become a member, or is gone.
  void forget_record(Message& detached);
  // The chunk is about to be destroyed …
  void forget(Chunk& chunk);
  // … as its members have joined the chunk before it, so that only its record is to be erased,
  void erase_record(const Chunk& chunk);
  // or as none of its messages is left. Returns the checkpoint that erases them; 0: the store has
  // none.
  std::uint64_t erase(const Chunk& chunk);

  bool is_unsaved(const Chunk& chunk) const { return unsaved_chunks_.is_unsaved(chunk); }
  bool is_pending(const Chunk& chunk) const { return unsaved_chunks_.is_pending(chunk); }

  // Fixes what the checkpoint that has begun writes of this stock: that is pending then.
  void begin();
  // Writes what is pending until this many messages, or other things, were looked at; returns how
  // many were. A chunk is written as a whole.
  std::size_t save_some(std::size_t count);
  bool has_pending() const;

  // The stock is about to be destroyed, perhaps by another thread.
  void release_memory() {
    to_unpack_.leave();
    erasures_.leave();
  }

  // Ends the process if an invariant does not hold. Visits all that is unsaved or pending.
  void check_invariants() const;

 private:
  struct DeadTerritory {
    LaneName lane;
    Seq from;
    Seq until;
  };
  // What the store has and should not have any more, and how much of that was put into the batch.
  struct ToErase {
    using DetachedSeqs = boost::unordered_flat_set<Seq, std::hash<Seq>>;

    std::vector<Key> keys;
    std::vector<DeadTerritory> dead;
    DetachedSeqs detached;
    std::size_t next_key = 0;
    std::size_t next_dead = 0;
    std::optional<DetachedSeqs::iterator> next_detached;

    bool empty() const { return size() == 0; }
    std::size_t size() const { return keys.size() + dead.size() + detached.size(); }
  };

  Batch& batch();
  static std::uint32_t left_to_unpack(const Chunk& chunk);
  void count_work(Chunk& chunk);
  void forget_work(Chunk& chunk);
  void add_to_erase(Key key);
  void save_next();
  bool erase_next();
  void save(Lane& lane);
  void save(Message& detached);
  void save(Chunk& chunk);
  ChunkSummary save_members(Chunk& chunk, LaneName lane);
  void erase_pack(Chunk& chunk, LaneName lane);

  const StockName name_;
  const bool fifo_;
  Memory& memory_;
  LaneSet& lanes_;
  const MessageTable& messages_;
  UnsavedList<Chunk, &Chunk::unsaved_index> unsaved_chunks_;
  UnsavedList<Message, &Message::unsaved_index> unsaved_detached_;
  MemoryShare to_unpack_{memory_.to_unpack};
  MemoryShare erasures_{memory_.to_erase};
  ToErase to_erase_;
  std::unique_ptr<ToErase> erasing_;  // Pending.
};

}  // namespace stanchion::engine
