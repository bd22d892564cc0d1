#include "store/written_pages.h"

#include <algorithm>

#include "base/check.h"
#include "base/digest.h"

namespace stanchion::store {

void WrittenPages::append(std::string_view bytes) {
  while (!bytes.empty()) {
    // Most writes are large pieces, which need not be copied.
    if (last_.empty() && bytes.size() >= kPageSize) {
      pages_.push_back(xxh3_64(bytes.substr(0, kPageSize)));
      bytes.remove_prefix(kPageSize);
      continue;
    }
    const std::size_t fits = std::min(bytes.size(), kPageSize - last_.size());
    last_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    if (last_.size() < kPageSize) continue;
    pages_.push_back(xxh3_64(last_));
    last_.clear();
  }
}

bool WrittenPages::matches(std::uint64_t offset, std::string_view bytes) const {
  CHECK(offset % kPageSize == 0 && offset + bytes.size() <= size(), "whole pages of the file");
  auto page = static_cast<std::size_t>(offset / kPageSize);
  for (; !bytes.empty(); ++page) {
    if (page == pages_.size()) return bytes == last_;
    CHECK(bytes.size() >= kPageSize, "the bytes end with a page");
    if (xxh3_64(bytes.substr(0, kPageSize)) != pages_[page]) return false;
    bytes.remove_prefix(kPageSize);
  }
  return true;
}

}  // namespace stanchion::store
