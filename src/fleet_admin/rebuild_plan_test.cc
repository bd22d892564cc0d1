#include "fleet_admin/rebuild_plan.h"

#include <gtest/gtest.h>

namespace stanchion::fleet_admin {
namespace {

using journal::LogDigest;

FoundStore store(std::string directory, std::uint64_t checkpoint,
                 std::optional<std::uint64_t> digest = {}) {
  FoundStore found{.directory = std::move(directory),
                   .checkpoint = Position(checkpoint),
                   .digest = {},
                   .at = {}};
  if (digest) found.digest = LogDigest(*digest);
  return found;
}

FoundLog log_of(std::uint64_t first, std::uint64_t last,
                std::map<Position, LogDigest> digests = {}) {
  return {.first = Position(first),
          .last = Position(last),
          .digests = std::move(digests),
          .problem = ""};
}

std::string why_not(const std::vector<FoundStore>& stores, const std::optional<FoundLog>& log) {
  const auto plan = plan_shard(stores, log);
  return plan ? "" : plan.error().message;
}

TEST(RebuildPlan, WithoutALogTheStoreThatHasMostIsTaken) {
  const auto plan = plan_shard({store("a", 10, 1), store("b", 30, 3), store("c", 20, 2)}, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->store, 1U);
  EXPECT_FALSE(plan->goes_on);
}

TEST(RebuildPlan, ALogThatGoesOnIsUsedWithTheStoreThatNeedsLeastOfIt) {
  const FoundLog log = log_of(5, 40, {{Position(10), LogDigest(1)}, {Position(30), LogDigest(3)}});
  const auto plan = plan_shard({store("a", 10, 1), store("b", 30, 3)}, log);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->store, 1U);
  EXPECT_TRUE(plan->goes_on);
}

TEST(RebuildPlan, AStoreThatIsAheadOfItsLogIsTaken) {
  const FoundLog log = log_of(5, 20, {{Position(10), LogDigest(1)}});
  const auto plan = plan_shard({store("a", 10, 1), store("b", 30, 3)}, log);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->store, 1U);
  EXPECT_FALSE(plan->goes_on);
}

TEST(RebuildPlan, AStoreThatEndsWhereTheLogBeginsGoesOn) {
  const auto plan = plan_shard({store("a", 4, 1)}, log_of(5, 20, {{Position(4), LogDigest(1)}}));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->goes_on);
}

TEST(RebuildPlan, TwoPastsAreRefused) {
  EXPECT_NE(why_not({store("a", 10, 1), store("b", 10, 2)}, {}).find("a and b both have"),
            std::string::npos);
  EXPECT_EQ(why_not({store("a", 10, 1), store("b", 10), store("c", 11, 2)}, {}), "");
  const FoundLog log = log_of(5, 20, {{Position(10), LogDigest(9)}});
  EXPECT_NE(why_not({store("a", 10, 1)}, log).find("the old log has other ones"),
            std::string::npos);
}

TEST(RebuildPlan, ALogBehindAGapIsNotLeftOutSilently) {
  EXPECT_NE(why_not({store("a", 3, 1)}, log_of(5, 20)).find("--without-log"), std::string::npos);
  EXPECT_EQ(why_not({store("a", 3, 1), store("b", 25, 1)}, log_of(5, 20)), "");
}

TEST(RebuildPlan, NumbersOfTransfersGoOnBehindWhatOthersHaveAccepted) {
  const TransferBooks source{
      .next = TransferNo(7), .under_way = {}, .sources = {{ShardIndex(0), {}}}};
  TransferBooks other{.next = TransferNo(1),
                      .under_way = {},
                      .sources = {{ShardIndex(0), {TransferNo(5), TransferNo(10)}}}};
  EXPECT_EQ(mend_transfers(ShardIndex(0), {source, other}).resume_at, TransferNo(10));
  other.sources[ShardIndex(0)].end = TransferNo(7);
  EXPECT_EQ(mend_transfers(ShardIndex(0), {source, other}).resume_at, std::nullopt);
}

TEST(RebuildPlan, WhatTheDestinationOnlyTakesForSettledGoesBackToItsQueue) {
  // Number 5 may have been refused: the destination knows only that its source was done with it.
  // Number 6 was accepted, or is not there yet: both are found out by handing it over again.
  const TransferBooks source{
      .next = TransferNo(7),
      .under_way = {{TransferNo(5), ShardIndex(1)}, {TransferNo(6), ShardIndex(1)}},
      .sources = {{ShardIndex(0), {}}}};
  const TransferBooks other{.next = TransferNo(1),
                            .under_way = {},
                            .sources = {{ShardIndex(0), {TransferNo(6), TransferNo(7)}}}};
  const TransferMending mending = mend_transfers(ShardIndex(0), {source, other});
  EXPECT_EQ(mending.refused, std::vector{TransferNo(5)});
  EXPECT_EQ(mending.resume_at, std::nullopt);
}

}  // namespace
}  // namespace stanchion::fleet_admin
