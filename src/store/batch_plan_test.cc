#include "store/batch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "store/store_testing.h"

namespace stanchion::store {
namespace {

bool all(std::string_view, std::string_view) {
  return true;
}

void add_messages(Batch& batch, std::uint64_t lane, std::uint64_t first, std::uint64_t count,
                  std::size_t size) {
  for (std::uint64_t i = 0; i < count; ++i)
    batch.puts.push_back(put(message(lane, first + i), std::string(size, 'v')));
}

void expect_disjoint(const BatchPlan& plan) {
  std::size_t changes = 0;
  std::string_view end;
  for (const auto file : plan.files) {
    ASSERT_FALSE(file.empty());
    for (const Change& change : file) {
      EXPECT_LE(end, change.key);
      EXPECT_EQ(change.key[0], file.front().key[0]);
      end = change.end.empty() ? change.key : change.end;
    }
    changes += file.size();
  }
  EXPECT_EQ(changes, plan.changes.size());
}

TEST(BatchPlan, KindsOfRecordsNeverShareAFile) {
  Batch batch{{put("b1", ""), put("a1", ""), put("c1", "")}, {"a2"}, {{"b2", "b3"}}};
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  EXPECT_EQ(plan.changes.size(), 5u);
  EXPECT_EQ(plan.files.size(), 4u);
}

TEST(BatchPlan, TheTailOfABusyLaneSharesNoFileWithItsHead) {
  Batch batch;
  add_messages(batch, 1, 900'000, 200, 200);
  for (std::uint64_t i = 0; i < 50; ++i) batch.erased.push_back(message(1, 1000 + i));
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  ASSERT_EQ(plan.files.size(), 2u);
  EXPECT_EQ(plan.files[0].size(), 50u);
  EXPECT_EQ(plan.files[1].size(), 200u);
}

TEST(BatchPlan, OldMessagesWrittenAgainShareNoFileWithNewOnes) {
  Batch batch;
  add_messages(batch, 1, 1000, 10, 200);
  add_messages(batch, 1, 900'000, 200, 200);
  EXPECT_EQ(plan_batch(batch, all).files.size(), 2u);
}

TEST(BatchPlan, ALaneWhoseNumbersLieFarApartIsOneStretch) {
  Batch batch;
  for (std::uint64_t i = 0; i < 500; ++i)
    batch.puts.push_back(put(message(1, 50'000 * i), std::string(200, 'v')));
  EXPECT_EQ(plan_batch(batch, all).files.size(), 1u);
}

TEST(BatchPlan, BusyLanesHaveTheirOwnFilesAndQuietOnesShare) {
  Batch batch;
  for (std::uint64_t lane = 0; lane < 1000; ++lane) {
    const bool busy = lane == 300 || lane == 700;
    add_messages(batch, lane, 0, busy ? 1000 : 1, 200);
  }
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  EXPECT_EQ(plan.files.size(), 5u);
}

TEST(BatchPlan, TheNumberOfFilesIsBoundedWhateverTheBatch) {
  Batch batch;
  for (std::uint64_t lane = 0; lane < 2000; ++lane) {
    add_messages(batch, lane, 1'000'000, 100, 200);
    batch.erased_ranges.push_back({message(lane, 0), message(lane, 100)});
  }
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  EXPECT_LE(plan.files.size(), 2 * kStretchesMax + 1);
}

TEST(BatchPlan, AFileHasABoundedSize) {
  Batch batch;
  add_messages(batch, 1, 0, 100, 1 << 20);
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  EXPECT_EQ(plan.files.size(), 4u);
}

TEST(BatchPlan, ASeriesIsOneChangeAndItsEntriesCountWhereFilesAreCut) {
  Batch batch;
  batch.series.push_back(series(1, 900'256, 256, 200));
  batch.series.push_back(series(1, 900'000, 256, 200));
  batch.puts.push_back(put(message(1, 900'600), std::string(200, 'v')));
  batch.puts.push_back(put(message(1, 5), std::string(20'000, 'v')));
  for (std::uint64_t i = 0; i < 50; ++i) batch.erased.push_back(message(1, 1000 + i));
  const BatchPlan plan = plan_batch(batch, all);
  expect_disjoint(plan);
  ASSERT_EQ(plan.files.size(), 3u);
  EXPECT_EQ(plan.files[1].size(), 50u);
  ASSERT_EQ(plan.files[2].size(), 3u) << "both series, in order, and what goes on behind them";
  EXPECT_EQ(plan.files[2][0].key, message(1, 900'000));
  EXPECT_EQ(plan.files[2][1].key, message(1, 900'256));
}

// With quadratic work this would not end within the test's time. Checkpoints of many groups look
// like this, because the names of groups are hashes.
TEST(BatchPlan, KeysInAnyOrderTakeHardlyMoreThanSortedOnes) {
  constexpr std::uint64_t kLanes = 400'000;
  std::mt19937_64 random(7);
  Batch batch;
  for (std::uint64_t i = 0; i < kLanes; ++i) {
    const std::uint64_t lane = random();
    batch.puts.push_back(put(message(lane, i), ""));
    if (i % 3 == 0) batch.puts.push_back(put(message(lane, i + 1), ""));
    batch.erased.push_back(message(random(), i));
  }
  const BatchPlan plan = plan_batch(batch, all);
  ASSERT_EQ(plan.changes.size(), batch.puts.size() + batch.erased.size());
  EXPECT_TRUE(std::ranges::is_sorted(plan.changes, {}, &Change::key));
}

// Any mixture of ascending, descending and interleaved runs ends up in order.
TEST(BatchPlan, RunsThatMeetInEveryWayAreMerged) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> numbers(random() % 60);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
    std::ranges::shuffle(numbers, random);
    for (std::size_t first = 0; first < numbers.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random() % 20, numbers.size() - first);
      const auto run = std::span(numbers).subspan(first, size);
      if (random() % 4 != 0) std::ranges::sort(run);
      first += size;
    }
    Batch batch;
    for (const std::uint64_t number : numbers) batch.puts.push_back(put(message(1, number), ""));
    const BatchPlan plan = plan_batch(batch, all);
    ASSERT_EQ(plan.changes.size(), numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ASSERT_EQ(plan.changes[i].key, message(1, i)) << "round " << round;
  }
}

TEST(BatchPlan, RangesThatMeetAreOneAndSwallowErasedKeys) {
  const Batch batch{{}, {"c", "x"}, {{"d", "f"}, {"a", "c"}, {"b", "d"}, {"m", "n"}}};
  const BatchPlan plan = plan_batch(batch, all);
  ASSERT_EQ(plan.changes.size(), 3u);
  EXPECT_EQ(plan.changes[0].key, "a");
  EXPECT_EQ(plan.changes[0].end, "f");
  EXPECT_EQ(plan.changes[2].key, "x");
}

TEST(BatchPlan, RangesThatNeedNotBeErasedAreLeftOut) {
  const Batch batch{{}, {}, {{"a", "c"}, {"m", "n"}}};
  const BatchPlan plan =
      plan_batch(batch, [](std::string_view begin, std::string_view) { return begin == "m"; });
  ASSERT_EQ(plan.changes.size(), 1u);
  EXPECT_EQ(plan.changes[0].key, "m");
}

TEST(BatchPlanDeathTest, ASeriesBeyondItsEndsIsOurOwnMistake) {
  const auto plan = [](const Series& one) { plan_batch({{}, {}, {}, {one}}, all); };
  Series good = series(1, 9, 3);
  plan(good);
  Series empty = good;
  empty.entries.clear();
  EXPECT_DEATH(plan(empty), "between its ends");
  Series early = good;
  early.entries.front().number = 8;
  EXPECT_DEATH(plan(early), "between its ends");
  Series late = good;
  late.end = message(1, 11);
  EXPECT_DEATH(plan(late), "between its ends");
  Series cut = good;
  cut.heads.push_back('x');
  EXPECT_DEATH(plan(cut), "between its ends");
}

TEST(BatchPlanDeathTest, ABatchThatContradictsItselfIsOurOwnMistake) {
  EXPECT_DEATH(plan_batch({{put("a", "1"), put("a", "2")}, {}, {}}, all), "changed twice");
  EXPECT_DEATH(plan_batch({{put("b", "1")}, {}, {{"a", "c"}}}, all), "the same batch erases");
  const BatchList<Series> nine_to_eleven{series(1, 9, 3)};
  EXPECT_DEATH(plan_batch({{}, {message(1, 10)}, {}, nine_to_eleven}, all), "changed twice");
  EXPECT_DEATH(plan_batch({{}, {}, {{message(1, 0), message(1, 10)}}, nine_to_eleven}, all),
               "the same batch erases");
  EXPECT_DEATH(plan_batch({{}, {}, {{message(1, 11), message(1, 20)}}, nine_to_eleven}, all),
               "the same batch erases");
  const BatchList<KeyRange> around{{message(1, 0), message(1, 9)}, {message(1, 12), "n"}};
  EXPECT_EQ(plan_batch({{}, {}, around, nine_to_eleven}, all).changes.size(), 3u);
}

}  // namespace
}  // namespace stanchion::store
