#include "fleet_admin/past_note.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "os/real_directory.h"

namespace stanchion::fleet_admin {
namespace {

constexpr std::string_view kName = "store.other-past";
// For a person; that the file is there is all that counts.
constexpr std::string_view kText =
    "The log of this shard has other records than the store, or fewer. As long as this file "
    "exists,\n"
    "no copy of another node's store replaces this store.\n";

// Not DataDirectory::shard_directory(): an operator may have removed it.
Result<std::unique_ptr<os::Directory>> directory_of(const broker::DataDirectory& data,
                                                    ShardIndex shard) {
  return os::open_existing_directory(
      std::filesystem::path(data.store_path(shard)).parent_path().string());
}

}  // namespace

Result<bool> has_past_note(const broker::DataDirectory& data, ShardIndex shard) {
  const auto directory = directory_of(data, shard);
  if (!directory && directory.error().os_error == ENOENT) return false;
  if (!directory) return std::unexpected(directory.error());
  const auto file = (*directory)->open_file(kName, os::OpenMode::kReadOnly);
  if (file) return true;
  if (file.error().os_error == ENOENT) return false;
  return std::unexpected(file.error());
}

Status write_past_note(const broker::DataDirectory& data, ShardIndex shard) {
  const auto directory = directory_of(data, shard);
  if (!directory) return std::unexpected(directory.error());
  const auto file = (*directory)->open_file(kName, os::OpenMode::kCreateNew);
  if (file) {
    RETURN_IF_FAILED((*file)->write_at(0, kText));
    RETURN_IF_FAILED((*file)->sync_data());
  } else if (file.error().os_error != EEXIST) {
    return std::unexpected(file.error());
  }
  return (*directory)->sync();
}

Status remove_past_note(const broker::DataDirectory& data, ShardIndex shard) {
  const auto there = has_past_note(data, shard);
  if (!there) return std::unexpected(there.error());
  if (!*there) return {};
  const auto directory = directory_of(data, shard);
  if (!directory) return std::unexpected(directory.error());
  RETURN_IF_FAILED((*directory)->remove(kName));
  return (*directory)->sync();
}

}  // namespace stanchion::fleet_admin
