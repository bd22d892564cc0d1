#include "server/own_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "journal/local_journal.h"
#include "journal/memory_journal.h"
#include "model/limits.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::server {
namespace {

// Of the memory of a shard, for the cache of its store.
constexpr std::uint64_t kCacheShare = 16;
constexpr std::uint64_t kCacheSizeMin = std::uint64_t{1} << 20;
constexpr std::uint64_t kCacheSizeMax = std::uint64_t{8} << 20;

}  // namespace

Result<std::uint32_t> OwnStorage::open_directory(std::uint32_t shards_if_new) {
  count_ = shards_if_new;
  if (settings_.in_memory) return count_;
  auto root = os::open_real_directory(settings_.data);
  if (!root) return std::unexpected(root.error());
  root_ = std::move(*root);
  const auto id = static_cast<std::uint32_t>(entropy_.u64() | 1);  // Any but 0.
  auto data = broker::DataDirectory::open(*root_, shards_if_new, id);
  if (!data) return std::unexpected(data.error());
  data_ = std::make_unique<broker::DataDirectory>(std::move(*data));
  count_ = data_->shard_count();
  for (std::uint32_t i = 0; i < count_; ++i) {
    auto directory = data_->shard_directory(ShardIndex(i));
    if (!directory) return std::unexpected(directory.error());
    shards_.push_back(std::move(*directory));
  }
  return count_;
}

std::uint64_t OwnStorage::left_free() const {
  return limits::kLeftFree + count_ * limits::kLeftFreePerShard;
}

Result<broker::Broker::Storage> OwnStorage::open(ShardIndex shard) {
  if (settings_.in_memory)
    return broker::Broker::Storage{std::make_unique<journal::MemoryJournal>(), nullptr};
  auto opened = journal::LocalJournal::open(*shards_[shard.value()], data_->shard_of(shard),
                                            {.leave_free = left_free()}, entropy_, clock_);
  if (!opened) return std::unexpected(opened.error());
  if (const auto& recovery = (*opened)->recovery(); recovery.torn_bytes > 0)
    warn_(
        fmt::format("cut a torn write of {} bytes off the end of {}, left by a crash during a "
                    "commit. That commit was not acknowledged; a disk that lost confirmed writes "
                    "would look the same.",
                    recovery.torn_bytes, recovery.torn_file));
  const std::size_t cache =
      std::clamp(settings_.memory.value / count_ / kCacheShare, kCacheSizeMin, kCacheSizeMax);
  auto store = store::RocksStore::open(
      data_->store_path(shard), {.cache_size = cache, .identity = data_->store_identity(shard)});
  if (!store) return std::unexpected(store.error());
  stores_.emplace_back(std::move(*store));
  return broker::Broker::Storage{std::move(*opened), stores_.back()};
}

}  // namespace stanchion::server
