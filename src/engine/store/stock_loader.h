// Loads a stock: takes what a checkpoint wrote of it, one by one, chunks first; then finish().
//
// What contradicts itself, or what was taken before, is refused: the store is damaged then. What was
// taken until then remains in the stock, which can only be destroyed.
//
//   LD1  Chunks come in the order of the store's keys, so loaded_ is sorted by lane and Seq.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/chunk.h"
#include "engine/lane_set.h"
#include "engine/message_states.h"
#include "engine/resident_messages.h"
#include "engine/store/residency.h"
#include "engine/store/store_keys.h"

namespace stanchion::engine {

class StockLoader {
 public:
  StockLoader(bool fifo, LaneSet& lanes, ResidentMessages& messages, MessageStates& states,
              Residency& residency)
      : fifo_(fifo), lanes_(lanes), messages_(messages), states_(states), residency_(residency) {}

  // Of a checkpoint that was begun at this instant.
  Status load_chunk(LaneName lane, Seq from, std::string_view value, Instant at);
  Status load_detached(Seq seq, std::string_view value);
  // A message on its way to another queue, with the chunk that it came from.
  Status load_leaving(Message& message, Seq home);
  Status load_place(LaneName lane, std::string_view value);
  // The Seqs from `begin` up to `end` were assigned; messages that may still be delayed at `at` are
  // requested.
  Status finish(Seq begin, Seq end, Instant at);

 private:
  struct Loaded {
    LaneName lane;
    Seq from;
    Chunk* chunk;
  };

  std::vector<Loaded>::const_iterator first_loaded(LaneName lane, Seq from) const;
  Chunk* find_loaded(LaneName lane, Seq from) const;
  Lane* find_loaded(LaneName lane) const;
  bool makes_sense(Seq begin, Seq end) const;

  const bool fifo_;
  LaneSet& lanes_;
  ResidentMessages& messages_;
  MessageStates& states_;
  Residency& residency_;
  std::vector<Loaded> loaded_;
};

}  // namespace stanchion::engine
