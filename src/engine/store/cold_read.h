// A read that the engine requests from its keeper: a part of the store that it needs in memory.
// Engine::read() makes the read, and its result goes to Engine::install().
#pragma once

#include <cstdint>
#include <string>

#include "engine/store/store_keys.h"
#include "model/batch.h"
#include "model/ids.h"

namespace stanchion::engine {

// Something that the engine needs from the store.
struct ColdRead {
  enum class Purpose : std::uint8_t {
    kChunk,      // The members of a chunk, to be received.
    kExpiries,   // When the members of a chunk expire.
    kContent,    // The content of a message whose record is in memory.
    kPeek,       // Messages of a chunk, to be looked at only.
    kDeparture,  // The content of a message on its way to another queue.
  };
  Purpose purpose = Purpose::kChunk;
  StockName stock{};
  std::string group{};
  Seq from{};             // Of the chunk; for a content, of the message.
  TransferNo transfer{};  // Of a departure.
  KeyRange range{};
  std::uint64_t peek = 0;  // The number of a read for a peek.

  // Whether both are chunks of one lane, this one before the other.
  bool precedes(const ColdRead& other) const {
    return (purpose == Purpose::kChunk || purpose == Purpose::kPeek) && purpose == other.purpose &&
           stock == other.stock && group == other.group && range.end <= other.range.begin;
  }
};

}  // namespace stanchion::engine
