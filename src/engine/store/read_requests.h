// What a stock has requested from the store and does not have yet, and what must stay in memory
// for those who wait for more than one read.
//
//   want_…() ─▶ Memory::wanted ─(the keeper reads)─▶ find(), and then ended() or, for a peek, install
//
// A chunk or a message that leaves before its read has ended is forgotten here; what is read of it
// then belongs to nobody.
//
//   RQ1  The chunks whose `reading` is set, and no others, are in reading_, by Chunk::from.
//   RQ2  The chunks that have a `peek`, and no others, are in peeks_, each once.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <functional>
#include <vector>

#include "engine/chunk.h"
#include "engine/memory.h"
#include "engine/message.h"
#include "engine/store/cold_read.h"
#include "engine/store/store_keys.h"

namespace stanchion::engine {

class ReadRequests {
 public:
  ReadRequests(StockName name, Memory& memory) : name_(name), memory_(memory) {}

  // Each does nothing if the same was requested already. The members of a cold chunk …
  void want_chunk(Chunk& chunk);
  // … or when they expire. For a packed chunk, requests the members: their expiry will change the
  // pack.
  void want_expiries(Chunk& chunk);
  // The content of a message.
  void want_content(Message& message);
  // All messages of a chunk, to be looked at.
  void want_peek(Chunk& chunk);

  // The chunk for which this was requested, unless it is gone.
  Chunk* find(const ColdRead& read) const;
  // A read of the chunk has ended, but not one for a peek.
  void ended(Chunk& chunk);
  // What was read for a peek, or is being read, is not needed any more: of this chunk, …
  void drop_peek(Chunk& chunk);
  // … of all chunks, unless one is still being read.
  void drop_peeks();
  // The chunk is about to be destroyed.
  void forget(Chunk& chunk);

  // What the store holds of the members of a cold chunk.
  KeyRange members_of(const Chunk& chunk) const;
  // The content of a message.
  KeyRange content_of(const Message& message) const;

  // Until release(), nothing is evicted, …
  void hold(bool on) { held_ = on; }
  bool is_held() const { return held_; }
  // … or not the content of this message.
  void await(Seq seq) {
    if (!is_awaited(seq)) awaited_.push_back(seq);
  }
  bool is_awaited(Seq seq) const { return std::ranges::find(awaited_, seq) != awaited_.end(); }
  void release();

  // Ends the process if what is known of this chunk, of all that exist, is not so.
  void check(const Chunk& chunk) const;
  std::size_t chunks_being_read() const { return reading_.size(); }
  std::size_t chunks_peeked() const { return peeks_.size(); }

 private:
  ColdRead read_of(const Chunk& chunk, ColdRead::Purpose purpose) const;
  void want(Chunk& chunk, ColdRead::Purpose purpose);

  const StockName name_;
  Memory& memory_;
  boost::unordered_flat_map<Seq, Chunk*, std::hash<Seq>> reading_;
  std::vector<Chunk*> peeks_;
  std::vector<Seq> awaited_;  // Few: the messages of a receive.
  bool held_ = false;
};

}  // namespace stanchion::engine
