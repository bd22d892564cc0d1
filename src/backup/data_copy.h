// A copy of a data directory in the making: whole shards first, stanchion.meta last, so that every
// command refuses an incomplete copy.
//
// Used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "os/file.h"

namespace stanchion::backup {

class DataCopy {
 public:
  // Called now and then while bytes are copied; if it fails, the copying ends with that failure.
  using MayGoOn = std::function<Status()>;

  // Fails if `to` exists and is not empty, or is among the files that the server of `data` has.
  // Changes nothing.
  static Status check_target(const std::string& data, const std::string& to);

  // The same, and makes `to` and the directories above it that are missing.
  static Result<DataCopy> create(const std::string& data, const std::string& to, MayGoOn may_go_on);

  // Copies the shard whose journal and checkpoints (in store/) are in `from`, where nothing may
  // change meanwhile. Tables, which never change, become hard links where the file system allows.
  Status add_shard(ShardIndex shard, const std::string& from);

  // Copies stanchion.meta from the directory `from`, which makes the copy complete and durable.
  Status finish(os::Directory& from);

  // Removes the copy made so far, and the directories that were made for it.
  void discard();

 private:
  DataCopy(std::unique_ptr<os::Directory> root, std::vector<std::string> made, MayGoOn may_go_on)
      : root_(std::move(root)), made_(std::move(made)), may_go_on_(std::move(may_go_on)) {}

  Status copy_file(os::Directory& from, os::Directory& to, const std::string& name,
                   const std::string& new_name) const;

  std::unique_ptr<os::Directory> root_;
  std::vector<std::string> made_;  // The root and directories above it, the lowest first.
  MayGoOn may_go_on_;
  std::uint32_t shards_ = 0;
};

}  // namespace stanchion::backup
