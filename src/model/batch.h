// A checkpoint as it goes to the store: keys and values to write, keys to erase.
#pragma once

#include <string>
#include <vector>

#include "model/content.h"

namespace stanchion {

// A key and its value, which is `head` followed by the bytes of `content`, if there is one. So a
// message goes to the disk without being copied first.
struct Put {
  std::string key;
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
  std::vector<std::string> erased;
  std::vector<KeyRange> erased_ranges;

  bool empty() const { return puts.empty() && erased.empty() && erased_ranges.empty(); }
};

}  // namespace stanchion
