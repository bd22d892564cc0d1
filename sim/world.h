// The virtual world: one sequence of events in virtual time, determined by a seed.
//
//   schedule(delay, owner, what) ─▶ events by (time, tie drawn from the seed) ─▶ step() runs the
//   first
//
// True time runs in microseconds and only by stepping. The wall clock of the machine is true time
// plus an offset, and the offset may jump either way; the steady clock jumps when the machine was
// suspended, and the wall clock with it. The auditor uses the time of the server's timekeeper.
// Every event has an owner: a process that dies takes its events with it.
//
// The trace has a line per event. All lines go into a hash, so that two runs of one seed can be
// compared; the last ones are kept for a person.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/time.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/timekeeper.h"
#include "sim/random.h"

namespace stanchion::sim {

using Micros = std::int64_t;

inline constexpr Micros kMillisecond = 1'000;
inline constexpr Micros kSecond = 1'000'000;

// Owners of events: 0 is the world itself, which never dies; every run of the server is another
// one.
using Owner = std::uint64_t;
inline constexpr Owner kWorldOwner = 0;

class World {
 public:
  using What = std::move_only_function<void()>;

  World(std::uint64_t seed, bool verbose);

  Random& random() { return random_; }
  Micros now() const { return now_; }

  void schedule(Micros delay, Owner owner, What what);
  bool step();  // False if nothing is left to happen.
  void forget(Owner owner);
  // Nothing of this owner happens for this long; then everything that waited, in its order.
  void pause(Owner owner, Micros time) { paused_[owner] = std::max(paused_[owner], now_ + time); }
  bool is_paused(Owner owner) const;
  std::uint64_t events_run() const { return events_run_; }

  // The machine's clocks.
  Instant wall() const { return from_millis(now_ / kMillisecond + offset_millis_); }
  std::chrono::microseconds steady() const { return suspended_ + std::chrono::microseconds(now_); }
  void move_wall(std::int64_t millis) { offset_millis_ += millis; }
  void suspend(std::int64_t millis);

  // The times of the processes that run: one of a server, several of a fleet. The clock is that of
  // the one that is behind all others; high_water is the latest instant that any had.
  void join(const os::Timekeeper* time);
  void leave(const os::Timekeeper* time);
  Instant clock() const;
  Instant high_water() const;

  template <class... Args>
  void trace(fmt::format_string<Args...> text, Args&&... args) {
    add_line(fmt::format(text, std::forward<Args>(args)...));
  }
  // Adds a number to the hash without a line.
  void mix(std::uint64_t number);
  std::uint64_t hash() const { return hash_; }
  const std::deque<std::string>& last_lines() const { return lines_; }

 private:
  struct Event {
    Owner owner;
    What what;
  };
  using Key = std::tuple<Micros, std::uint64_t, std::uint64_t>;  // Time, tie, serial.

  void add_line(std::string line);

  Random random_;
  const bool verbose_;
  Micros now_ = 0;
  std::int64_t offset_millis_;
  std::chrono::microseconds suspended_{};
  std::vector<const os::Timekeeper*> times_;
  Instant last_shown_;
  Instant high_water_ = Instant::min();
  std::map<Key, Event> events_;
  std::map<Owner, Micros> paused_;
  std::uint64_t serial_ = 0;
  std::uint64_t events_run_ = 0;
  std::uint64_t hash_ = 0;
  std::deque<std::string> lines_;
};

class WorldClock final : public os::Clock {
 public:
  explicit WorldClock(const World& world, Duration skew = {}) : world_(world), skew_(skew) {}
  Instant now() override { return world_.wall() + skew_; }
  void set_skew(Duration skew) { skew_ = skew; }

 private:
  const World& world_;
  Duration skew_;
};

class WorldSteadyClock final : public os::SteadyClock {
 public:
  explicit WorldSteadyClock(const World& world) : world_(world) {}
  std::chrono::nanoseconds elapsed() override { return world_.steady(); }

 private:
  const World& world_;
};

class WorldEntropy final : public os::Entropy {
 public:
  explicit WorldEntropy(Random random) : random_(random) {}
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_.next() >> 56);
  }

 private:
  Random random_;
};

}  // namespace stanchion::sim
