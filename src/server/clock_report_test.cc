#include "server/clock_report.h"

#include <gtest/gtest.h>

namespace stanchion::server {
namespace {

using namespace std::chrono_literals;
using Kind = os::ClockNews::Kind;

TEST(ClockReport, SaysWhatHappenedAndHowItEnds) {
  EXPECT_EQ(
      describe(os::ClockNews{Kind::kSetBack, 1h, 1h}),
      "the wall clock was set back by 1 h. The server's time is 1 h ahead of it and continues "
      "without a jump, a tenth slower until the wall clock has caught up, for about 10 h.");
  EXPECT_EQ(
      describe(os::ClockNews{Kind::kSetForward, 24h, -24h}),
      "the wall clock was set forward by 1 d. The server's time is 1 d behind it and continues "
      "without a jump, a hundredth faster until it has caught up, for about 100 d. A restart "
      "adopts the wall clock's time at once.");
  EXPECT_EQ(describe(os::ClockNews{Kind::kSetForward, 1h, 1ms}),
            "the wall clock was set forward by 1 h and agrees with the server's time");
  EXPECT_EQ(describe(os::ClockNews{Kind::kMadeUp, 0s, 0s}),
            "the server's time and the wall clock agree again");
}

TEST(ClockReport, AStartSaysHowMuchTimeHasPassedIfThatIsMuch) {
  const Instant last = from_millis(1'794'800'000'500);
  EXPECT_FALSE(describe_gap(last, 0s));
  EXPECT_FALSE(describe_gap(last, 59min));
  EXPECT_FALSE(describe_gap(last, -900ms));
  EXPECT_EQ(describe_gap(last, 168h),
            "according to the wall clock, 7 d have passed since the last record, which is of "
            "2026-11-16T03:33:20.500Z: messages whose retention ended meanwhile expire now. If the "
            "wall clock is wrong, restore the last backup");
  EXPECT_EQ(describe_gap(last, -2h),
            "the wall clock is 2 h behind the last record, which is of 2026-11-16T03:33:20.500Z. "
            "The server's time begins there and continues without a jump, a tenth slower until the "
            "wall clock has caught up, for about 20 h");
}

TEST(ClockReport, ARefusedStartSaysWhatToDo) {
  EXPECT_EQ(
      refuse_gap(from_millis(1'794'800'000'500), 800h, 720h),
      "the wall clock is 33 d 8 h ahead of the last record, which is of "
      "2026-11-16T03:33:20.500Z, and clock.max_jump_forward allows 30 d. Nothing was changed. "
      "If the wall clock is wrong, correct it: messages would expire. If it is right, because "
      "the server was off for so long, start once with --clock-max-jump-forward 0s");
}

}  // namespace
}  // namespace stanchion::server
