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

class StoreShelfTest : public testing::Test {
 protected:
  StoreShelfTest() {
    root_ = std::move(*os::open_real_directory(scratch_.path()));
    data_ = std::make_unique<broker::DataDirectory>(
        std::move(*broker::DataDirectory::open_for_fleet(*root_, "fleet", 2, 7)));
    shelf_ = std::make_unique<StoreShelf>(*data_);
    write(kShard, "old");
  }

  void write(ShardIndex shard, const std::string& value) {
    auto store = shelf_->open(shard);
    ASSERT_TRUE(store) << store.error().message;
    Batch batch;
    batch.puts.push_back({"key", value, nullptr});
    ASSERT_TRUE((*store)->commit(batch));
  }

  std::string value(ShardIndex shard) {
    auto store = shelf_->open(shard);
    if (!store) return store.error().message;
    const auto found = (*store)->get("key");
    return found && *found ? **found : "nothing";
  }

  // As if it came from another node: a copy of the other shard's store, with this identity.
  Status replace_by_copy(const std::string& identity) {
    return replace_by_copy(identity, shelf_->openings(kShard));
  }
  Status replace_by_copy(const std::string& identity, std::uint64_t openings) {
    return shelf_->replace(kShard, openings, [&](const std::string& path) -> Status {
      const auto made = shelf_->copy(kOther);
      if (!made) return std::unexpected(made.error());
      fs::copy(**made, path, fs::copy_options::recursive);
      return store::write_identity(**os::open_existing_directory(path), identity);
    });
  }

  os::TemporaryDirectory scratch_;
  std::unique_ptr<os::Directory> root_;
  std::unique_ptr<broker::DataDirectory> data_;
  std::unique_ptr<StoreShelf> shelf_;
};

TEST_F(StoreShelfTest, ACopyTakesThePlaceOfTheStore) {
  write(kOther, "new");
  const Status replaced = replace_by_copy(data_->store_identity(kShard));
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_EQ(value(kShard), "new");
  EXPECT_EQ(value(kOther), "new");
}

TEST_F(StoreShelfTest, WhatCannotBeOpenedLeavesTheStoreAsItWas) {
  write(kOther, "new");
  EXPECT_FALSE(replace_by_copy(data_->store_identity(kOther))) << "it is another shard's";
  EXPECT_FALSE(shelf_->replace(kShard, shelf_->openings(kShard),
                               [&](const std::string& path) -> Status {
                                 fs::create_directory(path);
                                 return store::write_identity(**os::open_existing_directory(path),
                                                              data_->store_identity(kShard));
                               }))
      << "there is nothing in it";
  EXPECT_FALSE(shelf_->replace(kShard, shelf_->openings(kShard),
                               [&](const std::string& path) -> Status {
                                 const auto made = shelf_->copy(kOther);
                                 if (!made) return std::unexpected(made.error());
                                 fs::copy(**made, path, fs::copy_options::recursive);
                                 for (const auto& entry : fs::directory_iterator(path))
                                   if (entry.path().extension() == ".sst")
                                     fs::resize_file(entry.path(), 10);
                                 return store::write_identity(**os::open_existing_directory(path),
                                                              data_->store_identity(kShard));
                               }))
      << "a table is cut short";
  EXPECT_FALSE(shelf_->replace(kShard, shelf_->openings(kShard),
                               [](const std::string&) -> Status { return fail("no"); }));
  EXPECT_EQ(value(kShard), "old");
  EXPECT_FALSE(fs::exists(data_->store_path(kShard) + ".incoming"));
}

TEST_F(StoreShelfTest, AStoreThatIsOpenedWhileItsCopyComesIsKept) {
  write(kOther, "new");
  std::shared_ptr<store::RocksStore> used;
  const std::uint64_t before = shelf_->openings(kShard);
  const Status replaced = shelf_->replace(kShard, before, [&](const std::string& path) -> Status {
    used = *shelf_->open(kShard);
    const auto made = shelf_->copy(kOther);
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

TEST_F(StoreShelfTest, WhoeverOpensAStoreThatIsBeingReplacedGetsTheCopy) {
  write(kOther, "new");
  // A read that is not over: the copy does not take the store's place before.
  std::shared_ptr<store::RocksStore> read = *shelf_->open(kShard);
  auto replaced = std::async(std::launch::async,
                             [&] { return replace_by_copy(data_->store_identity(kShard)); });
  // From then on the store is being replaced.
  while (shelf_->copy(kShard)) std::this_thread::yield();
  auto opened = std::async(std::launch::async, [&] { return value(kShard); });
  read.reset();
  const Status status = replaced.get();
  EXPECT_TRUE(status) << status.error().message;
  EXPECT_EQ(opened.get(), "new");
}

TEST_F(StoreShelfTest, WhatAKilledCopyHasLeftIsRemovedAtTheNextStart) {
  shelf_.reset();
  const std::string store = data_->store_path(kShard);
  const std::string others[] = {store + ".incoming", store + ".incoming.incoming",
                                store + ".replaced", store + ".outgoing-12"};
  for (const std::string& other : others) {
    fs::create_directory(other);
    std::ofstream(other + "/000001.sst") << "x";
  }
  shelf_ = std::make_unique<StoreShelf>(*data_);
  for (const std::string& other : others) EXPECT_FALSE(fs::exists(other)) << other;
  EXPECT_EQ(value(kShard), "old");
}

}  // namespace
}  // namespace stanchion::fleet_node
