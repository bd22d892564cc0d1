#include "client/batch_plan.h"

#include <gtest/gtest.h>

namespace stanchion::client {
namespace {

using std::chrono::milliseconds;
using Plan = BatchPlan<int>;

constexpr Plan::Time kStart{};

std::vector<int> taken(Plan& plan, milliseconds after, bool all = false) {
  auto batch = plan.take(kStart + after, all);
  return batch ? batch->items : std::vector<int>();
}

void add(Plan& plan, int item, milliseconds after = {}, std::size_t bytes = 1,
         const std::string& lane = "a", bool ordered = false) {
  plan.add(lane, ordered, bytes, item, kStart + after);
}

TEST(BatchPlan, AnEntryWaitsForOthersNoLongerThanTheLingerTime) {
  Plan plan({.linger = milliseconds(5)});
  EXPECT_EQ(plan.next_deadline(), std::nullopt);
  add(plan, 1);
  add(plan, 2, milliseconds(3));
  EXPECT_EQ(plan.next_deadline(), kStart + milliseconds(5));
  EXPECT_EQ(taken(plan, milliseconds(4)), std::vector<int>());
  EXPECT_EQ(taken(plan, milliseconds(5)), (std::vector{1, 2}));
  EXPECT_TRUE(plan.empty());
  EXPECT_EQ(plan.next_deadline(), std::nullopt);
}

TEST(BatchPlan, AFullBatchGoesAtOnceAndTheRestWaits) {
  Plan plan({.linger = milliseconds(5), .entries_max = 3});
  for (int i = 1; i <= 4; ++i) add(plan, i);
  EXPECT_EQ(taken(plan, milliseconds(0)), (std::vector{1, 2, 3}));
  EXPECT_EQ(taken(plan, milliseconds(0)), std::vector<int>());
  EXPECT_EQ(taken(plan, milliseconds(5)), std::vector{4});
}

TEST(BatchPlan, ABatchHasNoMoreBytesThanAllowedUnlessItIsOneEntry) {
  Plan plan({.linger = milliseconds(5), .bytes_max = 100});
  add(plan, 1, {}, 60);
  EXPECT_EQ(taken(plan, milliseconds(0)), std::vector<int>());
  add(plan, 2, {}, 41);
  EXPECT_EQ(taken(plan, milliseconds(0)), std::vector{1});
  EXPECT_EQ(taken(plan, milliseconds(0)), std::vector<int>());
  add(plan, 3, {}, 59);
  EXPECT_EQ(taken(plan, milliseconds(0)), (std::vector{2, 3}));
  add(plan, 4, {}, 1'000);
  EXPECT_EQ(taken(plan, milliseconds(0)), std::vector{4});
}

TEST(BatchPlan, LanesDoNotMixAndTheOldestIsFirst) {
  Plan plan({.linger = milliseconds(5)});
  add(plan, 1, milliseconds(1), 1, "b");
  add(plan, 2, milliseconds(0), 1, "c");
  add(plan, 3, milliseconds(2), 1, "a");
  EXPECT_EQ(plan.next_deadline(), kStart + milliseconds(5));
  EXPECT_EQ(taken(plan, milliseconds(9)), std::vector{2});
  EXPECT_EQ(taken(plan, milliseconds(9)), std::vector{1});
  EXPECT_EQ(taken(plan, milliseconds(9)), std::vector{3});
}

TEST(BatchPlan, OfAnOrderedLaneOneBatchIsOut) {
  Plan plan({.linger = milliseconds(5), .entries_max = 2});
  for (int i = 1; i <= 5; ++i) add(plan, i, {}, 1, "q.fifo", true);
  EXPECT_EQ(taken(plan, milliseconds(0)), (std::vector{1, 2}));
  EXPECT_EQ(taken(plan, milliseconds(99), true), std::vector<int>());
  EXPECT_EQ(plan.next_deadline(), std::nullopt);
  plan.answered("q.fifo");
  EXPECT_EQ(taken(plan, milliseconds(0)), (std::vector{3, 4}));
  plan.answered("q.fifo");
  EXPECT_EQ(taken(plan, milliseconds(5)), std::vector{5});
  EXPECT_FALSE(plan.empty());
  plan.answered("q.fifo");
  EXPECT_TRUE(plan.empty());
}

TEST(BatchPlan, AllOfItCanBeTakenBeforeItIsDue) {
  Plan plan({.linger = milliseconds(5)});
  add(plan, 1);
  add(plan, 2, {}, 1, "b");
  EXPECT_EQ(taken(plan, milliseconds(0), true).size(), 1u);
  EXPECT_EQ(taken(plan, milliseconds(0), true).size(), 1u);
  EXPECT_TRUE(plan.empty());
}

}  // namespace
}  // namespace stanchion::client
