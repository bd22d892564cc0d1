// Where a message is in its queue, so that a receive can choose it: opaque to clients, bound to the
// queue, unforgeable. Unlike a receipt, a position gives no right to the message.
//
//   position = base64( 02 | queue u64 | seq u64 | message id, 16 bytes | group |
//                      SipHash-2-4-128 of all before )
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "model/ids.h"

namespace stanchion {

struct MessagePosition {
  QueueId queue;
  Seq seq;
  MessageId id;
  std::string group;  // Empty: none.

  friend auto operator<=>(const MessagePosition&, const MessagePosition&) = default;
};

std::string format_position(const MessagePosition& position, const MacKey& key);

// nullopt unless the text was made by format_position with the same key.
std::optional<MessagePosition> parse_position(std::string_view text, const MacKey& key);

}  // namespace stanchion
