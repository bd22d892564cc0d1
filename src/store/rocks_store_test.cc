// What only a store on a disk can get wrong: reopening, damage, space, backups.
#include "store/rocks_store.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/faulty_file_system.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

class RocksStoreTest : public testing::Test {
 protected:
  void open(const RocksOptions& options = {}) {
    store_.reset();
    auto opened = RocksStore::open(scratch_.store(), options);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

  std::vector<std::string> tables() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.store()))
      if (entry.path().extension() == ".sst") paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  Scratch scratch_;
  std::unique_ptr<RocksStore> store_;
};

TEST_F(RocksStoreTest, EverythingIsThereAfterReopening) {
  open();
  must_commit(*store_, messages(1, 0, 1000));
  must_commit(*store_, {{put("c", "1")}, {message(1, 5)}, {{message(1, 10), message(1, 20)}}});
  const Held before = held(*store_);
  EXPECT_EQ(before.size(), 990u);
  open();
  EXPECT_EQ(held(*store_), before);
  must_commit(*store_, messages(1, 1000, 10));
  open();
  EXPECT_EQ(held(*store_).size(), 1000u);
}

TEST_F(RocksStoreTest, ASecondProcessIsRefused) {
  open();
  const auto second = RocksStore::open(scratch_.store());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("LOCK"), std::string::npos) << second.error().message;
}

TEST_F(RocksStoreTest, AStoreThatIsNotThisShardsIsRefused) {
  RocksOptions mine;
  mine.identity = "shard 0\n";
  RocksOptions others;
  others.identity = "shard 1\n";
  open(mine);
  must_commit(*store_, messages(1, 0, 10));
  store_.reset();
  const auto refused = RocksStore::open(scratch_.store(), others);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("SHARD says 'shard 0'"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(RocksStore::open_read_only(scratch_.store(), others.identity));
  EXPECT_TRUE(RocksStore::open_read_only(scratch_.store(), mine.identity));
  open(mine);
  EXPECT_EQ(held(*store_).size(), 10u);
  store_.reset();
  std::filesystem::remove(scratch_.store() + "/SHARD");
  EXPECT_FALSE(RocksStore::open(scratch_.store(), mine)) << "it was someone's";
  EXPECT_FALSE(RocksStore::open_read_only(scratch_.store(), mine.identity));
}

TEST_F(RocksStoreTest, LeftoversOfACrashAreRemoved) {
  open();
  must_commit(*store_, messages(1, 0, 100));
  store_.reset();
  const std::string incoming = scratch_.store() + "/incoming/0.sst";
  const std::string linked = scratch_.store() + "/000987.sst";
  std::ofstream(incoming) << "half a file";
  std::ofstream(linked) << "half a file";
  open();
  EXPECT_FALSE(std::filesystem::exists(incoming));
  EXPECT_FALSE(std::filesystem::exists(linked));
  EXPECT_EQ(held(*store_).size(), 100u);
}

TEST_F(RocksStoreTest, AppendedLanesAreNeverRewritten) {
  open();
  for (std::uint64_t round = 0; round < 30; ++round) {
    Batch batch = messages(1, round * 500, 500);
    for (Put& more : messages(2, round * 500, 500).puts) batch.puts.push_back(std::move(more));
    batch.puts.push_back(put("c", std::to_string(round)));
    if (round > 4) {
      const std::uint64_t head = (round - 4) * 400;
      batch.erased_ranges.push_back({message(1, head - 400), message(1, head)});
    }
    must_commit(*store_, batch);
  }
  const RocksFigures figures = store_->figures();
  EXPECT_LT(figures.merged, figures.committed / 10);
  ASSERT_TRUE(store_->reclaim());  // Files are dropped while commits go on.
  EXPECT_GT(store_->figures().files_dropped, 0u);
}

TEST_F(RocksStoreTest, SpaceOfAPurgedQueueComesBackWithoutReadingIt) {
  open();
  for (std::uint64_t round = 0; round < 20; ++round)
    must_commit(*store_, messages(1, round * 5000, 5000));
  must_commit(*store_, messages(2, 0, 10));
  EXPECT_GT(store_->size_on_disk(), 20'000'000u);
  must_commit(*store_, {{}, {}, {{message(1, 0), message(1, 1'000'000)}}});
  ASSERT_TRUE(store_->reclaim());
  EXPECT_TRUE(shrinks_below(*store_, 1'000'000));
  EXPECT_LT(store_->figures().merged, 1'000'000u);
  EXPECT_EQ(held(*store_).size(), 10u);
}

// Waits for something that another thread does, but not for ever.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// Lets a test hold back writes to the manifest, and notices when a merge writes.
class GatedFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  GatedFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "GatedFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(path, options, file, debug);
    if (path.ends_with(".sst") && path.find("incoming") == std::string::npos) merging.open();
    if (status.ok() && path.find("MANIFEST") != std::string::npos)
      *file = std::make_unique<Manifest>(*this, std::move(*file));
    return status;
  }

  std::atomic<int> free_syncs = std::numeric_limits<int>::max();  // Writes after it are held.
  Gate held;                                                      // One is held.
  Gate go_on;
  Gate merging;

 private:
  class Manifest final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Manifest(GatedFileSystem& system, std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      if (system_.free_syncs-- <= 0) {
        system_.held.open();
        EXPECT_TRUE(system_.go_on.wait());
      }
      return target()->Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    GatedFileSystem& system_;
  };
};

// RocksDB lets a merge begin on a file that it is just dropping, and then reports that the store is
// damaged. Here the merge is due, but has to wait for its thread until the file is dropped.
TEST_F(RocksStoreTest, AFileIsNotDroppedWhileAMergeTakesItUp) {
  const auto files = std::make_shared<GatedFileSystem>();
  const auto env = rocksdb::NewCompositeEnv(files);
  RocksOptions options;
  options.env = env.get();
  open(options);
  must_commit(*store_, messages(1, 0, 20));
  // Tables that span it, one fewer than RocksDB merges.
  const auto spanning = [] {
    Batch batch;
    batch.puts = {put(message(0, 0), "before"), put(message(2, 0), "behind")};
    return batch;
  };
  for (int i = 0; i < 7; ++i) must_commit(*store_, spanning());

  Gate thread_free;
  ASSERT_EQ(env->GetBackgroundThreads(rocksdb::Env::LOW), 1);
  env->Schedule([](void* gate) { EXPECT_TRUE(static_cast<Gate*>(gate)->wait()); }, &thread_free,
                rocksdb::Env::LOW);
  files->free_syncs = 2;  // Those of the commit.
  std::thread committer([&] {
    Batch last = spanning();
    last.erased_ranges.push_back({message(1, 0), message(1, 20)});
    must_commit(*store_, last);
    files->held.open();
  });
  EXPECT_TRUE(files->held.wait()) << "the file is being dropped, or that has to wait";
  thread_free.open();
  EXPECT_TRUE(files->merging.wait());
  files->go_on.open();
  committer.join();
  ASSERT_TRUE(store_->reclaim());
  must_commit(*store_, spanning());
  EXPECT_EQ(held(*store_).size(), 2u);
  store_.reset();  // Before its file system.
}

TEST_F(RocksStoreTest, SpaceErasedByAnEarlierProcessComesBack) {
  RocksOptions never;
  never.reclaim_interval = std::chrono::hours(24);
  open(never);
  Batch mixed;
  for (std::uint64_t lane = 0; lane < 1000; ++lane)
    for (Put& one : messages(lane, 0, 20).puts) mixed.puts.push_back(std::move(one));
  must_commit(*store_, mixed);
  Batch erasure;
  for (std::uint64_t lane = 0; lane < 999; ++lane)
    erasure.erased_ranges.push_back({message(lane, 0), message(lane, 20)});
  must_commit(*store_, erasure);
  EXPECT_GT(store_->size_on_disk(), 3'000'000u);
  open(never);
  ASSERT_TRUE(store_->reclaim());
  EXPECT_TRUE(shrinks_below(*store_, 1'000'000));
  EXPECT_EQ(held(*store_).size(), 20u);
}

TEST_F(RocksStoreTest, SpaceOfManySmallErasuresComesBack) {
  open();
  for (std::uint64_t round = 0; round < 10; ++round) {
    Batch batch;
    for (std::uint64_t lane = 0; lane < 1000; ++lane)
      for (Put& one : messages(lane, round * 10, 10).puts) batch.puts.push_back(std::move(one));
    must_commit(*store_, batch);
  }
  EXPECT_GT(store_->size_on_disk(), 20'000'000u);
  for (std::uint64_t round = 0; round < 10; ++round) {
    Batch batch;
    for (std::uint64_t lane = 0; lane < 1000; ++lane)
      for (std::uint64_t i = 0; i < 10; ++i) batch.erased.push_back(message(lane, i * 10 + round));
    must_commit(*store_, batch);
  }
  ASSERT_TRUE(store_->reclaim());
  EXPECT_TRUE(shrinks_below(*store_, 1'000'000));
  EXPECT_TRUE(held(*store_).empty());
}

TEST_F(RocksStoreTest, ErasingWhatIsNotThereWritesNothing) {
  open();
  must_commit(*store_, messages(1, 0, 10));
  const std::uint64_t before = store_->figures().files;
  must_commit(*store_, {{}, {}, {{message(2, 0), message(2, 100)}}});
  EXPECT_EQ(store_->figures().files, before);
}

TEST_F(RocksStoreTest, ABackupHoldsTheLastCommitAndLivesOnItsOwn) {
  open();
  must_commit(*store_, messages(1, 0, 1000));
  const std::string copy = scratch_.path() + "/backups/today/store";
  const Status made = store_->backup_to(copy);
  ASSERT_TRUE(made) << made.error().message;
  must_commit(*store_, {{}, {}, {{message(1, 0), message(1, 900)}}});
  EXPECT_FALSE(store_->backup_to(copy)) << "an existing directory must not be touched";
  ASSERT_TRUE(store_->reclaim());

  auto restored = RocksStore::open(copy);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(held(**restored).size(), 1000u);
  must_commit(**restored, messages(1, 1000, 5));
  EXPECT_EQ(held(**restored).size(), 1005u);
  EXPECT_EQ(held(*store_).size(), 100u);
}

TEST_F(RocksStoreTest, ATableThatIsNotWhatWasWrittenIsFoundByCheckingAll) {
  open();
  must_commit(*store_, messages(1, 0, 1000));
  const std::string copy = scratch_.path() + "/copy";
  std::filesystem::copy(scratch_.store(), copy, std::filesystem::copy_options::recursive);
  auto whole = RocksStore::open_read_only(copy);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_TRUE((*whole)->check_tables());
  for (const auto& file : std::filesystem::directory_iterator(copy)) {
    if (file.path().extension() != ".sst") continue;
    std::fstream table(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    table.seekp(100);
    table.put('\x7e');
  }
  auto damaged = RocksStore::open_read_only(copy);
  ASSERT_TRUE(damaged) << damaged.error().message;
  EXPECT_FALSE((*damaged)->check_tables());
}

TEST_F(RocksStoreTest, AReaderBesideTheServerSeesOneCommitAndChangesNothing) {
  open();
  must_commit(*store_, messages(1, 0, 1000));
  auto reader = RocksStore::open_read_only(scratch_.store());
  ASSERT_TRUE(reader) << reader.error().message;
  must_commit(*store_, {{}, {}, {{message(1, 0), message(1, 1000)}}});
  ASSERT_TRUE(store_->reclaim());
  EXPECT_EQ(held(**reader).size(), 1000u);
  EXPECT_TRUE(held(*store_).empty());
  store_.reset();

  std::set<std::string> before, after;
  const auto names = [&](std::set<std::string>& into) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_.store()))
      into.insert(entry.path().string());
  };
  names(before);
  EXPECT_TRUE(RocksStore::open_read_only(scratch_.store()));
  names(after);
  EXPECT_EQ(before, after);
  EXPECT_FALSE(RocksStore::open_read_only(scratch_.path() + "/missing"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() + "/missing"));
}

// The record is in the manifest, but its sync failed: what RocksDB undoes may be there later.
TEST_F(RocksStoreTest, AStoreWhoseManifestCouldNotBeSyncedOpensAgain) {
  const auto system = std::make_shared<FaultyFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(system);
  RocksOptions options;
  options.env = env.get();
  int manifest = 0;
  for (std::uint64_t step = 1;; ++step) {
    store_.reset();
    std::filesystem::remove_all(scratch_.store());
    open(options);
    const std::uint64_t first = step * 100;
    system->arm(Fault::kNoSpace, step);
    const Status status = store_->commit(messages(1, first, 100));
    const bool failed_at_manifest = system->victim().find("MANIFEST") != std::string::npos;
    // Still full while the process ends, so that RocksDB cannot repair the manifest.
    store_.reset();
    system->disarm();
    manifest += failed_at_manifest;
    open(options);
    const std::size_t there = held(*store_, {message(1, first), message(1, first + 100)}).size();
    EXPECT_TRUE(there == 100 || (!status && there == 0)) << there << " at step " << step;
    if (status) break;
  }
  EXPECT_GE(manifest, 2);
  store_.reset();  // Before its file system.
}

// Opens the store and reads all of it; returns what went wrong, or nothing.
std::string read_all(const std::string& path, Held& entries) {
  auto store = RocksStore::open_read_only(path);
  if (!store) return store.error().message;
  const Status status =
      (*store)->scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
        entries.emplace(key, value);
        return true;
      });
  return status ? "" : status.error().message;
}

void flip(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x20));
}

class DamageTest : public RocksStoreTest {
 protected:
  void SetUp() override {
    RocksOptions never;
    never.reclaim_interval = std::chrono::hours(24);
    open(never);
    for (std::uint64_t round = 0; round < 3; ++round) {
      must_commit(*store_, messages(1, round * 500, 500));
      must_commit(*store_, {{put("c", std::to_string(round))}, {message(1, round * 500 + 7)}, {}});
    }
    must_commit(*store_, {{}, {}, {{message(1, 100), message(1, 600)}}});
    whole_ = held(*store_);
    store_.reset();
  }

  // Damage is found, or does no harm: nothing is ever silently missing or different.
  void expect_found(const std::string& path, std::uint64_t offset, int& found) {
    flip(path, offset);
    Held entries;
    const std::string problem = read_all(scratch_.store(), entries);
    if (problem.empty()) {
      EXPECT_EQ(entries, whole_) << path << " at " << offset;
    } else {
      ++found;
      const std::string name = std::filesystem::path(path).filename().string();
      EXPECT_NE(problem.find(name), std::string::npos)
          << path << " at " << offset << ": " << problem;
    }
    flip(path, offset);
  }

  Held whole_;
};

TEST_F(DamageTest, AFlippedBitOfATableIsFoundAndTheFileNamed) {
  int found = 0;
  int tried = 0;
  for (const std::string& path : tables()) {
    const std::uint64_t size = std::filesystem::file_size(path);
    const std::uint64_t step = std::max<std::uint64_t>(1, size / 40);
    for (std::uint64_t offset = 0; offset < size; offset += step, ++tried)
      expect_found(path, offset, found);
  }
  EXPECT_GT(found, tried * 8 / 10);
}

// Sooner or later a merge meets the damage: it leaves the damage where it is, and the rest can be
// used.
TEST_F(DamageTest, WhatIsNotDamagedGoesOn) {
  const std::string damaged = tables().front();
  flip(damaged, 10);
  RocksOptions never;
  never.reclaim_interval = std::chrono::hours(24);
  open(never);
  for (std::uint64_t round = 0; round < 30; ++round) {
    // Each table spans the damaged one, so that it has to be merged with it.
    Batch batch = messages(2, round * 10, 10);
    batch.puts.push_back(put(message(0, round), "before"));
    must_commit(*store_, batch);
  }
  static_cast<void>(store_->reclaim());
  must_commit(*store_, messages(2, 1000, 10));
  EXPECT_EQ(held(*store_, {message(2, 0), message(3, 0)}).size(), 310u);
  const auto visit = [](std::string_view, std::string_view) { return true; };
  EXPECT_FALSE(store_->scan({message(1, 0), message(2, 0)}, visit));
  open(never);
  EXPECT_EQ(held(*store_, {message(2, 0), message(3, 0)}).size(), 310u);
}

TEST_F(DamageTest, AFlippedBitOfTheManifestIsFoundBeforeAnythingIsRemoved) {
  const std::vector<std::string> before = tables();
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.store())) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("MANIFEST") && name != "CURRENT") continue;
    for (std::uint64_t offset = 0; offset < entry.file_size(); offset += 7) {
      flip(entry.path().string(), offset);
      const auto opened = RocksStore::open(scratch_.store());
      ASSERT_FALSE(opened) << name << " at " << offset;
      EXPECT_NE(opened.error().message.find(name), std::string::npos) << opened.error().message;
      flip(entry.path().string(), offset);
    }
  }
  EXPECT_EQ(tables(), before);
  open();
  EXPECT_EQ(held(*store_), whole_);
}

TEST_F(DamageTest, AManifestThatLostItsEndIsRefused) {
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.store())) {
    if (!entry.path().filename().string().starts_with("MANIFEST")) continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() - 1);
  }
  const auto opened = RocksStore::open(scratch_.store());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("MANIFEST"), std::string::npos);
}

TEST_F(DamageTest, AMissingOrShortTableIsNamedByOpening) {
  for (const std::string& path : tables()) {
    std::filesystem::copy_file(path, scratch_.path() + "/kept");
    const std::string name = std::filesystem::path(path).filename().string();
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    const auto shorter = RocksStore::open(scratch_.store());
    ASSERT_FALSE(shorter);
    EXPECT_NE(shorter.error().message.find(name), std::string::npos) << shorter.error().message;
    std::filesystem::remove(path);
    const auto missing = RocksStore::open(scratch_.store());
    ASSERT_FALSE(missing);
    EXPECT_NE(missing.error().message.find(name), std::string::npos) << missing.error().message;
    std::filesystem::rename(scratch_.path() + "/kept", path);
  }
  open();
  EXPECT_EQ(held(*store_), whole_);
}

TEST_F(DamageTest, AStoreThatLostItsCurrentIsNotTakenForANewOne) {
  const std::vector<std::string> before = tables();
  std::filesystem::remove(scratch_.store() + "/CURRENT");
  const auto opened = RocksStore::open(scratch_.store());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("CURRENT"), std::string::npos);
  const auto looked_at = RocksStore::open_damaged(scratch_.store(), "");
  ASSERT_FALSE(looked_at);
  EXPECT_NE(looked_at.error().message.find("restore a backup"), std::string::npos)
      << looked_at.error().message;
  EXPECT_EQ(tables(), before);
}

TEST_F(DamageTest, ASurveyTellsWhichFilesAreReadable) {
  const std::string damaged = tables().at(2);
  auto reports = survey(scratch_.store());
  ASSERT_TRUE(reports);
  std::uint64_t entries = 0;
  for (const FileReport& report : *reports) {
    EXPECT_EQ(report.problem, "") << report.path;
    entries += report.entries;
  }
  EXPECT_EQ(reports->size(), tables().size() + 1);
  EXPECT_GT(entries, whole_.size());

  flip(damaged, 10);
  reports = survey(scratch_.store());
  ASSERT_TRUE(reports);
  for (const FileReport& report : *reports)
    EXPECT_EQ(report.problem.empty(), report.path != damaged) << report.path << report.problem;
  EXPECT_FALSE(survey(scratch_.path() + "/missing"));
}

}  // namespace
}  // namespace stanchion::store
