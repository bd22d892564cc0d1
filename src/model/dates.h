// Validity of instants that are read from a disk or a peer.
#pragma once

#include "base/time.h"

namespace stanchion {

// Between 1970 and the end of the year 9999. Anything else was never written, and sums with it
// might overflow.
constexpr bool is_date(Instant t) {
  return t >= Instant() && t < from_millis(253'402'300'800'000);
}

}  // namespace stanchion
