// Which files are merged because they are small, and that a store has few of them whatever the
// number of commits.
#include "store/small_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

using Files = std::vector<rocksdb::LiveFileMetaData>;

rocksdb::LiveFileMetaData file(const std::string& first, const std::string& last,
                               std::uint64_t size = 1'000, int level = 6) {
  rocksdb::LiveFileMetaData made;
  made.level = level;
  made.smallestkey = first;
  made.largestkey = last;
  made.size = size;
  return made;
}

// Neighbours of one lane, in any order.
Files neighbours(std::uint64_t lane, std::size_t count, std::uint64_t size = 1'000, int level = 6) {
  Files files;
  for (std::uint64_t i = 0; i < count; ++i)
    files.push_back(file(message(lane, 10 * i), message(lane, 10 * i + 5), size, level));
  std::ranges::shuffle(files, std::minstd_rand(7));
  return files;
}

TEST(SmallFiles, NeighboursOfOneRunAreACrowd) {
  EXPECT_TRUE(find_crowds(neighbours(1, kCrowdMin - 1)).empty());
  const auto crowds = find_crowds(neighbours(1, kCrowdMin));
  ASSERT_EQ(crowds.size(), 1U);
  EXPECT_EQ(crowds[0].first, message(1, 0));
  EXPECT_EQ(crowds[0].last, message(1, 10 * (kCrowdMin - 1) + 5));
}

TEST(SmallFiles, LargeFilesAreLeftAloneAndPartCrowds) {
  EXPECT_TRUE(find_crowds(neighbours(1, 100, kSmallFile)).empty());
  Files files = neighbours(1, 2 * (kCrowdMin - 1));
  const std::size_t middle = 10 * (kCrowdMin - 1) - 3;
  files.push_back(file(message(1, middle), message(1, middle), kSmallFile));
  EXPECT_TRUE(find_crowds(files).empty());
}

TEST(SmallFiles, FilesOfTwoRunsAreNeverInOneCrowd) {
  Files files = neighbours(1, kCrowdMin - 1);
  std::ranges::copy(neighbours(2, kCrowdMin - 1), std::back_inserter(files));
  files.push_back(file(message(1, 5'000), message(2, 0)));
  EXPECT_TRUE(find_crowds(files).empty());
  std::ranges::copy(neighbours(3, kCrowdMin), std::back_inserter(files));
  const auto crowds = find_crowds(files);
  ASSERT_EQ(crowds.size(), 1U);
  EXPECT_EQ(crowds[0].first, message(3, 0));
}

TEST(SmallFiles, EveryLevelHasCrowdsOfItsOwnExceptTheFirst) {
  EXPECT_TRUE(find_crowds(neighbours(1, 100, 1'000, 0)).empty());
  Files files = neighbours(1, kCrowdMin - 1, 1'000, 5);
  std::ranges::copy(neighbours(1, kCrowdMin - 1, 1'000, 6), std::back_inserter(files));
  EXPECT_TRUE(find_crowds(files).empty());
  std::ranges::copy(neighbours(9, kCrowdMin, 1'000, 5), std::back_inserter(files));
  EXPECT_EQ(find_crowds(files).size(), 1U);
}

// Stretches of a lane that lie so far apart that each has a file of its own.
Batch crowd_of(std::uint64_t lane, std::uint64_t stretches) {
  Batch batch;
  for (std::uint64_t i = 0; i < stretches; ++i)
    for (Put& one : messages(lane, i * 1'000'000, 100).puts) batch.puts.push_back(std::move(one));
  return batch;
}

class SmallFilesTest : public testing::Test {
 protected:
  void open() {
    store_.reset();
    RocksOptions options;
    options.reclaim_interval = std::chrono::hours(24);
    auto opened = RocksStore::open(scratch_.store(), options);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  void wait_until_merged() {
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (store_->figures().files > 10 && std::chrono::steady_clock::now() < latest)
      std::this_thread::yield();
    EXPECT_LT(store_->figures().files, 10U);
  }

  Scratch scratch_;
  std::unique_ptr<RocksStore> store_;
};

TEST_F(SmallFilesTest, ALaneThatGrowsSlowlyHasFewFilesAfterAnyNumberOfCommits) {
  open();
  Held expected;
  for (std::uint64_t number = 0; number < 200; ++number) {
    Batch batch = messages(1, number, 1);
    batch.puts.push_back(put("c", std::to_string(number)));
    must_commit(*store_, batch);
    expected[message(1, number)] = batch.puts[0].head;
    expected["c"] = std::to_string(number);
  }
  // RocksDB may be at work with some of them, so that they are left for the next time.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do ASSERT_TRUE(store_->reclaim());
  while (store_->figures().files >= 2 * kCrowdMin && std::chrono::steady_clock::now() < deadline);
  EXPECT_LT(store_->figures().files, 2 * kCrowdMin);
  EXPECT_EQ(held(*store_), expected);
  open();
  EXPECT_EQ(held(*store_), expected);
}

TEST_F(SmallFilesTest, WhatFollowsAMergedFileIsNotRewritten) {
  open();
  must_commit(*store_, messages(2, 0, 100));
  must_commit(*store_, crowd_of(1, 2 * kCrowdMin));
  EXPECT_GT(store_->figures().files, 2 * kCrowdMin);
  ASSERT_TRUE(store_->reclaim());
  EXPECT_LT(store_->figures().files, 10U);
  const std::uint64_t merged = store_->figures().merged;
  for (std::uint64_t round = 0; round < kCrowdMin / 2; ++round)
    must_commit(*store_, messages(1, 900'000'000 + round * 1'000, 1'000));
  ASSERT_TRUE(store_->reclaim());
  EXPECT_EQ(store_->figures().merged, merged);
}

TEST_F(SmallFilesTest, ThoseOfAnEarlierProcessAreMerged) {
  open();
  must_commit(*store_, crowd_of(1, 2 * kCrowdMin));
  const Held before = held(*store_);
  ASSERT_GT(store_->figures().files, kCrowdMin);
  open();
  wait_until_merged();
  EXPECT_EQ(held(*store_), before);
}

TEST_F(SmallFilesTest, AStoreThatMayBeOfAnotherLogIsMergedAfterItsFirstCommit) {
  open();
  must_commit(*store_, crowd_of(1, 2 * kCrowdMin));
  const std::uint64_t files = store_->figures().files;
  ASSERT_GT(files, kCrowdMin);
  store_.reset();
  std::filesystem::copy(scratch_.store(), scratch_.store() + "-copy",
                        std::filesystem::copy_options::recursive);
  auto other = RocksStore::open(scratch_.store() + "-copy", {.merges_before_commit = false});
  ASSERT_TRUE(other) << other.error().message;
  // As long as merging takes where it may begin at once.
  open();
  wait_until_merged();
  EXPECT_EQ((*other)->figures().files, files);
  store_ = std::move(*other);
  must_commit(*store_, messages(3, 0, 1));
  wait_until_merged();
}

TEST_F(SmallFilesTest, ErasedRangesInAndBesideACrowdStayErased) {
  open();
  must_commit(*store_, crowd_of(1, 2 * kCrowdMin));
  Held expected = held(*store_);
  const auto erase = [&](std::uint64_t begin, std::uint64_t end) {
    must_commit(*store_, {{}, {}, {{message(1, begin), message(1, end)}}});
    expected.erase(expected.lower_bound(message(1, begin)), expected.lower_bound(message(1, end)));
  };
  erase(0, 50);
  erase(7'000'050, 30'000'000);
  ASSERT_TRUE(store_->reclaim());
  EXPECT_EQ(held(*store_), expected);
  erase(40'000'000, 900'000'000);
  open();
  ASSERT_TRUE(store_->reclaim());
  EXPECT_EQ(held(*store_), expected);
}

}  // namespace
}  // namespace stanchion::store
