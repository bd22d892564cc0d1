#include "history/open.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/real_directory.h"
#include "store/memory_store.h"
#include "store/rocks_store.h"

namespace stanchion::history {
namespace {

// A minute of ten thousand queues is half a megabyte, and most reads are of the last hours.
constexpr std::size_t kCacheSize = std::size_t{4} << 20;

Result<std::unique_ptr<History>> open_store(const std::string& path, Instant now,
                                            std::size_t bytes_max) {
  auto store = store::RocksStore::open(
      path, {.cache_size = kCacheSize, .compression = store::Compression::kZstd});
  if (!store) return std::unexpected(std::move(store).error());
  return History::open(std::move(*store), now, bytes_max);
}

}  // namespace

Result<std::unique_ptr<History>> open_history(const std::string& path, Instant now,
                                              std::size_t bytes_max) {
  if (path.empty()) return History::open(std::make_unique<store::MemoryStore>(), now, bytes_max);
  const auto was_there = os::exists(path);
  if (!was_there) return std::unexpected(was_there.error());
  auto history = open_store(path, now, bytes_max);
  // Otherwise the next try would take this for the history that is damaged, and set it aside in place
  // of the one that really was.
  std::error_code ignored;
  if (!history && !*was_there) std::filesystem::remove_all(path, ignored);
  return history;
}

bool is_passing(const Failure& failure) {
  constexpr std::array kPassing{ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM};
  return std::ranges::find(kPassing, failure.os_error) != kPassing.end();
}

Result<std::string> set_aside(const std::string& path) {
  const auto is_there = os::exists(path);
  if (!is_there) return std::unexpected(is_there.error());
  if (!*is_there) return fail("there is no " + path, ENOENT);
  const std::string aside = path + ".damaged";
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) std::filesystem::rename(path, aside, error);
  if (error) return fail("cannot rename " + path + ": " + error.message(), error.value());
  return aside;
}

}  // namespace stanchion::history
