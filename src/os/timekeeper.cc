#include "os/timekeeper.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"

namespace stanchion::os {
namespace {

using Micros = std::chrono::microseconds;

// If a thread is held up for longer than this between reading two clocks, it has not read them at
// the same time.
constexpr Micros kHeldUp{2'000};
constexpr int kLooksMax = 3;

Instant to_instant(Micros since_epoch) {
  return Instant(std::chrono::floor<Duration>(since_epoch));
}

Micros to_micros(Instant instant) {
  return instant.time_since_epoch();
}

}  // namespace

Duration TimeReading::soonest(Duration by) const {
  return hurries ? by - by / (Timekeeper::kFasterBy + 1) : by;
}

Micros Timekeeper::Stretch::made_up(Micros at) const {
  const Micros passed = at - elapsed;
  return owed < Micros(0) ? -std::min(passed / kSlowerBy, -owed)
                          : std::min(passed / kFasterBy, owed);
}

Timekeeper::Timekeeper(Clock& wall, SteadyClock& steady, OnNews on_news)
    : wall_(wall), steady_(steady), on_news_(std::move(on_news)) {}

Duration Timekeeper::begin(Instant floor) {
  const std::lock_guard lock(mutex_);
  CHECK(version_ == 0, "time begins once");
  // A clock that was never set may show anything, but dates before 1970 do not exist here.
  const Instant wall = std::max(wall_.now(), Instant());
  stretch_elapsed_ = elapsed().count();
  stretch_time_ = to_micros(std::max(floor, wall)).count();
  stretch_owed_ = std::min<Micros>(wall - floor, Micros(0)).count();
  told_ = floor - wall >= kNewsworthy;
  version_ = 2;
  return wall - floor;
}

TimeReading Timekeeper::peek() const {
  Stretch stretch;
  Micros at;
  for (;;) {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0) {
      std::this_thread::yield();
      continue;
    }
    CHECK(version != 0, "time has begun");
    stretch = load_stretch();
    at = elapsed();
    if (version_.load(std::memory_order_relaxed) == version) break;
  }
  // The steady clock should not run back, but machines have been seen where it does.
  at = std::max(at, stretch.elapsed);
  return {.now = to_instant(stretch.time_at(at)),
          .steady = SteadyInstant(std::chrono::floor<Duration>(at + stretch.advanced)),
          .hurries = stretch.owed > Micros(0)};
}

TimeReading Timekeeper::read() {
  const TimeReading reading = peek();
  if (reading.steady.time_since_epoch().count() >= next_look_.load(std::memory_order_relaxed)) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) discipline();
  }
  return reading;
}

// Each load acquires, so that neither it nor anything after it is moved before an earlier load.
Timekeeper::Stretch Timekeeper::load_stretch() const {
  return {.elapsed = Micros(stretch_elapsed_.load(std::memory_order_acquire)),
          .time = Micros(stretch_time_.load(std::memory_order_acquire)),
          .owed = Micros(stretch_owed_.load(std::memory_order_acquire)),
          .advanced = Micros(advanced_.load(std::memory_order_acquire))};
}

// A reader that saw the old stretch read the steady clock before the new stretch begins (TK1).
void Timekeeper::publish(Micros owed, Micros advance) {
  const Stretch old = load_stretch();
  version_.fetch_add(1);
  const Micros at = std::max(elapsed(), old.elapsed);
  stretch_elapsed_.store(at.count(), std::memory_order_release);
  stretch_time_.store((old.time_at(at) + advance).count(), std::memory_order_release);
  stretch_owed_.store(owed.count(), std::memory_order_release);
  advanced_.store((old.advanced + advance).count(), std::memory_order_release);
  version_.fetch_add(1);
}

bool Timekeeper::look_at_wall(Sight& sight) {
  const Stretch stretch = load_stretch();
  for (int look = 0; look < kLooksMax; ++look) {
    const Micros before = std::max(elapsed(), stretch.elapsed);
    const Micros wall = to_micros(wall_.now()) + stretch.advanced;
    const Micros after = std::max(elapsed(), stretch.elapsed);
    sight = {after, wall - stretch.time_at(after)};
    if (after - before <= kHeldUp) return true;
  }
  return false;
}

void Timekeeper::discipline() {
  Sight sight{};
  const bool seen = look_at_wall(sight);
  const Duration waited = std::chrono::floor<Duration>(sight.elapsed) + advanced();
  next_look_.store((waited + kLookInterval).count(), std::memory_order_relaxed);
  if (!seen) return;
  const Stretch stretch = load_stretch();
  const Micros expected = left_ + stretch.owed - stretch.made_up(sight.elapsed);
  const Micros owed = std::chrono::abs(sight.beyond) < kNegligible ? Micros(0) : sight.beyond;
  left_ = sight.beyond - owed;
  if (owed != Micros(0) || stretch.owed != Micros(0)) publish(owed, Micros(0));
  tell(sight, sight.beyond - expected);
}

void Timekeeper::tell(const Sight& sight, Micros step) {
  untold_ += step;
  if (!on_news_) return;
  if (told_at_ != Micros::min() && sight.elapsed < told_at_ + kNewsInterval) return;
  const auto to_duration = [](Micros micros) { return std::chrono::round<Duration>(micros); };
  const Duration difference = to_duration(-sight.beyond);
  if (std::chrono::abs(untold_) >= kNewsworthy) {
    const auto kind =
        untold_ < Micros(0) ? ClockNews::Kind::kSetBack : ClockNews::Kind::kSetForward;
    const Duration moved = to_duration(std::chrono::abs(std::exchange(untold_, Micros(0))));
    told_at_ = sight.elapsed;
    told_ = true;
    on_news_({kind, moved, difference});
  } else if (told_ && std::chrono::abs(difference) < kNegligible) {
    told_at_ = sight.elapsed;
    told_ = false;
    on_news_({ClockNews::Kind::kMadeUp, Duration(0), difference});
  }
}

Duration Timekeeper::difference() {
  const std::lock_guard lock(mutex_);
  CHECK(version_ != 0, "time has begun");
  discipline();
  Sight sight{};
  look_at_wall(sight);  // If this thread was held up, a little imprecision does not matter.
  if (std::chrono::abs(sight.beyond) < kNegligible) return Duration(0);
  return std::chrono::round<Duration>(-sight.beyond);
}

void Timekeeper::advance(Duration by) {
  CHECK(by >= Duration(0), "time does not run back");
  const std::lock_guard lock(mutex_);
  CHECK(version_ != 0, "time has begun");
  const Stretch stretch = load_stretch();
  publish(stretch.owed - stretch.made_up(std::max(elapsed(), stretch.elapsed)), by);
}

Duration Timekeeper::advanced() const {
  return std::chrono::round<Duration>(Micros(advanced_.load()));
}

}  // namespace stanchion::os
