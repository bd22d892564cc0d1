// The directory that a server owns:
//
//   LOCK                    held while a server runs
//   stanchion.meta          text: format version, number of shards and id, fixed when it was made
//   shard-000/ shard-001/…  each a shard's journal, and in store/ its checkpoints
//   control.sock            where a running server takes orders from its own machine
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/segment_log.h"
#include "model/ids.h"
#include "os/file.h"

namespace stanchion::broker {

inline constexpr std::string_view kMetaName = "stanchion.meta";
inline constexpr std::string_view kControlSocketName = "control.sock";

// Where a backup of a running server is prepared.
inline constexpr std::string_view kBackupScratchName = "backup.tmp";

std::string shard_name(ShardIndex shard);

// Whether the server keeps something of its own under this name of its data directory, or below it.
bool belongs_to_server(std::string_view name);

class DataDirectory {
 public:
  // Takes the lock, and initialises the directory if it is empty. An existing one keeps its number
  // of shards and its id, whatever `shards_if_new` and `id_if_new` say; one of an earlier format
  // gets the id. `root` must outlive this object.
  static Result<DataDirectory> open(os::Directory& root, std::uint32_t shards_if_new,
                                    std::uint32_t id_if_new = 1);

  // The directory of a fleet's node: it has stores, and no journals. It keeps the id of the fleet,
  // so that it is not used with another one.
  static Result<DataDirectory> open_for_fleet(os::Directory& root, const std::string& fleet,
                                              std::uint32_t shards, std::uint32_t id);

  // The directory of a server by itself becomes that of the fleet's first node, at once and for good.
  Status give_to_fleet(const std::string& fleet);

  // Only reads the directory and takes no lock, for `stanchion inspect`.
  static Result<DataDirectory> look_at(os::Directory& root);

  std::uint32_t shard_count() const { return meta_.shards; }
  std::uint32_t id() const { return meta_.id; }
  // The fleet that it belongs to; empty: none.
  const std::string& fleet() const { return meta_.fleet; }
  // The identity that the shard's journal carries.
  journal::ShardOf shard_of(ShardIndex shard) const { return {shard, meta_.shards, meta_.id}; }
  // The identity that the shard's store carries; empty in a format without ids.
  std::string store_identity(ShardIndex shard) const;
  // Fails if it does not exist: open() made all of them when it made the directory.
  Result<std::unique_ptr<os::Directory>> shard_directory(ShardIndex shard) const;
  // Where the shard's store is, or will be.
  std::string store_path(ShardIndex shard) const;

  // What the meta file says.
  struct Meta {
    std::uint64_t format = 0;
    std::uint32_t shards = 0;
    std::uint32_t id = 0;  // 0: none, as before format 3.
    std::string fleet;     // Empty: of a server by itself.
  };

 private:
  DataDirectory(os::Directory& root, const Meta& meta, std::unique_ptr<os::DirectoryLock> lock)
      : root_(&root), meta_(meta), lock_(std::move(lock)) {}

  os::Directory* root_;
  Meta meta_;
  std::unique_ptr<os::DirectoryLock> lock_;
};

}  // namespace stanchion::broker
