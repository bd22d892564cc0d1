// Instants and durations of the engine, in milliseconds, as SQS counts them.
//
// The clock types have no now(): code that holds an Instant got it as an argument. Only os/clock.h
// reads the machine's time.
#pragma once

#include <chrono>
#include <cstdint>

namespace stanchion {

struct EngineClock {
  using rep = std::int64_t;
  using period = std::milli;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<EngineClock, duration>;
  static constexpr bool is_steady = false;
};

using Instant = EngineClock::time_point;
using Duration = EngineClock::duration;

// Instants without a date, by which waits are measured: they say how long something has lasted,
// whatever the date. They cannot be compared with an Instant.
struct WaitingClock {
  using rep = EngineClock::rep;
  using period = EngineClock::period;
  using duration = EngineClock::duration;
  using time_point = std::chrono::time_point<WaitingClock, duration>;
  static constexpr bool is_steady = true;
};

using SteadyInstant = WaitingClock::time_point;

// "Never": later than any instant that can be computed from a request.
inline constexpr Instant kNever = Instant::max();

constexpr std::int64_t to_millis(Instant t) {
  return t.time_since_epoch().count();
}
constexpr Instant from_millis(std::int64_t millis) {
  return Instant(Duration(millis));
}
constexpr std::int64_t to_seconds(Instant t) {
  return to_millis(t) / 1000;
}

}  // namespace stanchion
