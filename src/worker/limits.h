// How much a queue's worker may do: the rate, and less of everything while jobs fail. Pure: the time
// and the random numbers are arguments.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "worker/options.h"
#include "worker/task.h"

namespace stanchion::worker {

// A token bucket with room for one second. Tokens are taken before a receive and the unused ones
// given back, so that nothing is received that must wait for the rate.
class RateLimit {
 public:
  explicit RateLimit(double per_second)
      : rate_(per_second), room_(std::max(1.0, per_second)), tokens_(room_) {}

  // How many messages may be received now.
  std::size_t available(Instant now) {
    if (rate_ <= 0) return SIZE_MAX;
    const double passed = std::chrono::duration<double>(now - last_).count();
    // What a receive under way has taken still has its place in the bucket.
    tokens_ = std::min(room_ - static_cast<double>(taken_), tokens_ + rate_ * passed);
    last_ = now;
    return tokens_ < 1 ? 0 : static_cast<std::size_t>(tokens_);
  }
  // REQUIRES: count <= available().
  void take(std::size_t count) {
    if (rate_ <= 0) return;
    taken_ += count;
    tokens_ -= static_cast<double>(count);
  }
  // A receive that had taken `count` ended with `used` messages.
  void settle(std::size_t count, std::size_t used) {
    if (rate_ <= 0) return;
    taken_ -= count;
    tokens_ += static_cast<double>(count - std::min(count, used));
  }
  // When there will be a token; nothing: only when a receive has ended, or now.
  std::optional<Instant> next(Instant now) const {
    if (rate_ <= 0 || tokens_ >= 1 || room_ - static_cast<double>(taken_) < 1) return std::nullopt;
    return now + std::chrono::milliseconds(
                     static_cast<std::int64_t>(std::ceil((1 - tokens_) / rate_ * 1000)));
  }

 private:
  double rate_;
  double room_;
  double tokens_;
  std::size_t taken_ = 0;
  Instant last_{};  // The bucket is full at first.
};

// Halves the concurrency after every round of outcomes with too many failures, and doubles it after
// every better one.
class FailureThrottle {
 public:
  static constexpr int kRound = 10;
  static constexpr int kLevelMax = 7;

  explicit FailureThrottle(double share_max, int round = kRound)
      : share_max_(share_max), round_(round) {}

  void record(bool failed) {
    ++outcomes_;
    failures_ += failed ? 1 : 0;
    if (outcomes_ < round_) return;
    const bool bad = failures_ >= share_max_ * outcomes_;
    level_ = std::clamp(level_ + (bad ? 1 : -1), 0, kLevelMax);
    outcomes_ = failures_ = 0;
  }
  std::size_t allowed(std::size_t concurrency) const {
    return std::max<std::size_t>(1, concurrency >> level_);
  }
  // The least time between two receives.
  std::chrono::milliseconds pause() const {
    return std::chrono::milliseconds(level_ == 0 ? 0 : 50 << level_);
  }

 private:
  double share_max_;
  int round_;
  int outcomes_ = 0;
  int failures_ = 0;
  int level_ = 0;
};

// `random` is from 0 to 1.
inline std::chrono::seconds backoff_delay(const BackoffOptions& options, std::int64_t receive_count,
                                          double random) {
  const double doublings = static_cast<double>(std::clamp<std::int64_t>(receive_count - 1, 0, 40));
  const double most = std::min(static_cast<double>(options.max.count()),
                               static_cast<double>(options.base.count()) * std::exp2(doublings));
  return std::chrono::seconds(std::llround(most * random));
}

}  // namespace stanchion::worker
