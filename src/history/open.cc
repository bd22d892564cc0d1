#include "history/open.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "store/memory_store.h"
#include "store/rocks_store.h"

namespace stanchion::history {
namespace {

// A minute of ten thousand queues is half a megabyte, and most reads are of the last hours.
constexpr std::size_t kCacheSize = std::size_t{4} << 20;

}  // namespace

Result<std::unique_ptr<History>> open_history(const std::string& path, Instant now) {
  if (path.empty()) return History::open(std::make_unique<store::MemoryStore>(), now);
  auto store = store::RocksStore::open(
      path, {.cache_size = kCacheSize, .compression = store::Compression::kZstd});
  if (!store) return std::unexpected(std::move(store).error());
  return History::open(std::move(*store), now);
}

bool is_passing(const Failure& failure) {
  constexpr std::array kPassing{ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM};
  return std::ranges::find(kPassing, failure.os_error) != kPassing.end();
}

Result<std::string> set_aside(const std::string& path) {
  const std::string aside = path + ".damaged";
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) std::filesystem::rename(path, aside, error);
  if (error) return fail("cannot rename " + path + ": " + error.message(), error.value());
  return aside;
}

}  // namespace stanchion::history
