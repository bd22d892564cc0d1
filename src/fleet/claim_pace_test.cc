#include "fleet/claim_pace.h"

#include <gtest/gtest.h>

#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

constexpr SteadyInstant kStart{std::chrono::hours(1)};

TEST(ClaimPace, WhoLosesItsLogNowAndThenClaimsItAgainAtOnce) {
  ClaimPace pace;
  EXPECT_EQ(pace.left(kStart), Duration(0));
  SteadyInstant now = kStart;
  for (int i = 0; i < 100; ++i) {
    pace.served(now);
    now += kClaimHeld;
    pace.lost(now);
    EXPECT_EQ(pace.left(now), Duration(0)) << i;
  }
}

TEST(ClaimPace, WhoLosesItAgainAndAgainWaitsLongerEachTimeUpToABound) {
  ClaimPace pace;
  SteadyInstant now = kStart;
  const auto lose = [&] {
    pace.served(now);
    now += Duration(10);
    pace.lost(now);
    return pace.left(now);
  };
  for (int i = 0; i < kClaimsAtOnce; ++i) EXPECT_EQ(lose(), Duration(0)) << i;
  Duration before{};
  for (Duration pause = kClaimPauseMin; pause < kClaimPauseMax; pause *= 2) {
    EXPECT_EQ(lose(), pause);
    EXPECT_EQ(pace.left(now + pause / 2), pause / 2);
    now += pause;
    EXPECT_EQ(pace.left(now), Duration(0));
    EXPECT_GT(pause, std::exchange(before, pause));
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(lose(), kClaimPauseMax);
    now += kClaimPauseMax;
  }
  pace.served(now);
  pace.lost(now + kClaimHeld);
  EXPECT_EQ(pace.left(now + kClaimHeld), Duration(0)) << "it was held meanwhile";
}

TEST(ClaimPace, ClaimsThatAreRefusedCountToo) {
  ClaimPace pace;
  for (int i = 0; i < kClaimsAtOnce; ++i) pace.lost(kStart);
  EXPECT_EQ(pace.left(kStart), Duration(0));
  pace.lost(kStart);
  EXPECT_EQ(pace.left(kStart), kClaimPauseMin);
}

TEST(ClaimPace, WhatWasLongAgoIsForgotten) {
  ClaimPace pace;
  for (int i = 0; i < 10; ++i) pace.lost(kStart);
  EXPECT_GT(pace.left(kStart), Duration(0));
  pace.lost(kStart + kLossMemory);
  EXPECT_EQ(pace.left(kStart + kLossMemory), Duration(0));
}

}  // namespace
}  // namespace stanchion::fleet
