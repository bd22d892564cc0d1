// What the store holds about a chunk: the value of its key. docs/formats.md has the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/chunk.h"

namespace stanchion::engine {

struct ChunkRecord {
  std::string_view group;
  Seq until;
  ChunkSummary summary;
  std::uint32_t homed = 0;
  std::uint32_t bytes = 0;
  bool packed = false;
};

std::string encode(const ChunkRecord& record);

// The group points into `value`. nullopt if the record is invalid.
std::optional<ChunkRecord> parse_chunk(std::string_view value);

// Whether what it says of the chunk that begins at `from` agrees with itself: before it is written
// and after it was read.
bool is_possible(const ChunkRecord& record, Seq from);

}  // namespace stanchion::engine
