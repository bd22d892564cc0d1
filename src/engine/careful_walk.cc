#include "engine/careful_walk.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::engine {
namespace {

// No key is longer: padded to this length, keys can be treated as numbers.
constexpr std::size_t kWidth = Key::kSizeMax;
constexpr std::size_t kBits = 8 * kWidth;

// How often one entry is tried before it is given up, because some errors are temporary.
constexpr int kTries = 3;

// Entries that are read at once, and their total size.
constexpr std::size_t kSliceMax = 1024;
constexpr std::size_t kSliceBytes = std::size_t{4} << 20;

// The key as a number, plus 2^bit; empty if that is beyond all keys.
std::string plus(std::string key, std::size_t bit) {
  key.resize(kWidth);
  unsigned carry = 1U << bit % 8;
  for (std::size_t at = kWidth - 1 - bit / 8; carry > 0; --at) {
    carry += static_cast<std::uint8_t>(key[at]);
    key[at] = static_cast<char>(carry & 0xFF);
    carry >>= 8;
    if (at == 0 && carry > 0) return "";
  }
  return key;
}

struct Slice {
  std::vector<std::pair<std::string, std::string>> entries;
  bool readable = false;
  bool last = false;  // Nothing follows it.
};

Slice read_slice(const Engine::ScanStore& scan, const KeyRange& range, std::size_t count) {
  Slice slice;
  std::size_t bytes = 0;
  slice.last = true;
  slice.readable = scan(range, [&](std::string_view key, std::string_view value) {
                     slice.entries.emplace_back(key, value);
                     bytes += value.size();
                     slice.last = slice.entries.size() < count && bytes < kSliceBytes;
                     return slice.last;
                   }).has_value();
  return slice;
}

// Where the hole at the beginning of the range ends; at the latest at the end of the range.
std::string end_of_hole(const Engine::ScanStore& scan, const KeyRange& range) {
  const auto is_readable = [&](const std::string& from) {
    return from.empty() || from >= range.end || read_slice(scan, {from, range.end}, 1).readable;
  };
  std::string unreadable = range.begin;
  std::size_t bit = 0;
  while (bit < kBits && !is_readable(plus(range.begin, bit))) unreadable = plus(range.begin, bit++);
  std::string found = bit < kBits ? plus(range.begin, bit) : "";
  while (bit-- > 0) {
    std::string between = plus(unreadable, bit);
    (is_readable(between) ? found : unreadable) = std::move(between);
  }
  return found.empty() || found > range.end ? range.end : found;
}

}  // namespace

bool walk_carefully(const Engine::ScanStore& scan, KeyRange range, const VisitEntry& visit) {
  bool whole = true;
  int tries = 0;
  for (std::size_t count = kSliceMax; range.begin < range.end;) {
    const Slice slice = read_slice(scan, range, count);
    if (slice.readable) {
      tries = 0;
      for (const auto& [key, value] : slice.entries) visit(key, value);
      if (slice.last) break;
      range.begin = slice.entries.back().first + '\0';
      count = std::min(2 * count, kSliceMax);
    } else if (count > 1) {
      count /= 2;
    } else if (++tries == kTries) {
      tries = 0;
      whole = false;
      range.begin = end_of_hole(scan, range);
    }
  }
  return whole;
}

}  // namespace stanchion::engine
