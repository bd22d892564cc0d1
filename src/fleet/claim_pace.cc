#include "fleet/claim_pace.h"

#include <algorithm>

#include "fleet/limits.h"

namespace stanchion::fleet {

void ClaimPace::lost(SteadyInstant now) {
  const bool was_held = served_since_ && now - *served_since_ >= kClaimHeld;
  const bool is_old = lost_at_ && now - *lost_at_ >= kLossMemory;
  if (was_held || is_old) losses_ = 0;
  served_since_.reset();
  lost_at_ = now;
  ++losses_;
  pause_ = losses_ <= kClaimsAtOnce ? Duration(0)
                                    : std::clamp(2 * pause_, kClaimPauseMin, kClaimPauseMax);
}

Duration ClaimPace::left(SteadyInstant now) const {
  return lost_at_ ? std::max(Duration(0), *lost_at_ + pause_ - now) : Duration(0);
}

}  // namespace stanchion::fleet
