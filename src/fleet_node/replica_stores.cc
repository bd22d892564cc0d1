#include "fleet_node/replica_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "os/real_directory.h"
#include "store/identity.h"

namespace stanchion::fleet_node {
namespace {

namespace fs = std::filesystem;

// All stores of a node share this much, since a node has replicas of most shards.
constexpr std::size_t kCacheSize = std::size_t{64} << 20;
constexpr std::size_t kCacheSizeMin = std::size_t{1} << 20;
// Reads of a replica that was closed end long before.
constexpr std::chrono::seconds kCloseTimeMax(30);

// Behind the name of a store: a copy that comes, what it has replaced, and copies that others get.
constexpr std::string_view kIncoming = ".incoming";
constexpr std::string_view kReplaced = ".replaced";
constexpr std::string_view kOutgoing = ".outgoing-";

Status remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return fail(fmt::format("{}: cannot be removed: {}", path, error.message()));
  return {};
}

Status rename_if_there(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error && error != std::errc::no_such_file_or_directory)
    return fail(fmt::format("{}: cannot be renamed: {}", from, error.message()));
  return {};
}

// What cannot be opened must not take the place of a store: the node would end at each start.
Status check_copy(const std::string& path, const std::string& identity) {
  auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(std::move(directory).error());
  RETURN_IF_FAILED(store::check_identity(**directory, identity));
  auto opened = store::RocksStore::open_read_only(path);
  if (!opened) return std::unexpected(std::move(opened).error());
  return {};
}

Status sync_directory(const std::string& path) {
  auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(directory.error());
  return (*directory)->sync();
}

}  // namespace

ReplicaStores::ReplicaStores(const broker::DataDirectory& data) : data_(data) {
  places_.resize(data.shard_count());
  for (std::uint32_t i = 0; i < data.shard_count(); ++i) {
    const fs::path store = data.store_path(ShardIndex(i));
    const std::string name = store.filename().string();
    std::error_code error;
    std::vector<fs::path> left;
    for (fs::directory_iterator it(store.parent_path(), error), end; !error && it != end;
         it.increment(error))
      for (const std::string_view ending : {kIncoming, kReplaced, kOutgoing})
        if (it->path().filename().string().starts_with(name + std::string(ending)))
          left.push_back(it->path());
    // What cannot be removed only takes room.
    for (const fs::path& path : left) fs::remove_all(path, error);
  }
}

ReplicaStores::~ReplicaStores() {
  for (Place& place : places_) place.store.reset();
}

Result<std::shared_ptr<store::RocksStore>> ReplicaStores::open(ShardIndex shard) {
  std::unique_lock lock(mutex_);
  Place& place = places_[shard.value()];
  ++place.opened;
  if (!closed_.wait_for(lock, 2 * kCloseTimeMax, [&] {
        return !place.replacing && (place.store != nullptr || place.open == 0);
      }))
    return fail(fmt::format("{} is being replaced", data_.store_path(shard)));
  if (place.store) return place.store;
  const std::size_t cache = std::max(kCacheSize / places_.size(), kCacheSizeMin);
  auto opened =
      store::RocksStore::open(data_.store_path(shard), {.cache_size = cache,
                                                        .merges_before_commit = false,
                                                        .identity = data_.store_identity(shard)});
  if (!opened) return std::unexpected(std::move(opened).error());
  ++place.open;
  place.store = {opened->release(), [this, &place](store::RocksStore* store) {
                   delete store;
                   const std::lock_guard one(mutex_);
                   --place.open;
                   closed_.notify_all();
                 }};
  return place.store;
}

// Waits until nobody has the store any more.
Status ReplicaStores::close(ShardIndex shard) {
  std::shared_ptr<store::RocksStore> closing;
  std::unique_lock lock(mutex_);
  Place& place = places_[shard.value()];
  closing = std::exchange(place.store, nullptr);
  lock.unlock();
  closing.reset();
  lock.lock();
  if (!closed_.wait_for(lock, kCloseTimeMax, [&] { return place.open == 0; }))
    return fail(fmt::format("{} is still being read", data_.store_path(shard)));
  return {};
}

std::uint64_t ReplicaStores::openings(ShardIndex shard) {
  const std::lock_guard lock(mutex_);
  return places_[shard.value()].opened;
}

Status ReplicaStores::replace(ShardIndex shard, std::uint64_t openings, const Fetch& fetch) {
  const std::string path = data_.store_path(shard);
  const std::string incoming = path + std::string(kIncoming);
  const std::string replaced = path + std::string(kReplaced);
  RETURN_IF_FAILED(remove_all(incoming));
  Status fetched = fetch(incoming);
  if (fetched) fetched = check_copy(incoming, data_.store_identity(shard));
  if (!fetched) {
    static_cast<void>(remove_all(incoming));
    return fetched;
  }
  {
    std::unique_lock lock(mutex_);
    Place& place = places_[shard.value()];
    if (place.opened != openings) {
      lock.unlock();
      static_cast<void>(remove_all(incoming));
      return fail(fmt::format("{} was opened while its copy was under way", path));
    }
    place.replacing = true;
  }
  const auto swap = [&]() -> Status {
    RETURN_IF_FAILED(close(shard));
    // Removing takes many steps, and whatever is there under the store's name must be whole.
    RETURN_IF_FAILED(remove_all(replaced));
    RETURN_IF_FAILED(rename_if_there(path, replaced));
    RETURN_IF_FAILED(rename_if_there(incoming, path));
    RETURN_IF_FAILED(sync_directory(fs::path(path).parent_path().string()));
    static_cast<void>(remove_all(replaced));  // What cannot be removed only takes room.
    return {};
  };
  const Status swapped = swap();
  const std::lock_guard lock(mutex_);
  places_[shard.value()].replacing = false;
  closed_.notify_all();
  return swapped;
}

Status ReplicaStores::copy_to(ShardIndex shard, const std::string& path) {
  std::shared_ptr<store::RocksStore> store;
  {
    const std::lock_guard lock(mutex_);
    store = places_[shard.value()].store;
  }
  if (!store) return fail(fmt::format("shard {} has no store here", shard.value()));
  RETURN_IF_FAILED(store->backup_to(path));
  // Whose it is stands beside what RocksDB copies.
  auto directory = os::open_existing_directory(path);
  if (!directory) return std::unexpected(std::move(directory).error());
  return store::write_identity(**directory, data_.store_identity(shard));
}

Result<std::shared_ptr<const std::string>> ReplicaStores::copy(ShardIndex shard) {
  std::string path = fmt::format("{}{}{}", data_.store_path(shard), kOutgoing, ++copies_);
  RETURN_IF_FAILED(remove_all(path));
  RETURN_IF_FAILED(copy_to(shard, path));
  return std::shared_ptr<const std::string>(new std::string(std::move(path)),
                                            [](const std::string* made) {
                                              static_cast<void>(remove_all(*made));
                                              delete made;
                                            });
}

}  // namespace stanchion::fleet_node
