// Messages as values of the store: one entry for each, or a pack of a chunk's messages.
// docs/formats.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/message.h"
#include "engine/store/store_keys.h"
#include "model/batch.h"
#include "model/ids.h"

namespace stanchion::engine {

// What is read about a message.
struct StoredMessage {
  Seq seq;
  Instant entered;
  Instant retained_from;
  Instant due;
  Instant first_received;
  std::uint32_t receive_count = 0;
  ContentPtr content;
};

Put put_message(StockName stock, LaneName lane, const Message& message);

// For messages of a lane that are added in order; all are between first and last, at most `count`.
Series series_between(StockName stock, LaneName lane, Seq first, Seq last, std::size_t count);
void add_message(Series& series, const Message& message);

// Appends the message of an entry, or those of a pack, to `out`. Without the contents if they are
// not wanted.
Status parse_stored_messages(std::string_view key, std::string_view value, bool with_content,
                             std::vector<StoredMessage>& out);

}  // namespace stanchion::engine
