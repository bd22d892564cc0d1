#include "worker/task.h"

#include "os/clock.h"

namespace stanchion::worker {

Instant Clock::now() {
  return Instant(std::chrono::duration_cast<duration>(os::BootClock().elapsed()));
}

const char* name_of(Loss loss) {
  switch (loss) {
    case Loss::kGone:
      return "gone";
    case Loss::kCapped:
      return "capped";
    case Loss::kExpired:
      return "expired";
    case Loss::kStopped:
      return "stopped";
  }
  return "";
}

Instant TaskInformation::visibility_end() const {
  return Instant(Clock::duration(state->visibility_end.load(std::memory_order_relaxed)));
}

std::optional<Loss> TaskInformation::loss() const {
  const int loss = state->loss.load(std::memory_order_acquire);
  if (loss < 0) return std::nullopt;
  return static_cast<Loss>(loss);
}

void TaskInformation::set_visibility_end(Instant end) const {
  state->visibility_end.store(end.time_since_epoch().count(), std::memory_order_relaxed);
}

void TaskInformation::lose(Loss loss) const {
  int none = -1;
  if (state->loss.compare_exchange_strong(none, static_cast<int>(loss))) state->stop.request_stop();
}

}  // namespace stanchion::worker
