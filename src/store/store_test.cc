// What every store must do. Runs against each implementation, with random batches compared with a
// map.
#include "store/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "store/memory_store.h"
#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Store>(const std::string& path)> open;
};

std::unique_ptr<Store> open_rocks(const std::string& path) {
  auto store = RocksStore::open(path);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

class StoreTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { store_ = GetParam().open(scratch_.store()); }

  Scratch scratch_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreTest, AnEmptyStoreHoldsNothing) {
  EXPECT_TRUE(held(*store_).empty());
  EXPECT_EQ(*store_->get("a"), std::nullopt);
  must_commit(*store_, {});
  EXPECT_TRUE(held(*store_).empty());
}

TEST_P(StoreTest, WhatWasPutIsScannedInOrderAndGot) {
  must_commit(*store_, {{put("b", "2"), put("a", "1"), put("c", "")}, {}, {}});
  EXPECT_EQ(held(*store_), (Held{{"a", "1"}, {"b", "2"}, {"c", ""}}));
  EXPECT_EQ(*store_->get("b"), "2");
  EXPECT_EQ(*store_->get("c"), "");
  EXPECT_EQ(*store_->get("bb"), std::nullopt);
}

TEST_P(StoreTest, AValueIsTheHeadFollowedByTheContent) {
  ContentParts parts;
  parts.body = "hello";
  const ContentPtr content = Content::make(parts);
  must_commit(*store_, {{{"k", "head", content}}, {}, {}});
  EXPECT_EQ(*store_->get("k"), "head" + std::string(content->encoded()));
}

TEST_P(StoreTest, KeysAndValuesMayHoldAnyBytes) {
  const std::string zero("\0\0", 2);
  const std::string high("\xff\xfe", 2);
  must_commit(*store_, {{put(zero, high), put("m" + zero, zero)}, {}, {}});
  EXPECT_EQ(held(*store_), (Held{{zero, high}, {"m" + zero, zero}}));
}

TEST_P(StoreTest, ALaterCommitReplacesAndErases) {
  must_commit(*store_, {{put("a", "1"), put("b", "1"), put("c", "1")}, {}, {}});
  must_commit(*store_, {{put("a", "2")}, {"b", "never there"}, {}});
  EXPECT_EQ(held(*store_), (Held{{"a", "2"}, {"c", "1"}}));
  EXPECT_EQ(*store_->get("b"), std::nullopt);
  must_commit(*store_, {{put("b", "3")}, {}, {}});
  EXPECT_EQ(*store_->get("b"), "3");
}

TEST_P(StoreTest, AnErasedRangeEndsBeforeItsEnd) {
  must_commit(*store_, {{put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")}, {}, {}});
  must_commit(*store_, {{}, {}, {{"b", "d"}}});
  EXPECT_EQ(held(*store_), (Held{{"a", "1"}, {"d", "1"}}));
  EXPECT_EQ(*store_->get("c"), std::nullopt);
  must_commit(*store_, {{}, {}, {{"d", "d"}, {"z", "a"}}});
  EXPECT_EQ(held(*store_).size(), 2u);
}

TEST_P(StoreTest, ErasedRangesMayMeetEachOtherAndErasedKeys) {
  must_commit(*store_, {{put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")}, {}, {}});
  must_commit(*store_, {{}, {"b"}, {{"a", "b"}, {"b", "c"}, {"a", "bb"}}});
  EXPECT_EQ(held(*store_), (Held{{"c", "1"}, {"d", "1"}}));
}

TEST_P(StoreTest, ErasedTerritoryMayBeWrittenAgain) {
  must_commit(*store_, {{put(message(1, 1), "old"), put(message(1, 2), "old")}, {}, {}});
  must_commit(*store_, {{}, {}, {{message(1, 0), message(1, 9)}}});
  EXPECT_TRUE(held(*store_).empty());
  must_commit(*store_, {{put(message(1, 2), "new")}, {}, {}});
  EXPECT_EQ(held(*store_), (Held{{message(1, 2), "new"}}));
}

TEST_P(StoreTest, EntriesOfASeriesAreEntriesLikeOthers) {
  must_commit(*store_, {{put(message(1, 300), "z")}, {}, {}, {series(1, 254, 4), series(2, 1, 2)}});
  EXPECT_EQ(held(*store_), (Held{{message(1, 254), "254.."},
                                 {message(1, 255), "255.."},
                                 {message(1, 256), "256.."},
                                 {message(1, 257), "257.."},
                                 {message(1, 300), "z"},
                                 {message(2, 1), "1...."},
                                 {message(2, 2), "2...."}}));
  must_commit(*store_, {{put(message(1, 255), "new")}, {message(1, 256)}, {}});
  EXPECT_EQ(held(*store_, {message(1, 255), message(1, 258)}),
            (Held{{message(1, 255), "new"}, {message(1, 257), "257.."}}));
}

TEST_P(StoreTest, ASeriesMayReachIntoErasedTerritory) {
  must_commit(*store_, {{}, {}, {}, {series(1, 1, 100)}});
  must_commit(*store_, {{}, {}, {{message(1, 50), message(1, 90)}}});
  must_commit(*store_, {{}, {}, {}, {series(1, 40, 20)}});
  EXPECT_EQ(held(*store_).size(), 49u + 10 + 11);
}

TEST_P(StoreTest, AScanKeepsToItsRangeAndEndsWhenTold) {
  Batch batch;
  for (std::uint64_t i = 0; i < 1000; ++i) batch.puts.push_back(put(message(1, i), "v"));
  must_commit(*store_, batch);
  const Held some = held(*store_, {message(1, 10), message(1, 20)});
  EXPECT_EQ(some.size(), 10u);
  EXPECT_EQ(some.begin()->first, message(1, 10));
  int visits = 0;
  EXPECT_TRUE(
      store_->scan({"", "z"}, [&](std::string_view, std::string_view) { return ++visits < 7; }));
  EXPECT_EQ(visits, 7);
  EXPECT_TRUE(held(*store_, {"z", "a"}).empty());
}

TEST_P(StoreTest, AScanDoesNotSeeCommitsThatEndAfterItBegan) {
  must_commit(*store_, {{put("a", "1"), put("b", "1")}, {}, {}});
  Held seen;
  EXPECT_TRUE(store_->scan({"", "z"}, [&](std::string_view key, std::string_view value) {
    if (seen.empty()) must_commit(*store_, {{put("b", "2"), put("c", "2")}, {"a"}, {}});
    seen.emplace(key, value);
    return true;
  }));
  EXPECT_EQ(seen, (Held{{"a", "1"}, {"b", "1"}}));
  EXPECT_EQ(held(*store_), (Held{{"b", "2"}, {"c", "2"}}));
}

TEST_P(StoreTest, ScansOfOtherThreadsSeeWholeCommits) {
  const auto state = [](std::uint64_t round) {
    Batch batch;
    for (std::uint64_t lane = 0; lane < 20; ++lane)
      batch.puts.push_back(put(key_of('a', lane, 0), std::to_string(round)));
    for (std::uint64_t i = 0; i < 20; ++i)
      batch.puts.push_back(put(message(1, round * 20 + i), std::to_string(round)));
    if (round > 0) batch.erased_ranges.push_back({message(1, 0), message(1, round * 20)});
    return batch;
  };
  must_commit(*store_, state(0));
  std::atomic<bool> done = false;
  int scans = 0;
  std::thread reader([&] {
    while (!done || scans < 10) {
      const Held seen = held(*store_);
      ASSERT_EQ(seen.size(), 40u);
      for (const auto& [key, value] : seen) ASSERT_EQ(value, seen.begin()->second);
      ++scans;
    }
  });
  for (std::uint64_t round = 1; round <= 30; ++round) must_commit(*store_, state(round));
  done = true;
  reader.join();
}

// A batch with every kind of change, and its effect on a map.
Batch random_batch(std::mt19937_64& random, std::uint64_t& tail, Held& expected) {
  Batch batch;
  Held changed;
  const std::uint64_t head = tail > 3000 ? tail - 3000 : 0;
  const std::uint64_t lane = random() % 3;
  if (random() % 2 == 0) {
    std::uint64_t begin = head + random() % 2000;
    batch.erased_ranges.push_back({message(lane, begin), message(lane, begin + random() % 400)});
    auto& range = batch.erased_ranges.back();
    expected.erase(expected.lower_bound(range.begin), expected.lower_bound(range.end));
  }
  const auto free = [&](const std::string& key) {
    for (const KeyRange& range : batch.erased_ranges)
      if (key >= range.begin && key < range.end) return false;
    return changed.emplace(key, "").second;
  };
  const auto add = [&](std::string key) {
    if (!free(key)) return;
    std::string value(random() % 300, static_cast<char>('a' + random() % 26));
    expected[key] = value;
    batch.puts.push_back(put(std::move(key), std::move(value)));
  };
  for (std::uint64_t count = random() % 300; count > 0; --count) add(message(random() % 3, ++tail));
  if (random() % 2 == 0) {
    tail = std::max(tail, head + 3000);  // Nothing else of the batch is beyond.
    batch.series.push_back(series(random() % 3, tail + 1, 1 + random() % 300));
    tail += batch.series.back().entries.size();
    batch.series.back().for_each([&](std::string_view key, std::string_view value,
                                     const ContentPtr&) { expected[std::string(key)] = value; });
  }
  for (int i = 0; i < 20; ++i) add(message(random() % 3, head + random() % 3000));
  for (int i = 0; i < 5; ++i) add(key_of('a', random() % 9, 0));
  for (int i = 0; i < 50; ++i) {
    const std::string key = message(random() % 3, head + random() % 3000);
    if (!free(key)) continue;
    expected.erase(key);
    batch.erased.push_back(key);
  }
  return batch;
}

TEST_P(StoreTest, RandomBatchesLeaveWhatAMapWouldHold) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    store_.reset();
    store_ = GetParam().open(scratch_.store() + std::to_string(seed));
    std::uint64_t tail = 0;
    Held expected;
    for (int round = 0; round < 40; ++round) {
      must_commit(*store_, random_batch(random, tail, expected));
      if (auto* rocks = dynamic_cast<RocksStore*>(store_.get()); rocks && round % 11 == 0) {
        ASSERT_TRUE(rocks->reclaim());
      }
      ASSERT_EQ(held(*store_), expected) << "seed " << seed << ", round " << round;
    }
    for (int i = 0; i < 100; ++i) {
      const std::string key = message(random() % 3, random() % (tail + 1));
      const auto found = expected.find(key);
      EXPECT_EQ(*store_->get(key),
                found == expected.end() ? std::nullopt : std::optional<std::string>(found->second));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoreTest,
                         testing::Values(Kind{"Memory",
                                              [](const std::string&) {
                                                return std::make_unique<MemoryStore>();
                                              }},
                                         Kind{"Rocks", open_rocks}),
                         [](const auto& kind) { return kind.param.name; });

TEST(MemoryStore, BeginsFromACopyOfAnother) {
  MemoryStore first;
  must_commit(first, {{put("a", "1")}, {}, {}});
  MemoryStore second(first.entries());
  must_commit(first, {{}, {"a"}, {}});
  EXPECT_EQ(held(second), (Held{{"a", "1"}}));
  EXPECT_EQ(second.size_on_disk(), 2u);
}

}  // namespace
}  // namespace stanchion::store
