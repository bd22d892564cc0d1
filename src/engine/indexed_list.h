// An unordered list whose elements know their index in it, so that any of them can be removed in
// constant time.
//
//   An element's index member is its index in items_, or kNoIndex.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/indexed_heap.h"

namespace stanchion::engine {

template <class T, std::uint32_t T::*Index>
class IndexedList {
 public:
  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  T& operator[](std::size_t at) const { return *items_[at]; }

  static bool holds(const T& element) { return element.*Index != kNoIndex; }

  // Does nothing if the element is already in the list.
  void add(T& element) {
    if (holds(element)) return;
    element.*Index = static_cast<std::uint32_t>(items_.size());
    items_.push_back(&element);
  }

  // Does nothing if the element is not in the list.
  void remove(T& element) {
    if (!holds(element)) return;
    const std::uint32_t at = std::exchange(element.*Index, kNoIndex);
    CHECK(at < items_.size() && items_[at] == &element, "the element is in this list");
    T* last = items_.back();
    items_.pop_back();
    if (last == &element) return;
    items_[at] = last;
    last->*Index = at;
  }

  bool is_sound() const {
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (items_[i]->*Index != i) return false;
    return true;
  }

 private:
  std::vector<T*> items_;
};

}  // namespace stanchion::engine
