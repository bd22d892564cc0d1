#include "fleet_admin/past_note.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/real_directory.h"
#include "os/temporary_directory.h"

namespace stanchion::fleet_admin {
namespace {

namespace fs = std::filesystem;

constexpr ShardIndex kShard(0), kOther(1);

class PastNoteTest : public testing::Test {
 protected:
  bool is_noted(ShardIndex shard) const {
    const auto there = has_past_note(data_, shard);
    EXPECT_TRUE(there) << there.error().message;
    return there && *there;
  }

  os::TemporaryDirectory scratch_;
  std::unique_ptr<os::Directory> root_ = std::move(*os::open_real_directory(scratch_.path()));
  broker::DataDirectory data_ =
      std::move(*broker::DataDirectory::open_for_fleet(*root_, "fleet", 2, 7));
};

TEST_F(PastNoteTest, IsThereUntilItIsRemoved) {
  EXPECT_FALSE(is_noted(kShard));
  ASSERT_TRUE(write_past_note(data_, kShard));
  EXPECT_TRUE(write_past_note(data_, kShard)) << "once more";
  EXPECT_TRUE(is_noted(kShard));
  EXPECT_FALSE(is_noted(kOther));
  ASSERT_TRUE(remove_past_note(data_, kShard));
  EXPECT_TRUE(remove_past_note(data_, kShard)) << "once more";
  EXPECT_FALSE(is_noted(kShard));
}

TEST_F(PastNoteTest, GoesWithTheDirectoryOfItsShard) {
  ASSERT_TRUE(write_past_note(data_, kShard));
  fs::remove_all(fs::path(data_.store_path(kShard)).parent_path());
  EXPECT_FALSE(is_noted(kShard));
  EXPECT_TRUE(remove_past_note(data_, kShard));
}

TEST_F(PastNoteTest, WhatCannotBeLookedAtIsNotTakenForAbsent) {
  fs::create_directory(fs::path(data_.store_path(kShard)).parent_path() / "store.other-past");
  EXPECT_FALSE(has_past_note(data_, kShard));
}

}  // namespace
}  // namespace stanchion::fleet_admin
