#include "backup/data_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "broker/data_directory.h"
#include "journal/end_note.h"
#include "journal/format.h"
#include "os/real_directory.h"

namespace stanchion::backup {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkSize = 1 << 20;
constexpr std::string_view kUnfinishedMeta = "stanchion.meta.new";
constexpr std::string_view kStore = "store";

// RocksDB's log and its lock belong to the process, not to the data.
bool belongs_to_store(const std::string& name) {
  return name != "LOCK" && !name.starts_with("LOG");
}

// The name in `data` that `to` is, or is below; empty: it is elsewhere. Directories are compared by
// what they are, not by their names, because there may be links and mounts between them.
std::string name_within(const fs::path& data, const fs::path& to) {
  std::error_code ignored;
  for (fs::path at = fs::weakly_canonical(to, ignored); at.has_relative_path();
       at = at.parent_path())
    if (fs::equivalent(at.parent_path(), data, ignored)) return at.filename().string();
  return "";
}

// The lowest first.
std::vector<std::string> missing_directories(const fs::path& to) {
  std::vector<std::string> missing;
  std::error_code error;
  for (fs::path at = to; at.has_relative_path(); at = at.parent_path()) {
    if (fs::exists(fs::symlink_status(at, error))) break;
    missing.push_back(at.string());
  }
  return missing;
}

// Those that others have put something into stay.
void remove_directories(const std::vector<std::string>& directories) {
  std::error_code ignored;
  for (const std::string& path : directories) fs::remove(path, ignored);
}

}  // namespace

Status DataCopy::check_target(const std::string& data, const std::string& to) {
  if (const std::string name = name_within(data, to); broker::belongs_to_server(name))
    return fail(fmt::format(
        "{} is inside {}/{}, which the server uses itself: choose a directory of its own", to, data,
        name));
  std::error_code error;
  const fs::file_status found = fs::status(to, error);
  if (fs::exists(found) && !fs::is_directory(found))
    return fail(fmt::format("{} is not a directory", to));
  if (fs::is_directory(found)) {
    const bool empty = fs::is_empty(to, error);
    if (error) return fail(fmt::format("cannot read {}: {}", to, error.message()), error.value());
    if (!empty)
      return fail(fmt::format("{} is not empty: a backup goes to a directory of its own", to));
  }
  return {};
}

Result<DataCopy> DataCopy::create(const std::string& data, const std::string& to,
                                  MayGoOn may_go_on) {
  RETURN_IF_FAILED(check_target(data, to));
  std::vector<std::string> missing = missing_directories(to);
  auto root = os::open_real_directory(to);
  if (!root) {
    remove_directories(missing);
    return std::unexpected(std::move(root).error());
  }
  return DataCopy(std::move(*root), std::move(missing), std::move(may_go_on));
}

Status DataCopy::add_shard(ShardIndex shard, const std::string& from) {
  shards_ = std::max(shards_, static_cast<std::uint32_t>(shard.value()) + 1);
  auto source = os::open_existing_directory(from);
  if (!source) return std::unexpected(std::move(source).error());
  auto target = root_->open_directory(broker::shard_name(shard));
  if (!target) return std::unexpected(std::move(target).error());
  const auto segments = (*source)->list();
  if (!segments) return std::unexpected(segments.error());
  for (const std::string& name : *segments)
    if (journal::parse_segment_name(name) || name == journal::kEndNoteName)
      RETURN_IF_FAILED(copy_file(**source, **target, name, name));

  // Data of an earlier release has none until a newer release has started on it.
  const std::string store = fmt::format("{}/{}", from, kStore);
  const auto has_store = os::exists(store);
  if (!has_store) return std::unexpected(has_store.error());
  if (!*has_store) return (*target)->sync();
  auto source_store = os::open_existing_directory(store);
  if (!source_store) return std::unexpected(std::move(source_store).error());
  auto target_store = (*target)->open_directory(kStore);
  if (!target_store) return std::unexpected(std::move(target_store).error());
  const auto files = (*source_store)->list();
  if (!files) return std::unexpected(files.error());
  for (const std::string& name : *files) {
    if (!belongs_to_store(name)) continue;
    std::error_code error = std::make_error_code(std::errc::not_supported);
    if (name.ends_with(".sst"))
      fs::create_hard_link(fmt::format("{}/{}", store, name),
                           fmt::format("{}/{}", (*target_store)->path(), name), error);
    if (error) RETURN_IF_FAILED(copy_file(**source_store, **target_store, name, name));
  }
  RETURN_IF_FAILED((*target_store)->sync());
  return (*target)->sync();
}

Status DataCopy::copy_file(os::Directory& from, os::Directory& to, const std::string& name,
                           const std::string& new_name) const {
  auto source = from.open_file(name, os::OpenMode::kReadOnly);
  if (!source) return std::unexpected(std::move(source).error());
  auto target = to.open_file(new_name, os::OpenMode::kCreateNew);
  if (!target) return std::unexpected(std::move(target).error());
  std::string chunk(kChunkSize, '\0');
  for (std::uint64_t at = 0;;) {
    RETURN_IF_FAILED(may_go_on_());
    const auto size = (*source)->read_at(at, chunk);
    if (!size) return std::unexpected(size.error());
    if (*size == 0) break;
    RETURN_IF_FAILED((*target)->write_at(at, std::string_view(chunk).substr(0, *size)));
    at += *size;
  }
  return (*target)->sync_data();
}

Status DataCopy::finish(os::Directory& from) {
  RETURN_IF_FAILED(root_->sync());
  RETURN_IF_FAILED(
      copy_file(from, *root_, std::string(broker::kMetaName), std::string(kUnfinishedMeta)));
  RETURN_IF_FAILED(root_->rename(kUnfinishedMeta, broker::kMetaName));
  return root_->sync();
}

void DataCopy::discard() {
  // If the copy cannot be removed, it is still not a data directory without its meta file.
  std::error_code ignored;
  fs::path root = root_->path();
  fs::remove(root / broker::kMetaName, ignored);
  fs::remove(root / kUnfinishedMeta, ignored);
  for (std::uint32_t shard = 0; shard < shards_; ++shard)
    fs::remove_all(root / broker::shard_name(ShardIndex(shard)), ignored);
  remove_directories(made_);
}

}  // namespace stanchion::backup
