// The directory that a server owns:
//
//   LOCK                    held while a server runs
//   stanchion.meta          text: format version and number of shards, fixed when it was made
//   shard-000/ shard-001/…  each a shard's journal, and in store/ its checkpoints
//   control.sock            where a running server takes orders from its own machine
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"
#include "os/file.h"

namespace stanchion::broker {

inline constexpr std::string_view kMetaName = "stanchion.meta";
inline constexpr std::string_view kControlSocketName = "control.sock";

std::string shard_name(ShardIndex shard);

class DataDirectory {
 public:
  // Takes the lock, and makes the directory what it must be if it is empty. An existing one keeps
  // its number of shards, whatever `shards_if_new` says. `root` must outlive this.
  static Result<DataDirectory> open(os::Directory& root, std::uint32_t shards_if_new);

  // Only reads what is there and takes no lock, for `stanchion inspect`.
  static Result<DataDirectory> look_at(os::Directory& root);

  std::uint32_t shard_count() const { return shard_count_; }
  // Fails if it is not there: open() made all of them when it made the directory.
  Result<std::unique_ptr<os::Directory>> shard_directory(ShardIndex shard) const;
  // Where the shard's store is, or will be.
  std::string store_path(ShardIndex shard) const;

 private:
  DataDirectory(os::Directory& root, std::uint32_t shard_count,
                std::unique_ptr<os::DirectoryLock> lock)
      : root_(&root), shard_count_(shard_count), lock_(std::move(lock)) {}

  os::Directory* root_;
  std::uint32_t shard_count_;
  std::unique_ptr<os::DirectoryLock> lock_;
};

}  // namespace stanchion::broker
