// The chunks of a stock whose members are in memory, in the order in which they are evicted.
//
//   far from being received ─▶ deep, the newest first (it is received last)
//   others                  ─▶ near, the oldest first (it has been idle longest)
//
// After every durable checkpoint each chunk is examined once: a walk over both lists, which goes on
// where it stopped.
//
//   RT1  A resident chunk is in deep_ if its `deep` is set, else in near_. A cold one is in neither.
//   RT2  The next chunk of a walk is in the list of that walk.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "engine/chunk.h"

namespace stanchion::engine {

class ResidentChunks {
 public:
  void add(Chunk& chunk);
  void remove(Chunk& chunk);
  // The chunk is no longer far from being received.
  void come_near(Chunk& chunk);

  bool has_deep() const { return !deep_.empty(); }
  std::size_t count() const;  // Counts one by one.

  // One of the two walks: it begins anew unless this checkpoint, the last durable one, is the one
  // that it is about. The next chunk is passed when it is taken; nullptr if all were examined.
  void walk_deep(std::uint64_t checkpoint);
  bool has_next_deep() const { return next_deep_.chunk != nullptr; }
  Chunk& take_next_deep();
  void walk_near(std::uint64_t checkpoint);
  bool has_next_near() const { return next_near_.chunk != nullptr; }
  Chunk& take_next_near();

  // Ends the process if an invariant does not hold. Visits all chunks.
  void check_invariants() const;

 private:
  using List = boost::intrusive::list<
      Chunk, boost::intrusive::member_hook<Chunk, ResidentHook, &Chunk::resident_hook>,
      boost::intrusive::constant_time_size<false>>;
  struct Walk {
    Chunk* chunk = nullptr;
    std::uint64_t checkpoint = UINT64_MAX;
  };

  Chunk* deep_before(Chunk& chunk);
  Chunk* near_behind(Chunk& chunk);

  List deep_;
  List near_;
  Walk next_deep_;
  Walk next_near_;
};

}  // namespace stanchion::engine
