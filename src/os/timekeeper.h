// The time that the queues live by: dates like the wall clock's, at the pace of the steady clock.
//
//   wall clock   ──┐ looked at once a second
//                  ▼
//   steady clock ─▶ time = where it began + what has passed ± what is being made up ─▶ read()
//
// Nothing that happens to the wall clock makes time jump, stop or run back. If the two differ, the
// difference is made up little by little: time runs a tenth slower while it is ahead, and a
// hundredth faster while it is behind. Slower hurts nobody, because a timeout that lasts a little
// longer breaks no promise; faster is kept small, because a visibility timeout that is too short
// gives a message to two consumers.
//
//   TK1  Time never runs back, whichever threads look at it.
//   TK2  In any stretch of steady time, between 9/10 and 101/100 of it pass, and what was moved by
//       order.
//   TK3  While the wall clock does not jump, the difference shrinks to nothing and stays there.
//   TK4  What waits are measured by (TimeReading::steady) has the pace of the steady clock, always.
//
// Why it is so: docs/adr/0017-time.md.
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

  // The least steady time in which time can have moved on by so much.
  Duration soonest(Duration by) const;
};

// Where shards get their time from. Any thread may call read().
class Time {
 public:
  virtual ~Time() = default;
  virtual TimeReading read() = 0;
};

// Something that a person should know of the wall clock.
struct ClockNews {
  enum class Kind {
    kSetBack,
    kSetForward,
    kMadeUp,  // What had been told before is no more.
  };
  Kind kind;
  Duration step;        // By how much it was moved, always positive.
  Duration difference;  // How far time is ahead of it now; negative: behind.
};

class Timekeeper final : public Time {
 public:
  static constexpr std::int64_t kSlowerBy = 10;    // A tenth.
  static constexpr std::int64_t kFasterBy = 100;   // A hundredth.
  static constexpr Duration kLookInterval{1'000};  // How often the wall clock is looked at.
  static constexpr Duration kNegligible{5};        // Smaller differences are left as they are.
  static constexpr Duration kNewsworthy{1'000};
  static constexpr Duration kNewsInterval{60'000};

  // Called on whichever thread found out; must not call back into the timekeeper.
  using OnNews = std::function<void(const ClockNews&)>;

  // Both clocks must outlive it.
  Timekeeper(Clock& wall, SteadyClock& steady, OnNews on_news = nullptr);

  // Once, before anything else: time begins at `floor`, the last instant that was written down, or
  // at the wall clock's if that is later: nobody knows for how long there was no process. Returns
  // by how much the wall clock is ahead of the floor; negative: behind.
  Duration begin(Instant floor);

  TimeReading read() override;
  // The same without a look at the wall clock, for who only watches. Any thread.
  TimeReading peek() const;

  // How far time is ahead of the wall clock (what was moved by order does not count); negative:
  // behind; 0 if it is negligible. Any thread.
  Duration difference();

  // Any thread: moves time forward by order. REQUIRES: by >= 0.
  void advance(Duration by);
  Duration advanced() const;

 private:
  using Micros = std::chrono::microseconds;

  // Time from `elapsed` on: begins with `time` and makes up what is `owed`, positive: by hurrying.
  struct Stretch {
    Micros elapsed{};
    Micros time{};  // Since 1970.
    Micros owed{};
    Micros advanced{};  // By order, altogether.

    Micros made_up(Micros at) const;
    Micros time_at(Micros at) const { return time + (at - elapsed) + made_up(at); }
  };
  // What the wall clock shows beyond time, and when it was asked; false if the thread was held up
  // meanwhile, so that nobody knows.
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

  // The stretch, for readers without a lock: its parts are read again if the version is odd or
  // changed meanwhile. 0: time has not begun.
  std::atomic<std::uint64_t> version_{0};
  std::atomic<Micros::rep> stretch_elapsed_{0}, stretch_time_{0}, stretch_owed_{0}, advanced_{0};
  std::atomic<Duration::rep> next_look_{0};  // By TimeReading::steady.

  std::mutex mutex_;  // Who writes the stretch.
  Micros left_{};     // A negligible part of the difference, which is not owed.
  Micros untold_{};   // How far the wall clock was moved since that was last told.
  Micros told_at_ = Micros::min();
  bool told_ = false;  // Of a difference that is not made up yet.
};

}  // namespace stanchion::os
