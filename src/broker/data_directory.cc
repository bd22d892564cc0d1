#include "broker/data_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <optional>

#include "base/text.h"
#include "model/limits.h"
#include "store/identity.h"

namespace stanchion::broker {

std::string shard_name(ShardIndex shard) {
  return fmt::format("shard-{:03}", shard.value());
}

bool belongs_to_server(std::string_view name) {
  // The history of the queues is in "metrics", and in "metrics.damaged" if it cannot be read.
  return name.starts_with("shard-") || name == "metrics" || name.starts_with("metrics.") ||
         name == kBackupScratchName || name.starts_with(kMetaName) || name == kControlSocketName ||
         name == os::kLockName;
}

namespace {

constexpr std::string_view kStoreName = "store";
constexpr std::string_view kNewMetaName = "stanchion.meta.new";
constexpr std::string_view kFirstLine = "stanchion data directory\n";
// 1: journals only. 2: checkpoints in a store, after which the journals are trimmed. 3: directory
// and shards have ids, which journals and stores carry. 4: of a node of a fleet, whose name it has; no
// journals.
constexpr std::uint64_t kFormat = 3;
constexpr std::uint64_t kFirstFormatWithId = 3;
constexpr std::uint64_t kFleetFormat = 4;
constexpr std::size_t kMetaSizeMax = 4096;

// The value of the line "name value\n"; nullopt if there is no such line.
std::optional<std::string_view> word_in(std::string_view text, std::string_view name) {
  const std::string key = fmt::format("\n{} ", name);
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + key.size());
  // A line without its end may also have lost digits.
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return rest.substr(0, end);
}

std::optional<std::uint64_t> number_in(std::string_view text, std::string_view name) {
  const auto word = word_in(text, name);
  return word ? parse_decimal(*word) : std::nullopt;
}

using Meta = DataDirectory::Meta;

Result<Meta> parse_meta(std::string_view text, const std::string& path) {
  const auto format = number_in(text, "format");
  const auto shards = number_in(text, "shards");
  if (!text.starts_with(kFirstLine) || !format)
    return fail(fmt::format("{}/{} is damaged: it does not begin as it should", path, kMetaName));
  if (*format > kFleetFormat)
    return fail(
        fmt::format("{} was written by a newer release (format {}, this one knows {}): "
                    "start it with that release",
                    path, *format, kFleetFormat));
  if (!shards || *shards < 1 || *shards > limits::kShardsMax)
    return fail(
        fmt::format("{}/{} is damaged: the number of shards is missing or wrong", path, kMetaName));
  Meta meta{*format, static_cast<std::uint32_t>(*shards), 0, {}};
  if (*format < kFirstFormatWithId) return meta;
  const auto id = number_in(text, "id");
  if (!id || *id == 0 || *id > std::numeric_limits<std::uint32_t>::max())
    return fail(fmt::format("{}/{} is damaged: the id of the directory is missing or wrong", path,
                            kMetaName));
  meta.id = static_cast<std::uint32_t>(*id);
  if (*format < kFleetFormat) return meta;
  const auto fleet = word_in(text, "fleet");
  if (!fleet || fleet->empty())
    return fail(fmt::format("{}/{} is damaged: the name of the fleet is missing", path, kMetaName));
  meta.fleet = *fleet;
  return meta;
}

Result<Meta> read_meta(os::Directory& root) {
  auto file = root.open_file(kMetaName, os::OpenMode::kReadOnly);
  if (!file) return std::unexpected(file.error());
  std::string text(kMetaSizeMax, '\0');
  const auto size = (*file)->read_at(0, text);
  if (!size) return std::unexpected(size.error());
  text.resize(*size);
  return parse_meta(text, root.path());
}

// Written to a temporary file and renamed, so that the change is atomic.
Status write_meta(os::Directory& root, const Meta& meta) {
  std::string text =
      fmt::format("{}format {}\nshards {}\nid {}\n", kFirstLine, meta.format, meta.shards, meta.id);
  if (!meta.fleet.empty()) text += fmt::format("fleet {}\n", meta.fleet);
  auto file = root.open_file(kNewMetaName, os::OpenMode::kCreateNew);
  if (!file) return std::unexpected(file.error());
  RETURN_IF_FAILED((*file)->write_at(0, text));
  RETURN_IF_FAILED((*file)->sync_data());
  RETURN_IF_FAILED(root.rename(kNewMetaName, kMetaName));
  return root.sync();
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Opening a directory as a file fails, but only a missing name gives ENOENT.
bool is_missing(os::Directory& root, std::string_view name) {
  const auto opened = root.open_file(name, os::OpenMode::kReadOnly);
  return !opened && opened.error().os_error == ENOENT;
}

// Non-empty shards without a meta file are the remains of a directory, or the beginning of a
// backup. Shards left by a crash during creation are empty.
Status refuse_shards_without_meta(os::Directory& root) {
  for (std::uint32_t i = 0; i < limits::kShardsMax; ++i) {
    const std::string name = shard_name(ShardIndex(i));
    if (is_missing(root, name)) continue;
    auto shard = root.open_directory(name);
    if (!shard) return std::unexpected(std::move(shard).error());
    const auto names = (*shard)->list();
    if (!names) return std::unexpected(names.error());
    if (!names->empty() || !is_missing(**shard, kStoreName))
      return fail(
          fmt::format("{}/{} holds data, but {}/{} is missing: this is a backup that was not "
                      "finished, or a directory that lost a file",
                      root.path(), name, root.path(), kMetaName));
  }
  return {};
}

// The meta file is written last: if it exists, everything did, and what is missing was lost.
Status make(os::Directory& root, const Meta& meta) {
  for (std::uint32_t shard = 0; shard < meta.shards; ++shard)
    RETURN_IF_FAILED(root.open_directory(shard_name(ShardIndex(shard))));
  RETURN_IF_FAILED(root.sync());
  return write_meta(root, meta);
}

std::string identity_of(const Meta& meta, ShardIndex shard) {
  return fmt::format("stanchion store\ndirectory {}\nshard {}\nof {}\n", meta.id, shard.value(),
                     meta.shards);
}

// Calls visit(shard, directory of its store) for every shard that has a store.
Status for_each_store(os::Directory& root, const Meta& meta,
                      const std::function<Status(ShardIndex, os::Directory&)>& visit) {
  for (std::uint32_t i = 0; i < meta.shards; ++i) {
    const std::string name = shard_name(ShardIndex(i));
    if (is_missing(root, name)) continue;
    auto shard = root.open_directory(name);
    if (!shard) return std::unexpected(std::move(shard).error());
    if (is_missing(**shard, kStoreName)) continue;
    auto store = (*shard)->open_directory(kStoreName);
    if (!store) return std::unexpected(std::move(store).error());
    RETURN_IF_FAILED(visit(ShardIndex(i), **store));
  }
  return {};
}

// Gives a directory of an earlier format its id: first the stores, then the meta file. After an
// interruption, the next start continues with the id that the first store got.
Status adopt(os::Directory& root, Meta& meta, std::uint32_t id) {
  meta.id = id;
  RETURN_IF_FAILED(for_each_store(root, meta, [&](ShardIndex, os::Directory& store) -> Status {
    auto found = store::read_identity(store);
    if (!found) return std::unexpected(std::move(found).error());
    if (const auto begun = number_in(*found, "directory"))
      meta.id = static_cast<std::uint32_t>(*begun);
    return {};
  }));
  RETURN_IF_FAILED(for_each_store(root, meta, [&](ShardIndex shard, os::Directory& store) {
    return store::write_identity(store, identity_of(meta, shard));
  }));
  meta.format = kFormat;
  return write_meta(root, meta);
}

// Takes the lock and reads the meta file, which is made as `if_new` says if the directory is empty.
Result<std::pair<std::unique_ptr<os::DirectoryLock>, Meta>> take(os::Directory& root,
                                                                 const Meta& if_new) {
  auto lock = root.lock();
  if (!lock) return std::unexpected(lock.error());
  const auto names = root.list();
  if (!names) return std::unexpected(names.error());
  if (!contains(*names, kMetaName)) {
    // Files left by a crash during the creation of the directory are no reason to refuse it.
    for (const std::string& name : *names)
      if (name != os::kLockName && name != kNewMetaName)
        return fail(
            fmt::format("{} is not empty and not a Stanchion data directory (it has {}): "
                        "choose another directory with --data",
                        root.path(), name));
    RETURN_IF_FAILED(refuse_shards_without_meta(root));
    if (contains(*names, kNewMetaName)) RETURN_IF_FAILED(root.remove(kNewMetaName));
    RETURN_IF_FAILED(make(root, if_new));
  }
  auto meta = read_meta(root);
  if (!meta) return std::unexpected(meta.error());
  if (meta->format < kFormat && contains(*names, kNewMetaName))
    RETURN_IF_FAILED(root.remove(kNewMetaName));
  return std::pair(std::move(*lock), std::move(*meta));
}

}  // namespace

Result<DataDirectory> DataDirectory::open(os::Directory& root, std::uint32_t shards_if_new,
                                          std::uint32_t id_if_new) {
  auto taken = take(root, {kFormat, shards_if_new, id_if_new, {}});
  if (!taken) return std::unexpected(std::move(taken).error());
  auto& [lock, meta] = *taken;
  if (!meta.fleet.empty())
    return fail(fmt::format(
        "{} belongs to a node of the fleet {}, and has only a part of its queues: start it with "
        "--fleet {}, or choose another directory with --data",
        root.path(), meta.fleet, meta.fleet));
  // From here on an older release would not understand the directory.
  if (meta.format < kFormat) RETURN_IF_FAILED(adopt(root, meta, id_if_new));
  return DataDirectory(root, meta, std::move(lock));
}

Result<DataDirectory> DataDirectory::open_for_fleet(os::Directory& root, const std::string& fleet,
                                                    std::uint32_t shards, std::uint32_t id) {
  auto taken = take(root, {kFleetFormat, shards, id, fleet});
  if (!taken) return std::unexpected(std::move(taken).error());
  auto& [lock, meta] = *taken;
  if (meta.fleet.empty())
    return fail(fmt::format(
        "{} has the queues of a server by itself: choose an empty directory with --data, and bring "
        "them into the fleet with `stanchion fleet import`",
        root.path()));
  if (meta.fleet != fleet || meta.id != id || meta.shards != shards)
    return fail(fmt::format(
        "{} belongs to {} fleet {}: choose an empty directory with --data, or the right fleet",
        root.path(), meta.fleet == fleet ? "an earlier" : "the", meta.fleet));
  return DataDirectory(root, meta, std::move(lock));
}

Status DataDirectory::give_to_fleet(const std::string& fleet) {
  Meta meta = meta_;
  meta.format = kFleetFormat;
  meta.fleet = fleet;
  // What an attempt that was interrupted has left.
  if (!is_missing(*root_, kNewMetaName)) RETURN_IF_FAILED(root_->remove(kNewMetaName));
  RETURN_IF_FAILED(write_meta(*root_, meta));
  meta_ = std::move(meta);
  return {};
}

Result<DataDirectory> DataDirectory::look_at(os::Directory& root) {
  const auto meta = read_meta(root);
  if (!meta) return std::unexpected(meta.error());
  return DataDirectory(root, *meta, nullptr);
}

Result<std::unique_ptr<os::Directory>> DataDirectory::shard_directory(ShardIndex shard) const {
  const std::string name = shard_name(shard);
  // Opening would create the shard, and its queues would seem never to have existed.
  if (is_missing(*root_, name))
    return fail(
        fmt::format("{}/{} is missing, and with it every queue that lives there: restore it from a "
                    "copy, together with the rest of the directory",
                    root_->path(), name));
  auto directory = root_->open_directory(name);
  if (!directory) return std::unexpected(directory.error());
  if (lock_) RETURN_IF_FAILED(root_->sync());
  return directory;
}

std::string DataDirectory::store_identity(ShardIndex shard) const {
  return meta_.id == 0 ? "" : identity_of(meta_, shard);
}

std::string DataDirectory::store_path(ShardIndex shard) const {
  return fmt::format("{}/{}/{}", root_->path(), shard_name(shard), kStoreName);
}

}  // namespace stanchion::broker
