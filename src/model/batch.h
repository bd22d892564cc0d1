// A checkpoint as it is handed to the store: keys and values to write, keys to erase.
#pragma once

#include <array>
#include <boost/container/deque.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/fetch_soon.h"
#include "model/content.h"

namespace stanchion {

// A key of the store, stored inline: a checkpoint has as many keys as messages.
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

// A key and its value, which is `head` followed by the bytes of `content`, if there is one.
// Splitting the value saves copying each message before it is written.
struct Put {
  Key key;
  std::string head;
  ContentPtr content;
};

// Many entries whose keys are equal except for their last eight bytes, which are a big-endian
// number. In this form the messages of a chunk take a third of the memory of one Put each, and are
// sorted as one.
//
// A packed series becomes a single entry under `begin`, the key of its first message. Its value is
// kPackMark, followed for each message by: the difference between its number and the one before as
// a varint, the head as a text, the content as a text.
struct Series {
  static constexpr char kPackMark = '\0';

  struct Entry {
    std::uint64_t number;
    ContentPtr content;
    std::uint32_t head_end;  // Offsets into `heads`.
  };

  // All keys lie from `begin` up to, but not including, `end`.
  Key begin;
  Key end;
  std::string heads;            // The heads of all entries, one after the other.
  std::vector<Entry> entries;   // In order of number.
  std::size_t value_bytes = 0;  // Total size of heads and contents.
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

  // Contents are scattered over memory, so they are prefetched.
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

// A list that never moves what is in it: a checkpoint may have millions of entries, and moving them
// to a larger array would take long.
template <class T>
using BatchList =
    boost::container::deque<T, void,
                            boost::container::deque_options_t<boost::container::block_size<128>>>;

// Everything in any order. REQUIRES: a key is put or erased at most once, nothing that is put lies
// in an erased range, and no other key lies between the ends of a series.
struct Batch {
  BatchList<Put> puts;
  BatchList<Key> erased;
  BatchList<KeyRange> erased_ranges;
  BatchList<Series> series{};

  bool empty() const {
    return puts.empty() && erased.empty() && erased_ranges.empty() && series.empty();
  }

  // Calls visit(key, head, content) for every entry that is put, also those of series.
  template <typename Visit>
  void for_each_put(const Visit& visit) const {
    for (const Put& put : puts) visit(put.key.view(), std::string_view(put.head), put.content);
    for (const Series& one : series) one.for_each(visit);
  }
};

}  // namespace stanchion
