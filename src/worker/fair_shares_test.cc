#include "worker/fair_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace stanchion::worker {
namespace {

const Instant kNow{std::chrono::seconds(1'000)};

std::map<std::size_t, int> turns(FairShares& shares, int count, Instant now = kNow) {
  std::map<std::size_t, int> taken;
  for (int i = 0; i < count; ++i)
    if (const auto tenant = shares.next(now)) ++taken[*tenant];
  return taken;
}

TEST(FairShares, TenantsThatWaitHaveTurnsByTheirWeights) {
  FairShares shares;
  for (const double weight : {1.0, 2.0, 5.0}) shares.set_waiting(shares.add(weight, 0, 0), true);
  EXPECT_EQ(turns(shares, 800), (std::map<std::size_t, int>{{0, 100}, {1, 200}, {2, 500}}));
}

TEST(FairShares, OneThatHasWaitedForNothingSavesNoTurns) {
  FairShares shares;
  const std::size_t busy = shares.add(1, 0, 0);
  const std::size_t late = shares.add(1, 0, 0);
  shares.set_waiting(busy, true);
  EXPECT_EQ(turns(shares, 1'000).at(busy), 1'000);
  shares.set_waiting(late, true);
  EXPECT_EQ(shares.next(kNow), late) << "it has not had a turn yet";
  EXPECT_EQ(turns(shares, 100), (std::map<std::size_t, int>{{busy, 50}, {late, 50}}));
}

TEST(FairShares, AQuietTenantIsNextAfterAtMostOneTurnOfAFlood) {
  FairShares shares;
  const std::size_t flood = shares.add(1, 0, 0);
  const std::size_t quiet = shares.add(1, 0, 0);
  shares.set_waiting(flood, true);
  for (int round = 0; round < 50; ++round) {
    turns(shares, 37);
    shares.set_waiting(quiet, true);
    int before = 0;
    while (shares.next(kNow) != quiet) ++before;
    shares.set_waiting(quiet, false);
    EXPECT_LE(before, 1) << round;
  }
}

TEST(FairShares, TheUrgentOnesGoFirst) {
  FairShares shares;
  const std::size_t plain = shares.add(100, 0, 0);
  const std::size_t urgent = shares.add(1, 5, 0);
  shares.set_waiting(plain, true);
  shares.set_waiting(urgent, true);
  EXPECT_EQ(turns(shares, 10), (std::map<std::size_t, int>{{urgent, 10}}));
  shares.set_waiting(urgent, false);
  EXPECT_EQ(shares.next(kNow), plain);
}

TEST(FairShares, ATenantAtItsLimitLeavesItsTurnsToTheOthers) {
  FairShares shares;
  const std::size_t limited = shares.add(1, 0, 5);
  const std::size_t other = shares.add(1, 0, 0);
  shares.set_waiting(limited, true);
  shares.set_waiting(other, true);
  EXPECT_EQ(turns(shares, 100), (std::map<std::size_t, int>{{limited, 5}, {other, 95}}));
  EXPECT_EQ(shares.next_time(kNow), kNow + std::chrono::milliseconds(200));
  EXPECT_EQ(turns(shares, 100, kNow + std::chrono::seconds(1)).at(limited), 5);
}

TEST(FairShares, NobodyGoesIfNothingWaits) {
  FairShares shares;
  shares.add(1, 0, 0);
  EXPECT_EQ(shares.next(kNow), std::nullopt);
  EXPECT_EQ(shares.next_time(kNow), std::nullopt);
}

}  // namespace
}  // namespace stanchion::worker
