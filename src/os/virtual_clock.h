// The wall clock plus what Timekeeper::advance() added: for checks of dates that must follow when a
// user's test lets a year pass (--virtual-time).
#pragma once

#include "os/clock.h"
#include "os/timekeeper.h"

namespace stanchion::os {

class VirtualClock final : public Clock {
 public:
  // Both must outlive it.
  VirtualClock(Clock& real, const Timekeeper& time) : real_(real), time_(time) {}

  Instant now() override { return real_.now() + time_.advanced(); }

 private:
  Clock& real_;
  const Timekeeper& time_;
};

}  // namespace stanchion::os
