// A checkpoint as it goes to the store: keys and values to write, keys to erase.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "model/content.h"

namespace stanchion {

// A key of the store, kept in place: a checkpoint has as many as messages.
class Key {
 public:
  static constexpr std::size_t kSizeMax = 39;

  Key() = default;
  Key(std::string_view bytes) : size_(static_cast<std::uint8_t>(bytes.size())) {
    CHECK(bytes.size() <= kSizeMax, "keys are short");
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
  }
  Key(const std::string& bytes) : Key(std::string_view(bytes)) {}
  Key(const char* bytes) : Key(std::string_view(bytes)) {}

  std::string_view view() const { return {bytes_.data(), size_}; }
  operator std::string_view() const { return view(); }

  friend bool operator==(const Key& a, const Key& b) { return a.view() == b.view(); }

 private:
  std::array<char, kSizeMax> bytes_;
  std::uint8_t size_ = 0;
};

// A key and its value, which is `head` followed by the bytes of `content`, if there is one. So a
// message goes to the disk without being copied first.
struct Put {
  Key key;
  std::string head;
  ContentPtr content;
};

// From `begin` up to, but not including, `end`.
struct KeyRange {
  std::string begin;
  std::string end;
};

// In any order.
// REQUIRES: a key is put or erased at most once, and nothing that is put lies in an erased range.
struct Batch {
  std::vector<Put> puts;
  std::vector<Key> erased;
  std::vector<KeyRange> erased_ranges;

  bool empty() const { return puts.empty() && erased.empty() && erased_ranges.empty(); }
};

}  // namespace stanchion
