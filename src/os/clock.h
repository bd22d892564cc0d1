// The machine's wall clock: the only place that asks what time it is.
#pragma once

#include "base/time.h"

namespace stanchion::os {

// Any thread may call now(). Like every wall clock it may jump, also backwards; who needs order
// keeps the largest instant seen.
class Clock {
 public:
  virtual ~Clock() = default;

  // Milliseconds since 1970-01-01 UTC.
  virtual Instant now() = 0;
};

class SystemClock final : public Clock {
 public:
  Instant now() override;
};

}  // namespace stanchion::os
