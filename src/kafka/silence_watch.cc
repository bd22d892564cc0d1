#include "kafka/silence_watch.h"

#include <utility>

namespace stanchion::kafka {

void SilenceWatch::heard(Instant now) {
  since_ = now;
  ask_at_ = {};
  end_.reset();
  behind_since_.reset();
}

SilenceWatch::Step SilenceWatch::look(Instant now, journal::LogOffset reached) {
  if (!since_) heard(now);
  if (now - *since_ < patience_) return Step::kNone;
  if (const auto end = std::exchange(end_, std::nullopt)) {
    if (*end <= reached) {
      heard(now);
      return Step::kNone;
    }
    if (!behind_since_) behind_since_ = now;
    if (now - *behind_since_ >= ask_again_) return Step::kGiveUp;
  }
  return now < ask_at_ ? Step::kNone : Step::kAsk;
}

}  // namespace stanchion::kafka
