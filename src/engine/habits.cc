#include "engine/habits.h"

#include <algorithm>
#include <chrono>

namespace stanchion::engine {
namespace {

// After this long, a message that was held for long no longer counts.
constexpr Duration kHeldRemembered = std::chrono::minutes(10);

constexpr Duration kHalfLife = std::chrono::minutes(10);
constexpr std::uint64_t kParts = 1'024;

std::int64_t epoch_of(Instant now) {
  return now.time_since_epoch() / kHalfLife;
}

}  // namespace

std::uint64_t RecentCount::left(Instant now) const {
  const std::int64_t halvings = std::max<std::int64_t>(0, epoch_of(now) - epoch_);
  return halvings >= 64 ? 0 : parts_ >> halvings;
}

void RecentCount::add(std::uint64_t amount, Instant now) {
  parts_ = left(now) + amount * kParts;
  epoch_ = epoch_of(now);
}

std::uint64_t RecentCount::at(Instant now) const {
  return left(now) / kParts;
}

void Habits::deleted_late(Duration held, Instant now) {
  late_deletes.add(1, now);
  if (held < held_longest && now - held_longest_at < kHeldRemembered) return;
  held_longest = held;
  held_longest_at = now;
}

HabitsAt::HabitsAt(const Habits& habits, Instant now)
    : single_sends(habits.single_sends.at(now)),
      batched_sends(habits.batched_sends.at(now)),
      full_receives(habits.full_receives.at(now)),
      empty_polls(habits.empty_polls.at(now)),
      deletes(habits.deletes.at(now)),
      late_deletes(habits.late_deletes.at(now)),
      often_received(habits.often_received.at(now)),
      held_longest(habits.held_longest) {}

}  // namespace stanchion::engine
