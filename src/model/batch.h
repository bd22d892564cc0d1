// A checkpoint as it goes to the store: keys and values to write, keys to erase.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/fetch_soon.h"
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

// Many entries whose keys are equal but for their last eight bytes, which are a number, big-endian:
// the messages of a chunk take a third of what a Put for each would, and are sorted as one.
//
// A packed series is a single entry under `begin`, the key of its first. Its value is kPackMark,
// and of each: how much higher its number is than the one before as a varint, the head as a text,
// the content as a text.
struct Series {
  static constexpr char kPackMark = '\0';

  struct Entry {
    std::uint64_t number;
    ContentPtr content;
    std::uint32_t head_end;  // In `heads`.
  };

  // All keys lie from `begin` up to, but not including, `end`.
  Key begin;
  Key end;
  std::string heads;            // One after the other.
  std::vector<Entry> entries;   // In order of number.
  std::size_t value_bytes = 0;  // Of heads and contents.
  bool packed = false;

  // Calls visit(key, head, content) for each entry that is to be written.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    if (packed) return visit(begin.view(), std::string_view(pack()), ContentPtr());
    std::string key(begin.view());
    std::uint32_t head = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      fetch_ahead(i);
      const Entry& entry = entries[i];
      for (std::size_t byte = 0; byte < sizeof entry.number; ++byte)
        key[key.size() - 1 - byte] = static_cast<char>(entry.number >> (8 * byte));
      visit(std::string_view(key), std::string_view(heads).substr(head, entry.head_end - head),
            entry.content);
      head = entry.head_end;
    }
  }

 private:
  static constexpr std::size_t kFetchAhead = 8;
  static constexpr std::size_t kFetchBytes = 192;

  std::string pack() const;

  // Contents lie anywhere in memory: the processor had better look for them in time.
  void fetch_ahead(std::size_t i) const {
    if (i + kFetchAhead >= entries.size()) return;
    fetch_soon(entries[i + kFetchAhead].content.get(), kFetchBytes);
  }
};

// From `begin` up to, but not including, `end`.
struct KeyRange {
  std::string begin;
  std::string end;
};

// In any order.
// REQUIRES: a key is put or erased at most once, nothing that is put lies in an erased range, and
// nothing else lies between the ends of a series.
struct Batch {
  std::vector<Put> puts;
  std::vector<Key> erased;
  std::vector<KeyRange> erased_ranges;
  std::vector<Series> series{};

  bool empty() const {
    return puts.empty() && erased.empty() && erased_ranges.empty() && series.empty();
  }

  // Calls visit(key, head, content) for everything that is put.
  template <typename Visit>
  void for_each_put(const Visit& visit) const {
    for (const Put& put : puts) visit(put.key.view(), std::string_view(put.head), put.content);
    for (const Series& one : series) one.for_each(visit);
  }
};

}  // namespace stanchion
