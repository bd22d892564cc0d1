// The machine's clocks: the only place that reads the time.
#pragma once

#include <chrono>

#include "base/time.h"

namespace stanchion::os {

// The wall clock. Any thread may call now(). It may jump, also backwards; code that needs monotonic
// time asks a Timekeeper.
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

// How much time has passed, without a date. Any thread may call elapsed(), which never goes back
// and never jumps, whatever is done to the wall clock.
class SteadyClock {
 public:
  virtual ~SteadyClock() = default;

  // Counted from some moment before the process began.
  virtual std::chrono::nanoseconds elapsed() = 0;
};

// Linux's CLOCK_BOOTTIME, which also counts the time for which the machine is suspended.
// CLOCK_MONOTONIC does not: with it, a message in flight when a laptop is closed would stay in
// flight in the morning for the rest of its timeout, though its consumer has been gone all night.
class BootClock final : public SteadyClock {
 public:
  std::chrono::nanoseconds elapsed() override;
};

}  // namespace stanchion::os
