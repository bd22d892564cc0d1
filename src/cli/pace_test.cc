#include "cli/pace.h"

#include <gtest/gtest.h>

namespace stanchion::cli {
namespace {

using std::chrono::seconds;

// For how long things are waited for of which each takes so long.
seconds waited_for(seconds each, int things) {
  Pace::Time now{};
  Pace pace(now);
  for (int i = 0; i < things; ++i) {
    // A call that is not answered in the time that is left is the last one.
    const auto left = std::chrono::ceil<seconds>(pace.left(now));
    now += std::min(each, left);
    if (each > left) break;
    pace.gain(now);
  }
  return std::chrono::duration_cast<seconds>(now.time_since_epoch());
}

TEST(Pace, AServerThatIsFastEnoughIsWaitedForHoweverMuchItHas) {
  EXPECT_EQ(waited_for(seconds(1), 100'000), seconds(100'000));
}

TEST(Pace, AServerThatAnswersByDropsIsGivenUp) {
  EXPECT_LE(waited_for(seconds(2), 1'000'000), 2 * Pace::kSlack);
  EXPECT_LE(waited_for(seconds(29), 1'000'000), seconds(70));
}

TEST(Pace, WhatWentQuicklyBeforeIsNoReasonToWaitLongerNow) {
  Pace::Time now{};
  Pace pace(now);
  for (int i = 0; i < 10'000; ++i) pace.gain(now);
  EXPECT_EQ(pace.left(now), Pace::kSlack);
  EXPECT_LE(pace.left(now + Pace::kSlack).count(), 0);
}

}  // namespace
}  // namespace stanchion::cli
