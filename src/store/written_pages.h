// The checksums of a file that is being written, page by page: whatever is read from it later can
// be compared with what was written, also when who reads it does not look.
//
// Threads: one at a time writes; when it has, any may compare.
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

  // Whether these are the bytes that were written at `offset`.
  // REQUIRES: `offset` is the beginning of a page and the bytes end where a page or the file does.
  bool matches(std::uint64_t offset, std::string_view bytes) const;

 private:
  std::vector<std::uint64_t> pages_;  // Those that are full.
  std::string last_;                  // What is written of the one behind them.
};

}  // namespace stanchion::store
