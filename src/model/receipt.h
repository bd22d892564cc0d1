// Receipt handles: opaque to clients, bound to queue + message + receive, unforgeable.
//
//   handle = base64( 01 01 01 | queue u64 | seq u64 | receive u32 | SipHash-2-4-128 of all before )
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "model/ids.h"

namespace stanchion {

struct Receipt {
  QueueId queue;
  Seq seq;
  std::uint32_t receive = 0;  // The message's receive count at that receive.

  friend auto operator<=>(const Receipt&, const Receipt&) = default;
};

std::string format_receipt(const Receipt& receipt, const MacKey& key);

// nullopt unless the handle was made by format_receipt with the same key.
std::optional<Receipt> parse_receipt(std::string_view handle, const MacKey& key);

}  // namespace stanchion
