// The time of the queues: it has dates like the wall clock's, and the pace of the steady clock.
//
//   wall clock   ──┐ looked at once a second
//                  ▼
//   steady clock ─▶ time = where it began + what has passed ± what is being made up ─▶ read()
//
// Nothing that happens to the wall clock makes time jump, stop or run back. If the two differ, the
// difference is made up little by little: time runs a tenth slower while it is ahead, and a
// hundredth faster while it is behind. Slower does no harm, because a timeout that lasts a little
// longer breaks no promise; faster is kept small, because a visibility timeout that is too short
// gives a message to two consumers.
//
//   TK1  Time never runs back, on whichever threads it is read.
//   TK2  In any stretch of steady time, between 9/10 and 101/100 of it pass, plus what advance()
//        added.
//   TK3  While the wall clock does not jump, the difference shrinks to nothing and stays there.
//   TK4  TimeReading::steady, by which waits are measured, always has the pace of the steady clock.
//
// docs/adr/0017-time.md says why.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/time.h"
#include "os/clock.h"

namespace stanchion::os {

struct TimeReading {
  Instant now;
  SteadyInstant steady;
  bool hurries = false;  // Time is behind the wall clock and runs faster than the steady clock.

  // The least steady time that must have passed while time advanced by this much.
  Duration soonest(Duration by) const;
};

// Where shards get their time from. Any thread may call read().
class Time {
 public:
  virtual ~Time() = default;
  virtual TimeReading read() = 0;
};

// An event of the wall clock that a person should know about.
struct ClockNews {
  enum class Kind {
    kSetBack,
    kSetForward,
    kMadeUp,  // What was reported before no longer holds.
  };
  Kind kind;
  Duration step;        // By how much the clock was moved, always positive.
  Duration difference;  // How far time is ahead of the clock now; negative: behind.
};

class Timekeeper final : public Time {
 public:
  static constexpr std::int64_t kSlowerBy = 10;    // A tenth.
  static constexpr std::int64_t kFasterBy = 100;   // A hundredth.
  static constexpr Duration kLookInterval{1'000};  // How often the wall clock is read.
  static constexpr Duration kNegligible{5};        // Smaller differences are left as they are.
  static constexpr Duration kNewsworthy{1'000};
  static constexpr Duration kNewsInterval{60'000};

  // Called on the thread that noticed the event; must not call back into the timekeeper.
  using OnNews = std::function<void(const ClockNews&)>;

  // Both clocks must outlive the timekeeper.
  Timekeeper(Clock& wall, SteadyClock& steady, OnNews on_news = nullptr);

  // Once, before anything else: time begins at `floor`, the last recorded instant, or at the wall
  // clock's time if that is later, because nobody knows for how long there was no process. Returns
  // by how much the wall clock is ahead of the floor; negative: behind.
  Duration begin(Instant floor);

  TimeReading read() override;
  // The same without reading the wall clock, for callers that only watch. Any thread.
  TimeReading peek() const;

  // How far time is ahead of the wall clock, not counting what advance() added; negative: behind; 0
  // if the difference is negligible. Any thread.
  Duration difference();

  // Any thread: moves time forward, for tests of users. REQUIRES: by >= 0.
  void advance(Duration by);
  Duration advanced() const;

 private:
  using Micros = std::chrono::microseconds;

  // Time from `elapsed` on: begins with `time` and makes up what is `owed`; positive: by running
  // faster.
  struct Stretch {
    Micros elapsed{};
    Micros time{};  // Since 1970.
    Micros owed{};
    Micros advanced{};  // Sum of all that advance() added.

    Micros made_up(Micros at) const;
    Micros time_at(Micros at) const { return time + (at - elapsed) + made_up(at); }
  };
  // How far the wall clock is ahead of time, and when it was read; false if the thread was held up
  // meanwhile, so that the reading is useless.
  struct Sight {
    Micros elapsed;
    Micros beyond;
  };

  Micros elapsed() const { return std::chrono::duration_cast<Micros>(steady_.elapsed()); }
  Stretch load_stretch() const;
  void publish(Micros owed, Micros advance);  // REQUIRES: mutex_ is held.
  bool look_at_wall(Sight& sight);            // REQUIRES: mutex_ is held.
  void discipline();                          // REQUIRES: mutex_ is held.
  void tell(const Sight& sight, Micros step);

  Clock& wall_;
  SteadyClock& steady_;
  const OnNews on_news_;

  // The stretch, for readers without a lock (a seqlock): they read its parts again if the version
  // is odd or changed meanwhile. 0: time has not begun.
  std::atomic<std::uint64_t> version_{0};
  std::atomic<Micros::rep> stretch_elapsed_{0}, stretch_time_{0}, stretch_owed_{0}, advanced_{0};
  std::atomic<Duration::rep> next_look_{0};  // By TimeReading::steady.

  std::mutex mutex_;  // Held by whoever writes the stretch.
  Micros left_{};     // A negligible part of the difference, which is not made up.
  Micros untold_{};   // How far the wall clock was moved since the last report.
  Micros told_at_ = Micros::min();
  bool told_ = false;  // There is a difference that is not made up yet.
};

}  // namespace stanchion::os
