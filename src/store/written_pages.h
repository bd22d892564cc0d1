// The checksums of a file that is being written, page by page: bytes read from it later can be
// compared with what was written, even if the reader does not check them.
//
// Threads: one at a time writes; after that, any thread may compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::store {

class WrittenPages {
 public:
  static constexpr std::size_t kPageSize = 4096;

  void append(std::string_view bytes);
  std::uint64_t size() const { return pages_.size() * kPageSize + last_.size(); }

  // Whether these are the bytes that were written at `offset`. REQUIRES: `offset` is the beginning
  // of a page and the bytes end at the end of a page or of the file.
  bool matches(std::uint64_t offset, std::string_view bytes) const;

 private:
  std::vector<std::uint64_t> pages_;  // Checksums of the full pages.
  std::string last_;                  // The written part of the page after them.
};

}  // namespace stanchion::store
