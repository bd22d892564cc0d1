#include "os/clock.h"

#include <time.h>

#include <cerrno>

#include "base/check.h"

namespace stanchion::os {

Instant SystemClock::now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return Instant(std::chrono::floor<Duration>(since_epoch));
}

std::chrono::nanoseconds BootClock::elapsed() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_BOOTTIME, &time) == 0, "every Linux since 2.6.39 has this clock");
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace stanchion::os
