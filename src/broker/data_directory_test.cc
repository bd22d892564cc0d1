#include "broker/data_directory.h"

#include <gtest/gtest.h>

#include "os/sim_disk.h"

namespace stanchion::broker {
namespace {

constexpr std::string_view kMeta = "stanchion data directory\nformat 3\nshards 3\nid 1\n";

// Opens, and says how many shards there are or what the refusal was.
std::string outcome(os::SimDisk& disk, std::uint32_t shards_if_new = 3) {
  const auto root = disk.root();
  const auto data = DataDirectory::open(*root, shards_if_new);
  return data ? std::to_string(data->shard_count()) : data.error().message;
}

bool all_shards_are_there(os::SimDisk& disk) {
  const auto root = disk.root();
  const auto data = DataDirectory::look_at(*root);
  if (!data) return false;
  for (std::uint32_t i = 0; i < data->shard_count(); ++i)
    if (!data->shard_directory(ShardIndex(i))) return false;
  return true;
}

std::string outcome_with_meta(std::string_view meta) {
  os::SimDisk disk;
  disk.put("stanchion.meta", meta);
  return outcome(disk);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(DataDirectory, AnEmptyDirectoryBecomesOne) {
  os::SimDisk disk;
  EXPECT_EQ(outcome(disk, 3), "3");
  EXPECT_EQ(disk.content("stanchion.meta"), kMeta);
  EXPECT_FALSE(disk.content("stanchion.meta.new"));
}

TEST(DataDirectory, TheNumberOfShardsIsFixedWhenItIsMade) {
  os::SimDisk disk;
  EXPECT_EQ(outcome(disk, 3), "3");
  EXPECT_EQ(outcome(disk, 8), "3");
  disk.crash(std::nullopt);
  EXPECT_EQ(outcome(disk, 8), "3");
}

TEST(DataDirectory, ShardDirectoriesSurviveTheWorstCrash) {
  os::SimDisk disk;
  auto root = disk.root();
  const auto data = DataDirectory::open(*root, 2);
  ASSERT_TRUE(data);
  for (const std::uint32_t shard : {0u, 1u}) {
    auto directory = data->shard_directory(ShardIndex(shard));
    ASSERT_TRUE(directory);
    ASSERT_TRUE((*directory)->open_file("f", os::OpenMode::kCreateNew));
    ASSERT_TRUE((*directory)->sync());
  }
  disk.crash(std::nullopt);
  EXPECT_TRUE(disk.content("shard-000/f"));
  EXPECT_TRUE(disk.content("shard-001/f"));
}

TEST(DataDirectory, ShardsWithDataButWithoutMetaAreRefused) {
  os::SimDisk disk;
  disk.put("shard-001/00000000000000000001.segment", "x");
  EXPECT_TRUE(contains(outcome(disk), "shard-001 holds data, but"));
  EXPECT_FALSE(disk.content("stanchion.meta"));
}

TEST(DataDirectory, EmptyShardsThatACrashLeftAreTakenUp) {
  os::SimDisk disk;
  ASSERT_TRUE(disk.root()->open_directory("shard-000"));
  EXPECT_EQ(outcome(disk), "3");
}

TEST(DataDirectory, AMissingShardIsRefusedAndNotMadeAnew) {
  os::SimDisk disk;
  disk.put("stanchion.meta", kMeta);
  disk.put("shard-000/f", "");
  disk.put("shard-002/f", "");
  const auto root = disk.root();
  const auto server = DataDirectory::open(*root, 3);
  ASSERT_TRUE(server);
  const auto seen = DataDirectory::look_at(*root);
  ASSERT_TRUE(seen);
  for (const DataDirectory* data : {&*server, &*seen}) {
    EXPECT_TRUE(data->shard_directory(ShardIndex(0)));
    EXPECT_TRUE(data->shard_directory(ShardIndex(2)));
    for (int again = 0; again < 2; ++again) {
      const auto missing = data->shard_directory(ShardIndex(1));
      ASSERT_FALSE(missing);
      EXPECT_TRUE(contains(missing.error().message, "sim/shard-001 is missing"))
          << missing.error().message;
    }
  }
}

TEST(DataDirectory, TwoServersCannotHaveOneDirectory) {
  os::SimDisk disk;
  const auto root = disk.root();
  {
    const auto first = DataDirectory::open(*root, 1);
    ASSERT_TRUE(first);
    EXPECT_TRUE(contains(outcome(disk), "in use by another stanchion"));
  }
  EXPECT_EQ(outcome(disk), "1");
}

TEST(DataDirectory, ARefusedOneIsNotLocked) {
  os::SimDisk disk;
  disk.put("stanchion.meta", "nonsense");
  EXPECT_TRUE(contains(outcome(disk), "is damaged"));
  EXPECT_TRUE(contains(outcome(disk), "is damaged"));
}

TEST(DataDirectory, ADirectoryWithOtherFilesIsRefusedAndLeftAsItIs) {
  os::SimDisk disk;
  disk.put("letter.txt", "dear reader");
  const std::uint64_t before = disk.fingerprint();
  const std::string refusal = outcome(disk);
  EXPECT_TRUE(contains(refusal, "letter.txt")) << refusal;
  EXPECT_TRUE(contains(refusal, "not a Stanchion data directory")) << refusal;
  EXPECT_EQ(disk.fingerprint(), before);
}

TEST(DataDirectory, ANewerFormatIsRefusedWithWhatToDo) {
  const std::string refusal = outcome_with_meta("stanchion data directory\nformat 5\nplanets 9\n");
  EXPECT_TRUE(contains(refusal, "newer release")) << refusal;
  EXPECT_TRUE(contains(refusal, "format 5")) << refusal;
}

TEST(DataDirectory, AnOlderFormatIsOpenedAndBecomesTheCurrentOne) {
  os::SimDisk disk;
  ASSERT_EQ(outcome(disk), "3");
  disk.put("stanchion.meta", "stanchion data directory\nformat 1\nshards 3\n");
  EXPECT_EQ(outcome(disk), "3");
  EXPECT_EQ(disk.content("stanchion.meta"), kMeta);
}

// A directory of format 2 with two shards, one of which has a store.
void put_without_identity(os::SimDisk& disk) {
  disk.put("stanchion.meta", "stanchion data directory\nformat 2\nshards 2\n");
  disk.put("shard-000/store/CURRENT", "MANIFEST-000005\n");
  disk.put("shard-001/f", "");
}

TEST(DataDirectory, AnOlderFormatGetsAnIdWhichItsStoresAreTold) {
  os::SimDisk disk;
  put_without_identity(disk);
  const auto root = disk.root();
  const auto data = DataDirectory::open(*root, 1, 4711);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(disk.content("stanchion.meta"),
            "stanchion data directory\nformat 3\nshards 2\nid 4711\n");
  EXPECT_EQ(disk.content("shard-000/store/SHARD"),
            "stanchion store\ndirectory 4711\nshard 0\nof 2\n");
  EXPECT_EQ(data->store_identity(ShardIndex(0)), *disk.content("shard-000/store/SHARD"));
  EXPECT_EQ(data->shard_of(ShardIndex(1)).directory, 4711u);
  EXPECT_FALSE(disk.content("shard-001/store/SHARD"));
}

TEST(DataDirectory, AnIdThatWasGivenOnlyInPartIsGivenToTheRest) {
  const std::uint64_t steps = [] {
    os::SimDisk disk;
    put_without_identity(disk);
    const auto root = disk.root();
    EXPECT_TRUE(DataDirectory::open(*root, 1, 4711));
    return disk.operations();
  }();
  for (std::uint64_t step = 0; step <= steps; ++step) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      os::SimDisk disk;
      put_without_identity(disk);
      disk.power_off_after(step);
      {
        const auto root = disk.root();
        static_cast<void>(DataDirectory::open(*root, 1, 4711));
      }
      disk.crash(seed);
      const auto root = disk.root();
      const auto data = DataDirectory::open(*root, 1, 4712);
      ASSERT_TRUE(data) << data.error().message;
      EXPECT_EQ(disk.content("shard-000/store/SHARD"), data->store_identity(ShardIndex(0)));
    }
  }
}

TEST(DataDirectory, LinesThatThisReleaseDoesNotKnowAreTolerated) {
  EXPECT_EQ(outcome_with_meta(std::string(kMeta) + "colour green\n"), "3");
}

TEST(DataDirectory, DamagedMetaIsRefusedByName) {
  for (const std::string_view meta :
       {"", "stanchion", "stanchion data directory\n", "stanchion data directory\nformat 1\n",
        "format 1\nshards 3\n", "stanchion data directory\nformat x\nshards 3\n",
        "stanchion data directory\nformat 1\nshards \n",
        "stanchion data directory\nformat 1\nshards 0\n",
        "stanchion data directory\nformat 1\nshards 257\n",
        "stanchion data directory\nformat 1\nshards -1\n",
        "stanchion data directory\nformat 1\nshards 99999999999999999999\n"}) {
    const std::string refusal = outcome_with_meta(meta);
    EXPECT_TRUE(contains(refusal, "sim/stanchion.meta is damaged")) << meta << " → " << refusal;
  }
}

// "shards 12" must not become "shards 1".
TEST(DataDirectory, MetaThatIsCutShortIsDamaged) {
  for (std::size_t size = 0; size < kMeta.size(); ++size) {
    const std::string refusal = outcome_with_meta(kMeta.substr(0, size));
    EXPECT_TRUE(contains(refusal, "is damaged")) << size << " → " << refusal;
  }
}

// If the power goes out at any moment during creation, the directory can be created again; and once
// open() has succeeded it stays as it is.
TEST(DataDirectory, ACrashAtAnyStepOfItsCreationIsHarmless) {
  const std::uint64_t steps = [] {
    os::SimDisk disk;
    outcome(disk);
    return disk.operations();
  }();
  ASSERT_GT(steps, 3u);
  for (std::uint64_t step = 0; step <= steps + 1; ++step) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      os::SimDisk disk;
      disk.power_off_after(step);
      const bool made = outcome(disk, 3) == "3";
      EXPECT_EQ(made, step > steps);
      disk.crash(seed == 0 ? std::nullopt : std::optional(seed));
      const std::string again = outcome(disk, 5);
      EXPECT_TRUE(all_shards_are_there(disk)) << step << " " << seed;
      EXPECT_TRUE(again == "3" || (again == "5" && !made)) << step << " " << seed << ": " << again;
      disk.crash(std::nullopt);
      EXPECT_EQ(outcome(disk, 7), again) << step << " " << seed;
    }
  }
}

TEST(DataDirectory, AFailedSyncOrWriteOfItsCreationIsReported) {
  for (const std::uint64_t nth : {1u, 2u, 3u}) {
    os::SimDisk disk;
    disk.fail_sync(nth);
    EXPECT_NE(outcome(disk), "3") << nth;
    disk.crash(std::nullopt);
    EXPECT_EQ(outcome(disk), "3");
  }
  os::SimDisk disk;
  disk.fail_write(1);
  EXPECT_NE(outcome(disk), "3");
  disk.restart_process();
  EXPECT_EQ(outcome(disk), "3");
}

TEST(DataDirectory, LookingAtItTakesNoLockAndChangesNothing) {
  os::SimDisk disk;
  const auto root = disk.root();
  const auto server = DataDirectory::open(*root, 3);
  ASSERT_TRUE(server);
  const std::uint64_t before = disk.fingerprint();
  const auto seen = DataDirectory::look_at(*root);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->shard_count(), 3u);
  EXPECT_EQ(disk.fingerprint(), before);
}

TEST(DataDirectory, LookingAtAnEmptyDirectoryDoesNotMakeItOne) {
  os::SimDisk disk;
  const auto root = disk.root();
  const auto seen = DataDirectory::look_at(*root);
  ASSERT_FALSE(seen);
  EXPECT_TRUE(contains(seen.error().message, "stanchion.meta")) << seen.error().message;
  EXPECT_FALSE(disk.content("stanchion.meta"));
}

std::string outcome_in_fleet(os::SimDisk& disk, const std::string& fleet, std::uint32_t id = 7) {
  const auto root = disk.root();
  const auto data = DataDirectory::open_for_fleet(*root, fleet, 3, id);
  return data ? data->fleet() : data.error().message;
}

TEST(DataDirectory, ANodesDirectoryIsUsedInItsFleetOnly) {
  os::SimDisk disk;
  EXPECT_EQ(outcome_in_fleet(disk, "orders"), "orders");
  EXPECT_EQ(disk.content("stanchion.meta"),
            "stanchion data directory\nformat 4\nshards 3\nid 7\nfleet orders\n");
  EXPECT_EQ(outcome_in_fleet(disk, "orders"), "orders");
  EXPECT_TRUE(contains(outcome_in_fleet(disk, "others"), "belongs to the fleet orders"));
  EXPECT_TRUE(contains(outcome_in_fleet(disk, "orders", 8), "an earlier fleet orders"));
  EXPECT_TRUE(contains(outcome(disk), "--fleet orders"));
}

TEST(DataDirectory, AFleetDoesNotTakeTheDirectoryOfAServerByItself) {
  os::SimDisk disk;
  EXPECT_EQ(outcome(disk), "3");
  EXPECT_TRUE(contains(outcome_in_fleet(disk, "orders"), "fleet import"));
}

TEST(DataDirectory, AServersDirectoryCanBeGivenToAFleet) {
  os::SimDisk disk;
  {
    const auto root = disk.root();
    auto data = DataDirectory::open(*root, 3, 7);
    ASSERT_TRUE(data);
    const std::string identity = data->store_identity(ShardIndex(1));
    ASSERT_TRUE(data->give_to_fleet("orders"));
    EXPECT_EQ(data->store_identity(ShardIndex(1)), identity) << "its stores stay as they are";
  }
  EXPECT_EQ(outcome_in_fleet(disk, "orders", 7), "orders");
  EXPECT_TRUE(contains(outcome(disk), "--fleet orders"));
}

TEST(DataDirectory, AFleetWithoutANameIsDamage) {
  EXPECT_TRUE(contains(outcome_with_meta("stanchion data directory\nformat 4\nshards 3\nid 7\n"),
                       "the fleet"));
}

}  // namespace
}  // namespace stanchion::broker
