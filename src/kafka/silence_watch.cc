#include "kafka/silence_watch.h"

#include <utility>

namespace stanchion::kafka {

void SilenceWatch::heard(Instant now) {
  since_ = now;
  ask_at_ = {};
  end_.reset();
}

SilenceWatch::Step SilenceWatch::look(Instant now, journal::LogOffset reached) {
  if (!since_) heard(now);
  if (now - *since_ < patience_) return Step::kNone;
  if (const auto end = std::exchange(end_, std::nullopt)) {
    if (*end > reached) return Step::kGiveUp;
    heard(now);
    return Step::kNone;
  }
  return now < ask_at_ ? Step::kNone : Step::kAsk;
}

}  // namespace stanchion::kafka
