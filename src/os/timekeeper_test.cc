// The timekeeper with a wall clock and a steady clock that are plain numbers.
#include "os/timekeeper.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace stanchion::os {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::nanoseconds;

constexpr Instant kBegin = from_millis(1'720'000'000'000);

struct FakeWall final : Clock {
  Instant now() override {
    const Instant seen = at;
    on_look();
    return seen;
  }
  Instant at = kBegin;
  std::function<void()> on_look = [] {};
};

struct FakeSteady final : SteadyClock {
  nanoseconds elapsed() override { return at; }
  nanoseconds at = 500s;
};

class TimekeeperTest : public testing::Test {
 protected:
  // Both clocks advance, and time is read now and then, as shards do.
  void pass(Duration by, Duration step = 100ms) {
    for (Duration done{}; done < by; done += step) {
      const Duration one = std::min(step, by - done);
      wall.at += one;
      steady.at += one;
      keeper.read();
    }
  }

  Instant now() { return keeper.read().now; }

  FakeWall wall;
  FakeSteady steady;
  std::vector<ClockNews> news;
  Timekeeper keeper{wall, steady, [this](const ClockNews& one) { news.push_back(one); }};
};

TEST_F(TimekeeperTest, IsTheWallClockWhileNothingHappensToThat) {
  keeper.begin(Instant());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(now(), wall.at);
    pass(777ms);
  }
  EXPECT_EQ(keeper.difference(), 0ms);
  EXPECT_TRUE(news.empty());
}

TEST_F(TimekeeperTest, GoesOnWhenTheWallClockIsSetBack) {
  keeper.begin(Instant());
  wall.at -= 1h;
  pass(6s);
  EXPECT_GE(now(), kBegin + 5400ms) << "9/10 of six seconds";
  EXPECT_LE(now(), kBegin + 6s);
  EXPECT_EQ(keeper.read().steady - SteadyInstant(500s), 6s) << "waits have their own measure";
}

TEST_F(TimekeeperTest, RunsATenthSlowerUntilTheWallClockHasCaughtUp) {
  keeper.begin(Instant());
  wall.at -= 1h;
  pass(1s);
  const Instant then = now();
  pass(10min, 1s);
  EXPECT_EQ(now() - then, 9min);
  pass(9h, 1s);
  EXPECT_GT(keeper.difference(), 4min);
  pass(51min, 1s);
  EXPECT_LE(std::chrono::abs(keeper.difference()), Timekeeper::kNegligible);
  pass(1h, 1s);
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible) << "and stays there";
}

TEST_F(TimekeeperTest, RunsAHundredthFasterAfterAJumpForward) {
  keeper.begin(Instant());
  wall.at += 24h;
  pass(1s);
  const Instant then = now();
  EXPECT_LT(then, kBegin + 2s) << "a day's messages do not expire";
  pass(100s);
  EXPECT_EQ(now() - then, 101s);
  EXPECT_TRUE(keeper.read().hurries);
  wall.at -= 24h;
  pass(2min);
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible);
  EXPECT_FALSE(keeper.read().hurries);
}

TEST_F(TimekeeperTest, WhatIsMadeUpDoesNotOvershootWhenNobodyLooksForLong) {
  keeper.begin(Instant());
  wall.at -= 10s;
  pass(1s);
  wall.at += 5h;
  steady.at += 5h;
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible);
  wall.at += 10s;
  pass(1s);
  wall.at += 5h;
  steady.at += 5h;
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible);
}

TEST_F(TimekeeperTest, BeginsWhereItWasIfTheWallClockIsBehindThat) {
  EXPECT_EQ(keeper.begin(kBegin + 2h), -2h);
  EXPECT_EQ(now(), kBegin + 2h);
  pass(10s);
  EXPECT_GE(now(), kBegin + 2h + 9s);
  EXPECT_LE(now(), kBegin + 2h + 10s);
  EXPECT_TRUE(news.empty()) << "who began it was told";
  pass(20h, 1s);
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, ClockNews::Kind::kMadeUp);
}

TEST_F(TimekeeperTest, BeginsWithTheWallClockIfThatIsAhead) {
  EXPECT_EQ(keeper.begin(kBegin - 168h), 168h);
  EXPECT_EQ(now(), kBegin);
  EXPECT_EQ(keeper.difference(), 0ms);
}

TEST_F(TimekeeperTest, HasNoDateBefore1970) {
  wall.at = Instant(-1h);
  keeper.begin(Instant());
  EXPECT_EQ(now(), Instant());
  pass(10s);
  EXPECT_GE(now(), Instant(9s));
}

TEST_F(TimekeeperTest, LooksAtTheWallClockOnceASecondOnly) {
  keeper.begin(Instant());
  int looks = 0;
  wall.on_look = [&] { ++looks; };
  pass(10s, 1ms);
  EXPECT_GE(looks, 9);
  EXPECT_LE(looks, 11);
}

TEST_F(TimekeeperTest, AThreadThatIsHeldUpBetweenTheClocksDoesNotMistakeThatForAJump) {
  keeper.begin(Instant());
  // The reading thread is held up for a minute right after the wall clock was read.
  bool held_up = true;
  wall.on_look = [&] {
    if (held_up) steady.at += 1min, wall.at += 1min;
  };
  pass(10s);
  held_up = false;
  EXPECT_EQ(now(), Instant(kBegin) + duration_cast<Duration>(steady.at - 500s));
  EXPECT_TRUE(news.empty());
}

TEST_F(TimekeeperTest, ASteadyClockThatRunsBackDoesNotTakeTimeWithIt) {
  keeper.begin(Instant());
  wall.at -= 1min;
  pass(10s);
  const Instant then = now();
  steady.at -= 1s;
  EXPECT_GE(now(), then - 1s) << "no further than the stretch that was begun";
  steady.at -= 400s;
  EXPECT_GE(now(), kBegin);
}

TEST_F(TimekeeperTest, TellsOnceHowFarTheClockWasMovedAndOnceThatItIsMadeUp) {
  keeper.begin(Instant());
  pass(1s);
  wall.at -= 20s;
  pass(10s);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0].kind, ClockNews::Kind::kSetBack);
  EXPECT_NEAR(static_cast<double>(news[0].step.count()), 20'000, 2);
  EXPECT_NEAR(static_cast<double>(news[0].difference.count()), 20'000, 2);
  pass(200s);
  ASSERT_EQ(news.size(), 2u);
  EXPECT_EQ(news[1].kind, ClockNews::Kind::kMadeUp);
  pass(1h, 1s);
  EXPECT_EQ(news.size(), 2u);
  wall.at += 3s;
  pass(2s);
  ASSERT_EQ(news.size(), 3u);
  EXPECT_EQ(news[2].kind, ClockNews::Kind::kSetForward);
  EXPECT_NEAR(static_cast<double>(news[2].difference.count()), -3'000, 15);
}

TEST_F(TimekeeperTest, DoesNotFloodTheLogWhenSomebodyPlaysWithTheClock) {
  keeper.begin(Instant());
  for (int i = 0; i < 600; ++i) {
    wall.at += i % 2 == 0 ? 1h : -2h;
    pass(1s);
  }
  EXPECT_GE(news.size(), 2u);
  EXPECT_LE(news.size(), 11u) << "once a minute";
}

TEST_F(TimekeeperTest, ATinyDifferenceIsNeitherMadeUpNorEverToldOf) {
  keeper.begin(Instant());
  wall.at -= 4ms;
  pass(10h, 1s);
  EXPECT_EQ(now(), wall.at + 4ms);
  EXPECT_TRUE(news.empty());
}

TEST_F(TimekeeperTest, IsMovedByOrderWithoutADifferenceToTheWallClock) {
  keeper.begin(Instant());
  pass(10s);
  keeper.advance(12h);
  EXPECT_EQ(now(), kBegin + 10s + 12h);
  EXPECT_EQ(keeper.read().steady - SteadyInstant(500s), 10s + 12h) << "waits are over, too";
  EXPECT_EQ(keeper.difference(), 0ms);
  wall.at -= 1h;
  pass(1min);
  keeper.advance(1s);
  EXPECT_GE(keeper.difference(), 59min);
  EXPECT_LE(keeper.difference(), 60min);
  EXPECT_EQ(keeper.advanced(), 12h + 1s);
}

TEST_F(TimekeeperTest, SaysHowSoonSomethingCanBeDue) {
  keeper.begin(Instant());
  EXPECT_EQ(keeper.read().soonest(5s), 5s);
  wall.at += 1h;
  pass(2s);
  const TimeReading before = keeper.read();
  const Duration wait = before.soonest(5050ms);
  EXPECT_EQ(wait, 5s);
  pass(wait, wait);
  EXPECT_GE(now(), before.now + 5049ms);
}

// TK1 to TK4 whatever the clocks do.
TEST_F(TimekeeperTest, KeepsItsPromisesWhateverTheWallClockDoes) {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  keeper.begin(kBegin + Duration(below(7'200'000) - 3'600'000));
  for (int i = 0; i < 200'000; ++i) {
    const TimeReading before = keeper.read();
    if (below(50) == 0) wall.at += Duration(below(172'800'000) - 86'400'000);
    if (below(50) == 0) wall.at += Duration(below(100) - 50);
    const Duration by(below(10) == 0 ? below(3'600'000) : below(50));
    steady.at += by;
    wall.at += by;
    const TimeReading after = keeper.read();
    ASSERT_EQ(after.steady - before.steady, by) << i;
    ASSERT_GE(after.now - before.now, by - by / 10 - 1ms) << i;
    ASSERT_LE(after.now - before.now, by + by / 100 + 1ms) << i;
    ASSERT_GE(after.now, before.now) << i;
    ASSERT_LE(before.soonest(after.now - before.now), by + 1ms) << i;
  }
  wall.at = now() + Duration(below(7'200'000) - 3'600'000);
  pass(110h, 10s);
  EXPECT_LE(std::chrono::abs(now() - wall.at), Timekeeper::kNegligible);
}

// TK1 with real threads: no thread sees an instant earlier than one that another thread saw before.
TEST(TimekeeperThreads, AgreeOnOneTimeWhileTheWallClockJumps) {
  struct JumpingWall final : Clock {
    Instant now() override { return kBegin + Duration(offset.load()); }
    std::atomic<std::int64_t> offset{0};
  } wall;
  // Runs a thousand times faster than the machine's clock, so that the wall clock is read often.
  struct FastClock final : SteadyClock {
    nanoseconds elapsed() override { return real.elapsed() * 1000; }
    BootClock real;
  } fast;
  Timekeeper keeper(wall, fast);
  keeper.begin(Instant());
  std::atomic<Instant::rep> latest{0};
  std::atomic<bool> ran_back{false};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50'000; ++i) {
        const Instant::rep seen = latest.load();
        const Instant::rep mine = to_millis(keeper.read().now);
        if (mine < seen) ran_back = true;
        if (mine > seen) latest = std::max(latest.load(), mine);
        if (i % 100 == 0) wall.offset = i % 200 == 0 ? 3'600'000 : -3'600'000;
        if (i % 5000 == 0) keeper.difference();
        if (i % 7000 == 0) keeper.advance(Duration(3));
      }
    });
  threads.clear();
  EXPECT_FALSE(ran_back);
}

TEST(BootClock, CountsAtLeastWhatTheMonotonicClockDoes) {
  timespec monotonic{};
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  BootClock clock;
  const nanoseconds first = clock.elapsed();
  EXPECT_GE(first, std::chrono::seconds(monotonic.tv_sec) + nanoseconds(monotonic.tv_nsec));
  EXPECT_GE(clock.elapsed(), first);
}

}  // namespace
}  // namespace stanchion::os
