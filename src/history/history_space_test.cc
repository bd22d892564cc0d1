// What the history takes in memory: names of queues, a day that is merged, percentiles that are read.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "history/history_test_kit.h"
#include "history/keys.h"

namespace stanchion::history {
namespace {

using namespace std::literals;

// How many queues of each account the history knows.
std::map<std::string, std::size_t> names_of(const History& history) {
  std::map<std::string, std::size_t> names;
  for (const auto& [queue, known] : history.queues()) ++names[queue.account];
  return names;
}

TEST(HistorySpace, NamesOfDeletedQueuesLeaveRoomForOtherAccounts) {
  constexpr std::size_t kMax = std::size_t{1} << 20;
  Disk disk;
  auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kMax);
  ASSERT_TRUE(history);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < 10'000; ++i) samples.push_back(deleted_queue("1", i, 80));
  ASSERT_TRUE((*history)->record({kFirst, kFirst}, samples));
  auto names = names_of(**history);
  EXPECT_EQ(names["1"], kMax / 2 / Space::bytes_of(samples[0].queue));
  EXPECT_EQ((*history)->left_out().at("1"), 10'000 - names["1"]);

  samples.clear();
  for (std::size_t i = 0; i < 10'000; ++i) samples.push_back(deleted_queue("2", i, 80));
  for (std::size_t i = 0; i < 100; ++i) samples.push_back(deleted_queue("3", i, 80));
  ASSERT_TRUE((*history)->record({kFirst + 1, kFirst + 1}, samples));
  names = names_of(**history);
  EXPECT_GT(names["2"], names["1"] / 2 - 2) << "half of what is left";
  EXPECT_EQ(names["3"], 100U) << "whoever is late finds some room, too";
  EXPECT_FALSE((*history)->left_out().contains("3"));
  EXPECT_LE((*history)->bytes(), kMax);

  // A start with less room loses nothing, and takes nothing new.
  auto again = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst + 2), kMax / 4);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->bytes(), (*history)->bytes());
  samples.assign(1, deleted_queue("4", 0, 80));
  ASSERT_TRUE((*again)->record({kFirst + 2, kFirst + 2}, samples));
  EXPECT_EQ(names_of(**again), names);
  EXPECT_EQ((*again)->left_out().at("4"), 1U);
}

TEST(HistorySpace, WhatWasForgottenLeavesRoom) {
  Disk disk;
  auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), 1 << 20);
  ASSERT_TRUE(history);
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < 3'000; ++i) samples.push_back(deleted_queue("1", i, 80));
  ASSERT_TRUE((*history)->record({kFirst, kFirst}, samples));
  const Minute later = kFirst + kMinutesADay + kFiveMinutesKept;
  for (auto more = (*history)->expire_some(begin_of(later)); *more;)
    more = (*history)->expire_some(begin_of(later));
  EXPECT_EQ((*history)->bytes(), 0U);
  const std::vector<Sample> one{deleted_queue("1", 2'999, 80)};
  ASSERT_TRUE((*history)->record({later, later}, one));
  EXPECT_EQ(names_of(**history), (std::map<std::string, std::size_t>{{"1", 1}}));
}

std::size_t allocated() {
  return ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
}

// The sanitizers' allocator does not tell.
TEST(HistorySpace, ANameTakesNoMoreThanIsCounted) {
  Disk disk;
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < 20'000; ++i) samples.push_back(deleted_queue("1", i, 80));
  {
    auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kPlenty);
    ASSERT_TRUE(history && (*history)->record({kFirst, kFirst}, samples));
  }
  const std::size_t store = [&] {
    const std::size_t before = allocated();
    const TestStore alone(disk);
    return allocated() - before;
  }();
  const std::size_t before = allocated();
  auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kPlenty);
  ASSERT_TRUE(history);
  const std::size_t took = allocated() - before - store;
  if (before == 0) GTEST_SKIP() << "this allocator does not tell what is taken";
  EXPECT_LE(took, (*history)->bytes() * 11 / 10);
  EXPECT_GE(took, (*history)->bytes() * 7 / 10) << "nor much less";
}

// Notes what is allocated when a commit comes: the batch, and whatever it was made of.
class WatchedStore final : public store::Store {
 public:
  WatchedStore(const store::MemoryStore::Entries& entries, std::size_t& most)
      : inner_(entries), most_(most) {}
  Status commit(const Batch& batch) override {
    most_ = std::max(most_, allocated());
    return inner_.commit(batch);
  }
  Status scan(const KeyRange& range, const store::EntryVisitor& visit) const override {
    return inner_.scan(range, visit);
  }
  Result<std::optional<std::string>> get(std::string_view key) const override {
    return inner_.get(key);
  }
  std::uint64_t size_on_disk() const override { return inner_.size_on_disk(); }

 private:
  store::MemoryStore inner_;
  std::size_t& most_;
};

// Points with messages of all sizes, which take most.
TEST(HistorySpace, ADayIsMergedInLittleMemory) {
  constexpr std::uint32_t kQueues = 60;
  Point point;
  for (std::size_t i = 0; i < kMetricCount; ++i) point.set(static_cast<Metric>(i), 1'000);
  for (std::uint64_t size = 1; size < 1 << 20; size += size / 8 + 1) point.sizes.add(size);
  const std::string bytes = encode(point);
  Disk disk;
  std::vector<Sample> samples;
  for (std::uint32_t i = 0; i < kQueues; ++i) samples.push_back(deleted_queue("1", i, 10));
  {
    auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kPlenty);
    ASSERT_TRUE(history && (*history)->record({kFirst, kFirst}, samples));
  }
  for (std::uint32_t number = 1; number <= kQueues; ++number)
    for (Minute minute = 0; minute < kMinutesADay; ++minute)
      disk.entries[point_key(kMinuteKind, day_of(kFirst), number, minute)] = bytes;
  std::size_t most = 0;
  auto history =
      History::open(std::make_unique<WatchedStore>(disk.entries, most), begin_of(kFirst), kPlenty);
  ASSERT_TRUE(history);
  const std::size_t before = allocated();
  const Instant later = begin_of(kFirst + kMinutesKept + kMinutesADay);
  int steps = 0;
  for (auto more = (*history)->expire_some(later); more && *more; ++steps)
    more = (*history)->expire_some(later);
  EXPECT_GT(steps, 2);
  if (before == 0) GTEST_SKIP() << "this allocator does not tell what is taken";
  EXPECT_LE(most - before, std::size_t{16} << 20);
}

// Percentiles of sizes over two weeks, by the minute and at once.
TEST(HistorySpace, PercentilesAreReadInLittleMemory) {
  Disk disk;
  const Sample sample = deleted_queue("1", 0, 10);
  std::size_t most = 0;
  {
    auto history = History::open(std::make_unique<TestStore>(disk), begin_of(kFirst), kPlenty);
    ASSERT_TRUE(history &&
                (*history)->record({kFirst + kMinutesADay - 1, kFirst}, std::vector{sample}));
  }
  Point point;
  point.set(Metric::kNumberOfMessagesSent, 110);
  point.set(Metric::kSentMessageSize, 110'000);
  for (Minute minute = 0; minute < kMinutesADay; ++minute) {
    point.sizes = {};
    for (std::uint64_t size = 1 + static_cast<std::uint64_t>(minute) % 7; size < 1 << 20;
         size += size / 8 + 1)
      point.sizes.add(size);
    disk.entries[point_key(kMinuteKind, day_of(kFirst), 1, minute)] = encode(point);
  }
  auto history =
      History::open(std::make_unique<WatchedStore>(disk.entries, most), begin_of(kFirst), kPlenty);
  ASSERT_TRUE(history);
  const std::size_t before = allocated();
  for (const Duration period : {Duration(1min), Duration(24h)}) {
    std::int64_t seen = 0;
    ASSERT_TRUE((*history)->read({.queue = sample.queue,
                                  .metric = Metric::kSentMessageSize,
                                  .from = begin_of(kFirst),
                                  .until = begin_of(kFirst + kMinutesADay),
                                  .period = period,
                                  .with_spread = true},
                                 [&](const Bucket&) {
                                   ++seen;
                                   most = std::max(most, allocated());
                                 }));
    EXPECT_EQ(seen, 24h / period);
  }
  if (before == 0) GTEST_SKIP() << "this allocator does not tell what is taken";
  EXPECT_LE(most - before, std::size_t{1} << 20);
}

}  // namespace
}  // namespace stanchion::history
