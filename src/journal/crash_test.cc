// Random runs of append, prepare, trim, crash and recover on a disk that tears and forgets writes.
// After every recovery, all acknowledged records are there, in order, and no record that was never
// appended.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "journal/survey.h"
#include "journal/test_support.h"

namespace stanchion::journal {
namespace {

constexpr std::uint64_t kSeeds = 4000;
constexpr int kRoundsPerSeed = 6;

class CrashRun {
 public:
  explicit CrashRun(std::uint64_t seed) : random_(seed) {}

  void run() {
    for (int round = 0; round < kRoundsPerSeed && !testing::Test::HasFailure(); ++round) {
      inject_fault();
      if (recover()) work();
      // Not every crash is a power cut: the process may die alone and find its own cache again.
      if (draw(3) == 0) {
        on_.disk.restart_process();
      } else {
        on_.disk.crash(random_());
      }
    }
    on_.disk.crash(std::nullopt);
    if (recover()) return;
    // A fault that was still pending hit the recovery; none is pending after it.
    on_.disk.crash(std::nullopt);
    ASSERT_TRUE(recover());
  }

  std::uint64_t fingerprint() const { return on_.disk.fingerprint(); }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  void inject_fault() {
    switch (draw(4)) {
      case 0:
        on_.disk.fail_sync(1 + draw(30));
        break;
      case 1:
        on_.disk.fail_write(1 + draw(30));
        break;
      case 2:
        on_.disk.power_off_after(draw(80));
        break;
      default:
        break;
    }
  }

  // Opens and audits. False if an injected fault prevented it.
  bool recover() {
    auto opened = on_.try_open();
    if (!opened) {
      EXPECT_EQ(opened.error().os_error, EIO) << opened.error().message;
      return false;
    }
    on_.log = std::move(*opened);
    const std::uint64_t next = on_.log->next_position().value();
    EXPECT_GT(next, acknowledged_) << "an acknowledged record is gone";
    EXPECT_LE(next, appended_.size() + 1) << "a record was invented";
    EXPECT_LE(on_.log->first_position().value(), std::max<std::uint64_t>(trimmed_, 1));
    const Status replayed = on_.log->replay(
        on_.log->first_position(), [&](Position position, std::string_view record) -> Status {
          EXPECT_EQ(record, appended_.at(position.value() - 1));
          return {};
        });
    if (!replayed) {
      EXPECT_EQ(replayed.error().os_error, EIO) << replayed.error().message;
      return false;
    }
    // Replayed records count as acknowledged: the engine has acted on them.
    acknowledged_ = next - 1;
    appended_.resize(acknowledged_);
    return true;
  }

  void work() {
    for (std::uint64_t step = draw(40); step > 0; --step) {
      const std::uint64_t choice = draw(10);
      if (choice == 0) {
        const std::uint64_t to = 1 + draw(acknowledged_ + 1);
        trimmed_ = std::max(trimmed_, to);
        if (!trim_before(*on_.log, Position(to))) return;
      } else if (choice <= 3) {
        if (!on_.log->prepare(on_.now += Duration(draw(2000)))) return;
      } else if (!append()) {
        return;
      }
    }
    if (draw(3) == 0) (void)on_.log->close().has_value();
  }

  bool append() {
    FrameBuilder frame;
    for (std::uint64_t i = 1 + draw(4); i > 0; --i) {
      // Mostly small, sometimes several sectors; also zeros, which look like unwritten space.
      const std::size_t size = static_cast<std::size_t>(draw(5) == 0 ? draw(700) : draw(60));
      appended_.emplace_back(size, draw(4) == 0 ? '\0' : static_cast<char>(random_()));
      frame.add(appended_.back());
    }
    const auto last = on_.log->append_batch(frame);
    if (!last) return false;
    EXPECT_EQ(last->value(), appended_.size());
    acknowledged_ = last->value();
    return true;
  }

  std::mt19937_64 random_;
  LogOnSimDisk on_;
  std::deque<std::string> appended_;  // By position, from 1.
  std::uint64_t acknowledged_ = 0;
  std::uint64_t trimmed_ = 0;
};

TEST(SegmentLogCrash, WhatWasAcknowledgedSurvivesEverythingAndNothingIsInvented) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    CrashRun(seed).run();
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(SegmentLogCrash, TheSameSeedIsTheSameRun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CrashRun first(seed);
    CrashRun second(seed);
    first.run();
    second.run();
    EXPECT_EQ(first.fingerprint(), second.fingerprint());
  }
}

}  // namespace
}  // namespace stanchion::journal
