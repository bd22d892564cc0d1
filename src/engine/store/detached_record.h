// What the store holds about a detached message, a message that does not wait in its chunk, besides
// its content: the value of its key. docs/formats.md has the bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/chunk.h"
#include "engine/message.h"
#include "engine/store/store_keys.h"

namespace stanchion::engine {

// A detached message as it was read: without its content, and not in a chunk yet.
struct DetachedRecord {
  LaneName lane;
  Seq home;  // The chunk that it belongs to begins here.
  std::unique_ptr<Message> message;
};

// Of a detached message whose chunk is in this lane.
std::string encode_detached(const Message& detached, LaneName lane);

// nullopt if the record is invalid.
std::optional<DetachedRecord> parse_detached(Seq seq, std::string_view value);

// Whether what the record says of a message agrees with itself and with its chunk: before it is
// written and after it was read.
bool can_be_detached(const Message& message, const Chunk& home, bool fifo);

}  // namespace stanchion::engine
