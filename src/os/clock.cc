#include "os/clock.h"

#include <chrono>

namespace stanchion::os {

Instant SystemClock::now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Instant(std::chrono::duration_cast<Duration>(since_epoch));
}

}  // namespace stanchion::os
