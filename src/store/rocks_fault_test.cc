// Every single call that a store makes to its file system fails once, in each way that a call can
// fail. Afterwards either nothing happened, or the operation reports failure and the store, when it
// is opened again, has everything that was committed before, and the commit in question as a whole
// or not at all.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "store/faulty_file_system.h"
#include "store/rocks_store.h"
#include "store/small_files.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

constexpr Fault kFailures[] = {Fault::kError, Fault::kShortRead};
constexpr Fault kFailuresAndLies[] = {Fault::kError, Fault::kShortRead, Fault::kWrongRead};

// Each of them with STANCHION_EVERY_STEP=1, which takes minutes; else one in so many, from a
// different one on each time. The sanitizers look at the same paths with fewer: the release build
// has the others.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kStride = 24;
#else
constexpr std::uint64_t kStride = 6;
#endif

std::uint64_t stride() {
  return std::getenv("STANCHION_EVERY_STEP") != nullptr ? 1 : kStride;
}

std::string noise(std::uint64_t seed, std::size_t size) {
  std::string value;
  while (value.size() < size) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    value.append(reinterpret_cast<const char*>(&seed), sizeof seed);
  }
  return value;
}

// Every kind of table: with one block and with many, with erased keys, with erased ranges alone and
// together with entries, with a series.
Batch batch_of(std::uint64_t number) {
  Batch batch;
  batch.puts.push_back(put("c", std::to_string(number)));
  for (std::uint64_t i = 0; i < 200; ++i)
    batch.puts.push_back(put(message(1, number * 200 + i), noise(i, 300)));
  for (std::uint64_t lane = 10; lane < 15; ++lane)
    batch.puts.push_back(put(key_of('x', lane, number), "v"));
  batch.series.push_back(series(2, number * 100, 100, 200));
  if (number == 0) return batch;
  const std::uint64_t before = (number - 1) * 200;
  batch.erased.push_back(message(1, before + 7));
  batch.erased.push_back(key_of('x', 10, number - 1));
  batch.erased_ranges.push_back({message(1, before + 20), message(1, before + 120)});
  batch.erased_ranges.push_back({key_of('x', 12, 0), key_of('x', 12, number)});
  return batch;
}

void play(const Batch& batch, Held& state) {
  for (const KeyRange& range : batch.erased_ranges)
    state.erase(state.lower_bound(range.begin), state.lower_bound(range.end));
  for (const Key& key : batch.erased) state.erase(std::string(key));
  batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr&) {
    state[std::string(key)] = head;
  });
}

class RocksFaultTest : public testing::Test {
 protected:
  void SetUp() override {
    system_->skip_syncs();
    options_.env = env_.get();
    options_.reclaim_interval = std::chrono::hours(24);
  }

  // A store with two commits.
  void make_original() {
    auto original = RocksStore::open(scratch_.path() + "/original", options_);
    ASSERT_TRUE(original) << original.error().message;
    for (std::uint64_t number = 0; number < 2; ++number) {
      must_commit(**original, batch_of(number));
      play(batch_of(number), state_);
    }
    play(last_commit_, state_);
  }

  // A copy of it that is not cached in memory, with one more commit.
  void prepare() {
    store_.reset();
    std::filesystem::remove_all(scratch_.store());
    std::filesystem::remove_all(scratch_.path() + "/copy");
    std::filesystem::copy(scratch_.path() + "/original", scratch_.store(),
                          std::filesystem::copy_options::recursive);
    reopen();
    must_commit(*store_, last_commit_);
  }

  void reopen() {
    store_.reset();
    auto opened = RocksStore::open(scratch_.store(), options_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  // Runs `work` again and again, with each of its steps failing in turn, and `look` after each.
  void strike_every_step(std::span<const Fault> faults, const std::function<Status()>& work,
                         const std::function<void(const Status&)>& look) {
    make_original();
    std::random_device random;
    for (const Fault fault : faults) {
      bool happened_before = false;
      for (std::uint64_t step = 1 + random() % stride();;) {
        prepare();
        system_->arm(fault, step);
        const Status status = work();
        const bool happened = system_->happened();
        const std::string victim = system_->victim();
        system_->disarm();
        SCOPED_TRACE("fault " + std::to_string(static_cast<int>(fault)) + " at step " +
                     std::to_string(step) + ", " + victim);
        EXPECT_TRUE(status || happened) << status.error().message;
        look(status);
        if (HasFailure()) return;
        if (happened) {
          happened_before = true;
          struck_ += stride();
          step += stride();
        } else if (happened_before || step == 1) {
          break;
        } else {
          step = 1 + random() % (step - 1);  // The work has fewer steps than that.
        }
      }
    }
    store_.reset();  // Declared before its file system.
  }

  std::shared_ptr<FaultyFileSystem> system_ = std::make_shared<FaultyFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(system_);
  RocksOptions options_;
  Scratch scratch_;
  std::unique_ptr<RocksStore> store_;
  Held state_;
  Batch last_commit_;  // Nothing, unless a test says otherwise.
  std::uint64_t struck_ = 0;
};

class RocksCommitFaultTest : public RocksFaultTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, RocksCommitFaultTest, testing::Bool(), [](const auto& begins_manifest) {
  return begins_manifest.param ? "WithANewManifest" : "WithTheSameManifest";
});

TEST_P(RocksCommitFaultTest, ACommitIsThereAsAWholeOrFailsAndLosesNothing) {
  if (GetParam()) options_.manifest_size_max = 1;
  strike_every_step(
      kFailuresAndLies, [&] { return store_->commit(batch_of(2)); },
      [&](const Status& status) {
        Held after = state_;
        play(batch_of(2), after);
        // After a failure the process ends; after a success it goes on for a while.
        if (status) {
          EXPECT_TRUE(held(*store_) == after);
          // During the commit, a merge may have met the fault.
          if (store_->commit(batch_of(3))) play(batch_of(3), after);
          reopen();
          EXPECT_TRUE(held(*store_) == after);
          return;
        }
        reopen();
        const Held there = held(*store_);
        EXPECT_TRUE(there == state_ || there == after) << status.error().message;
        if (there == state_) must_commit(*store_, batch_of(2));
        EXPECT_TRUE(held(*store_) == after);
      });
  EXPECT_GT(struck_, 60u);
}

TEST_F(RocksFaultTest, AnOpeningFailsOrFindsEverything) {
  strike_every_step(
      kFailuresAndLies,
      [&]() -> Status {
        store_.reset();
        auto opened = RocksStore::open(scratch_.store(), options_);
        if (!opened) return std::unexpected(std::move(opened).error());
        store_ = std::move(*opened);
        return {};
      },
      [&](const Status& status) {
        EXPECT_TRUE(!status || held(*store_) == state_);
        reopen();
        EXPECT_TRUE(held(*store_) == state_);
      });
  EXPECT_GT(struck_, 20u);
}

TEST_F(RocksFaultTest, AScanFailsOrFindsEverything) {
  Held found;
  strike_every_step(
      kFailures,
      [&] {
        found.clear();
        return store_->scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
          found.emplace(key, value);
          return true;
        });
      },
      [&](const Status& status) {
        EXPECT_TRUE(!status || found == state_);
        EXPECT_TRUE(held(*store_) == state_) << "what failed once was not remembered";
      });
  EXPECT_GT(struck_, 20u);
}

TEST_F(RocksFaultTest, AReaderThatChangesNothingFailsOrFindsEverything) {
  Held found;
  strike_every_step(
      kFailures,
      [&]() -> Status {
        found.clear();
        const auto reader = RocksStore::open_read_only(scratch_.store(), "", options_.env);
        if (!reader) return std::unexpected(reader.error());
        return (*reader)->scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
          found.emplace(key, value);
          return true;
        });
      },
      [&](const Status& status) { EXPECT_TRUE(!status || found == state_); });
  EXPECT_GT(struck_, 20u);
}

TEST_F(RocksFaultTest, AMergeFailsOrKeepsEverything) {
  strike_every_step(
      kFailuresAndLies, [&] { return store_->reclaim(); },
      [&](const Status&) {
        EXPECT_TRUE(held(*store_) == state_);
        reopen();
        EXPECT_TRUE(held(*store_) == state_);
        EXPECT_TRUE(store_->reclaim());
        EXPECT_TRUE(held(*store_) == state_);
      });
  EXPECT_GT(struck_, 20u);
}

// Stretches that lie so far apart that each has a file of its own.
Batch crowd() {
  Batch batch;
  for (std::uint64_t i = 0; i < kCrowdMin; ++i)
    for (std::uint64_t number = 0; number < 60; ++number)
      batch.puts.push_back(put(message(3, i * 1'000'000 + number), noise(number, 300)));
  return batch;
}

TEST_F(RocksFaultTest, AMergeOfSmallFilesFailsOrKeepsEverything) {
  last_commit_ = crowd();
  strike_every_step(
      kFailuresAndLies, [&] { return store_->reclaim(); },
      [&](const Status&) {
        EXPECT_TRUE(held(*store_) == state_);
        reopen();
        EXPECT_TRUE(held(*store_) == state_);
        EXPECT_TRUE(store_->reclaim());
        EXPECT_LT(store_->figures().files, kCrowdMin);
        EXPECT_TRUE(held(*store_) == state_);
      });
  EXPECT_GT(struck_, 100u);
}

TEST_F(RocksFaultTest, ABackupFailsOrHoldsEverything) {
  const std::string copy = scratch_.path() + "/copy";
  strike_every_step(
      kFailuresAndLies, [&] { return store_->backup_to(copy); },
      [&](const Status& status) {
        EXPECT_TRUE(held(*store_) == state_);
        must_commit(*store_, batch_of(2));
        if (!status) return;
        auto opened = RocksStore::open_read_only(copy);
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_TRUE(held(**opened) == state_);
      });
  EXPECT_GT(struck_, 10u);
}

}  // namespace
}  // namespace stanchion::store
