// A clock that can be moved forward by order, for users' tests: a 12-hour visibility timeout passes
// in a millisecond. Only installed when the server was told to (--virtual-time).
#pragma once

#include <atomic>

#include "os/clock.h"

namespace stanchion::service {

class VirtualClock final : public os::Clock {
 public:
  explicit VirtualClock(os::Clock& real) : real_(real) {}

  Instant now() override { return real_.now() + Duration(ahead_.load()); }

  // Any thread. REQUIRES: by >= 0.
  void advance(Duration by) { ahead_.fetch_add(by.count()); }
  Duration ahead() const { return Duration(ahead_.load()); }

 private:
  os::Clock& real_;
  std::atomic<Duration::rep> ahead_{0};
};

}  // namespace stanchion::service
