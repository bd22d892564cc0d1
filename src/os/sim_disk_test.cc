#include "os/sim_disk.h"

#include <gtest/gtest.h>

#include <set>

namespace stanchion::os {
namespace {

std::unique_ptr<File> create(Directory& directory, std::string_view name) {
  auto file = directory.open_file(name, OpenMode::kCreateNew);
  EXPECT_TRUE(file.has_value());
  return std::move(*file);
}

// A durable, empty file "f" in a fresh disk.
std::unique_ptr<File> durable_file(Directory& root) {
  auto file = create(root, "f");
  EXPECT_TRUE(root.sync());
  return file;
}

TEST(SimDisk, WhatIsWrittenIsReadBack) {
  SimDisk disk;
  const auto root = disk.root();
  const auto file = create(*root, "f");
  ASSERT_TRUE(file->write_at(510, "abcd"));
  char bytes[8] = {};
  EXPECT_EQ(*file->read_at(508, bytes), 6u);
  EXPECT_EQ(std::string(bytes, 6), std::string("\0\0abcd", 6));
  EXPECT_EQ(*file->size(), 514u);
}

TEST(SimDisk, AnAppendZeroesTheRestOfItsBlockAndNoMore) {
  SimDisk disk;
  const auto root = disk.root();
  disk.put("f", std::string(kBlockSize + 100, 'x'));
  const auto file = std::move(*root->open_file("f", OpenMode::kAppend));
  ASSERT_TRUE(file->write_at(10, "new"));
  std::string expected(kBlockSize + 100, 'x');
  expected.replace(10, kBlockSize - 10, kBlockSize - 10, '\0');
  expected.replace(10, 3, "new");
  EXPECT_TRUE(disk.content("f") == expected);
  ASSERT_TRUE(file->write_at(kBlockSize + 10, "end"));
  EXPECT_EQ(*file->size(), kBlockSize + 100);
}

TEST(SimDisk, UnsyncedBytesAndNamesAreLostInTheWorstCrash) {
  SimDisk disk;
  auto root = disk.root();
  auto file = durable_file(*root);
  ASSERT_TRUE(file->write_at(0, "kept"));
  ASSERT_TRUE(file->sync_data());
  ASSERT_TRUE(file->write_at(0, "lost"));
  create(*root, "nameless");
  disk.crash(std::nullopt);
  EXPECT_EQ(disk.content("f"), "kept");
  EXPECT_FALSE(disk.content("nameless"));
}

TEST(SimDisk, SyncedBytesOfAnUnsyncedNameAreLostWithTheName) {
  SimDisk disk;
  auto root = disk.root();
  auto file = create(*root, "f");
  ASSERT_TRUE(file->write_at(0, "bytes"));
  ASSERT_TRUE(file->sync_data());
  disk.crash(std::nullopt);
  EXPECT_FALSE(disk.content("f"));
}

TEST(SimDisk, CrashesTearWritesAtSectorsAndEachSeedAlwaysTheSame) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::string first;
    for (int run = 0; run < 2; ++run) {
      SimDisk disk;
      auto root = disk.root();
      auto file = durable_file(*root);
      ASSERT_TRUE(file->allocate(4 * SimDisk::kSectorSize));
      ASSERT_TRUE(file->sync_data());
      ASSERT_TRUE(file->write_at(0, std::string(4 * SimDisk::kSectorSize, 'x')));
      disk.crash(seed);
      std::string shape;
      const std::string content = *disk.content("f");
      for (std::size_t i = 0; i < content.size(); i += SimDisk::kSectorSize) {
        const std::string sector = content.substr(i, SimDisk::kSectorSize);
        ASSERT_TRUE(sector == std::string(sector.size(), sector[0]));
        shape += sector[0] == 'x' ? 'x' : '.';
      }
      if (run == 0) first = shape;
      EXPECT_EQ(shape, first);
      outcomes.insert(shape);
    }
  }
  EXPECT_EQ(outcomes.size(), 16u);
}

TEST(SimDisk, RenameIsAtomicInACrash) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimDisk disk;
    disk.put("old", "1");
    disk.put("new", "2");
    auto root = disk.root();
    ASSERT_TRUE(root->rename("new", "old"));
    disk.crash(seed);
    ASSERT_TRUE(disk.content("old"));
    outcomes.insert(*disk.content("old") + (disk.content("new") ? "+" : "-"));
  }
  EXPECT_EQ(outcomes, (std::set<std::string>{"1+", "2-"}));
}

TEST(SimDisk, BytesOfAFailedSyncAreReadBackButNoLaterSyncSavesThem) {
  SimDisk disk;
  auto root = disk.root();
  auto file = durable_file(*root);
  ASSERT_TRUE(file->allocate(1024));
  ASSERT_TRUE(file->sync_data());
  ASSERT_TRUE(file->write_at(0, "doomed"));
  disk.fail_sync(1);
  EXPECT_FALSE(file->sync_data());
  EXPECT_TRUE(file->sync_data());
  EXPECT_EQ(disk.content("f")->substr(0, 6), "doomed");
  disk.crash(std::nullopt);
  EXPECT_EQ(disk.content("f")->substr(0, 6), std::string(6, '\0'));
}

TEST(SimDisk, TruncatedBytesDoNotComeBackWhenTheFileGrows) {
  SimDisk disk;
  disk.put("f", std::string(2000, 'x'));
  auto root = disk.root();
  auto file = std::move(*root->open_file("f", OpenMode::kReadWrite));
  ASSERT_TRUE(file->truncate(700));
  ASSERT_TRUE(file->allocate(2000));
  const std::string wanted = std::string(700, 'x') + std::string(1300, '\0');
  EXPECT_EQ(disk.content("f"), wanted);
  ASSERT_TRUE(file->sync_data());
  disk.crash(std::nullopt);
  EXPECT_EQ(disk.content("f"), wanted);
}

TEST(SimDisk, AFullDiskRefusesGrowthButNotWritesInAllocatedSpace) {
  SimDisk disk;
  disk.set_capacity(4096);
  auto root = disk.root();
  auto file = durable_file(*root);
  ASSERT_TRUE(file->allocate(4096));
  EXPECT_TRUE(file->write_at(4000, "fits"));
  const Status refused = file->write_at(4095, "too long");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(is_out_of_space(refused.error()));
  EXPECT_EQ(*root->free_space(), 0u);
}

TEST(SimDisk, NothingWorksAfterPowerIsOutUntilTheCrash) {
  SimDisk disk;
  auto root = disk.root();
  auto file = durable_file(*root);
  disk.power_off_after(1);
  EXPECT_TRUE(file->write_at(0, "a"));
  EXPECT_FALSE(file->sync_data());
  EXPECT_FALSE(root->list());
  disk.crash(1);
  EXPECT_FALSE(root->list()) << "a handle of before the crash";
  EXPECT_TRUE(disk.root()->list());
}

TEST(SimDisk, TheLockKeepsASecondHolderOutAndGoesWithTheProcess) {
  SimDisk disk;
  auto root = disk.root();
  auto lock = root->lock();
  ASSERT_TRUE(lock);
  EXPECT_FALSE(root->lock());
  disk.restart_process();
  EXPECT_TRUE(disk.root()->lock());
}

}  // namespace
}  // namespace stanchion::os
