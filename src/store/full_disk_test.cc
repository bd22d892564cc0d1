// A store on a full disk: nothing changes, and erased space is reclaimed without help.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "store/faulty_file_system.h"
#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

class FullDiskTest : public testing::Test {
 protected:
  FullDiskTest() { options_.env = env_.get(); }

  void open() {
    store_.reset();
    auto opened = RocksStore::open(scratch_.store(), options_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  // A large merge runs out of space, and RocksDB remembers that.
  void fail_a_merge() {
    must_commit(*store_, messages(1, 0, 5000));
    must_commit(*store_, {{}, {}, {{message(1, 1000), message(1, 4000)}}});
    system_->arm(Fault::kNoSpace, 1);
    const Status full = store_->reclaim();
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().os_error, ENOSPC) << full.error().message;
    system_->disarm();
  }

  Scratch scratch_;
  const std::shared_ptr<FaultyFileSystem> system_ = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(system_);
  RocksOptions options_;
  std::unique_ptr<RocksStore> store_;  // Destroyed before its file system.
};

// At every step of a commit the disk turns out to be full.
TEST_F(FullDiskTest, AFullDiskChangesNothingAndTheCommitMayBeTriedAgain) {
  Batch batch = messages(1, 100, 100);
  batch.puts.push_back(put("c", "1"));
  batch.erased_ranges.push_back({message(1, 0), message(1, 50)});
  int refused = 0;
  bool happened = true;
  for (std::uint64_t step = 1; happened; ++step) {
    // A new store each time, so that no merge can meet the full disk, too.
    store_.reset();
    std::filesystem::remove_all(scratch_.store());
    open();
    must_commit(*store_, messages(1, 0, 100));
    const Held before = held(*store_);
    system_->arm(Fault::kNoSpace, step);
    const Status status = store_->commit(batch);
    happened = system_->happened();
    const std::string victim = system_->victim();
    system_->disarm();
    if (!status && status.error().os_error == ENOSPC) {
      ++refused;
      EXPECT_EQ(held(*store_), before) << "step " << step << ", " << victim;
      EXPECT_TRUE(std::filesystem::is_empty(scratch_.store() + "/incoming"));
      EXPECT_EQ(store_->figures().incoming, 0u) << "it is forgotten, too";
      must_commit(*store_, batch);
    } else if (!status) {
      // The process would end here. If a table could not be written, it need not.
      EXPECT_FALSE(victim.ends_with(".sst")) << victim << status.error().message;
      open();
      if (held(*store_) == before) must_commit(*store_, batch);
    }
    EXPECT_EQ(held(*store_).size(), 151u) << "step " << step << ", " << victim;
  }
  EXPECT_GT(refused, 5);
}

TEST_F(FullDiskTest, MergingThatMetAFullDiskGoesOnLater) {
  options_.reclaim_interval = std::chrono::hours(24);
  open();
  must_commit(*store_, messages(1, 0, 5000));
  must_commit(*store_, {{}, {}, {{message(1, 1000), message(1, 4000)}}});
  const Held before = held(*store_);
  system_->arm(Fault::kNoSpace, 1);
  const Status full = store_->reclaim();
  system_->disarm();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().os_error, ENOSPC) << full.error().message;
  EXPECT_EQ(held(*store_), before);
  must_commit(*store_, {{put("c", "1")}, {}, {}});
  const Status merged = store_->reclaim();
  EXPECT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(held(*store_).size(), before.size() + 1);
  EXPECT_TRUE(shrinks_below(*store_, 700'000));
}

// After everything was erased, merging the rest needs almost no space, but after a merge that ran
// out of space RocksDB wants room for all of its input once more.
TEST_F(FullDiskTest, ErasedSpaceComesBackThoughThereIsNotRoomForAllOfItOnceMore) {
  options_.reclaim_interval = std::chrono::hours(24);
  open();
  system_->report_free_space(256 << 10);
  ASSERT_NO_FATAL_FAILURE(fail_a_merge());
  must_commit(*store_, {{}, {}, {{message(1, 1), message(1, 5000)}}});
  const Status merged = store_->reclaim();
  EXPECT_TRUE(merged) << merged.error().message;
  EXPECT_TRUE(shrinks_below(*store_, 100'000));
}

// The last messages are gone, and with them the last commit: no further commit asks for space.
TEST_F(FullDiskTest, AMergeThatRanOutOfSpaceIsTriedAgainSoonWithoutACommit) {
  open();
  ASSERT_NO_FATAL_FAILURE(fail_a_merge());
  EXPECT_TRUE(system_->wait_for_table(options_.reclaim_interval / 2));
}

}  // namespace
}  // namespace stanchion::store
