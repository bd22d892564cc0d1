#include "fleet_node/replica_stores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "model/batch.h"
#include "os/real_directory.h"
#include "os/temporary_directory.h"
#include "store/identity.h"

namespace stanchion::fleet_node {
namespace {

namespace fs = std::filesystem;

constexpr ShardIndex kShard(0), kOther(1);

class ReplicaStoresTest : public testing::Test {
 protected:
  ReplicaStoresTest() {
    root_ = std::move(*os::open_real_directory(scratch_.path()));
    data_ = std::make_unique<broker::DataDirectory>(
        std::move(*broker::DataDirectory::open_for_fleet(*root_, "fleet", 2, 7)));
    stores_ = std::make_unique<ReplicaStores>(*data_);
    write(kShard, "old");
  }

  void write(ShardIndex shard, const std::string& value) {
    auto store = stores_->open(shard);
    ASSERT_TRUE(store) << store.error().message;
    Batch batch;
    batch.puts.push_back({"key", value, nullptr});
    ASSERT_TRUE((*store)->commit(batch));
  }

  std::string value(ShardIndex shard) {
    auto store = stores_->open(shard);
    if (!store) return store.error().message;
    const auto found = (*store)->get("key");
    return found && *found ? **found : "nothing";
  }

  // As if it came from another node: a copy of the other shard's store, with this identity.
  Status replace_by_copy(const std::string& identity) {
    return replace_by_copy(identity, stores_->openings(kShard));
  }
  Status replace_by_copy(const std::string& identity, std::uint64_t openings) {
    return stores_->replace(kShard, openings, [&](const std::string& path) -> Status {
      const auto made = stores_->copy(kOther);
      if (!made) return std::unexpected(made.error());
      fs::copy(**made, path, fs::copy_options::recursive);
      return store::write_identity(**os::open_existing_directory(path), identity);
    });
  }

  os::TemporaryDirectory scratch_;
  std::unique_ptr<os::Directory> root_;
  std::unique_ptr<broker::DataDirectory> data_;
  std::unique_ptr<ReplicaStores> stores_;
};

TEST_F(ReplicaStoresTest, ACopyTakesThePlaceOfTheStore) {
  write(kOther, "new");
  const Status replaced = replace_by_copy(data_->store_identity(kShard));
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(value(kShard), "new");
  EXPECT_EQ(value(kOther), "new");
}

TEST_F(ReplicaStoresTest, WhatCannotBeOpenedLeavesTheStoreAsItWas) {
  write(kOther, "new");
  EXPECT_FALSE(replace_by_copy(data_->store_identity(kOther))) << "it is another shard's";
  EXPECT_FALSE(stores_->replace(kShard, stores_->openings(kShard),
                                [&](const std::string& path) -> Status {
                                  fs::create_directory(path);
                                  return store::write_identity(**os::open_existing_directory(path),
                                                               data_->store_identity(kShard));
                                }))
      << "there is nothing in it";
  EXPECT_FALSE(stores_->replace(kShard, stores_->openings(kShard),
                                [&](const std::string& path) -> Status {
                                  const auto made = stores_->copy(kOther);
                                  if (!made) return std::unexpected(made.error());
                                  fs::copy(**made, path, fs::copy_options::recursive);
                                  for (const auto& entry : fs::directory_iterator(path))
                                    if (entry.path().extension() == ".sst")
                                      fs::resize_file(entry.path(), 10);
                                  return store::write_identity(**os::open_existing_directory(path),
                                                               data_->store_identity(kShard));
                                }))
      << "a table is cut short";
  EXPECT_FALSE(stores_->replace(kShard, stores_->openings(kShard),
                                [](const std::string&) -> Status { return fail("no"); }));
  EXPECT_EQ(value(kShard), "old");
  EXPECT_FALSE(fs::exists(data_->store_path(kShard) + ".incoming"));
}

TEST_F(ReplicaStoresTest, AStoreThatIsOpenedWhileItsCopyComesIsKept) {
  write(kOther, "new");
  std::shared_ptr<store::RocksStore> used;
  const std::uint64_t before = stores_->openings(kShard);
  const Status replaced = stores_->replace(kShard, before, [&](const std::string& path) -> Status {
    used = *stores_->open(kShard);
    const auto made = stores_->copy(kOther);
    if (!made) return std::unexpected(made.error());
    fs::copy(**made, path, fs::copy_options::recursive);
    return store::write_identity(**os::open_existing_directory(path),
                                 data_->store_identity(kShard));
  });
  EXPECT_FALSE(replaced);
  // Nor does the next copy of the same attempt take its place, from another node.
  EXPECT_FALSE(replace_by_copy(data_->store_identity(kShard), before));
  EXPECT_EQ(**used->get("key"), "old");
  EXPECT_EQ(value(kShard), "old");
  EXPECT_FALSE(fs::exists(data_->store_path(kShard) + ".incoming"));
}

TEST_F(ReplicaStoresTest, WhoeverOpensAStoreThatIsBeingReplacedGetsTheCopy) {
  write(kOther, "new");
  // A read that is not over: the copy does not take the store's place before.
  std::shared_ptr<store::RocksStore> read = *stores_->open(kShard);
  auto replaced = std::async(std::launch::async,
                             [&] { return replace_by_copy(data_->store_identity(kShard)); });
  // From then on the store is being replaced.
  while (stores_->copy(kShard)) std::this_thread::yield();
  auto opened = std::async(std::launch::async, [&] { return value(kShard); });
  read.reset();
  const Status status = replaced.get();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(opened.get(), "new");
}

TEST_F(ReplicaStoresTest, WhatAKilledCopyHasLeftIsRemovedAtTheNextStart) {
  stores_.reset();
  const std::string store = data_->store_path(kShard);
  const std::string others[] = {store + ".incoming", store + ".incoming.incoming",
                                store + ".replaced", store + ".outgoing-12"};
  for (const std::string& other : others) {
    fs::create_directory(other);
    std::ofstream(other + "/000001.sst") << "x";
  }
  stores_ = std::make_unique<ReplicaStores>(*data_);
  for (const std::string& other : others) EXPECT_FALSE(fs::exists(other)) << other;
  EXPECT_EQ(value(kShard), "old");
}

}  // namespace
}  // namespace stanchion::fleet_node
