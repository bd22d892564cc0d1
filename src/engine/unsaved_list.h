// What differs from the last checkpoint, and what the checkpoint under way has yet to write.
//
//   add ─▶ unsaved ─begin─▶ pending ─remove (it is written)─▶ in neither
//
// A checkpoint begins with everything that is unsaved, in constant time however much that is: the
// two lists change their names. Before an element changes, whoever changes it writes it if it is
// pending; so no element is in both lists.
//
//   U1  An element's index member is twice its index in its list, plus the mark of that list; or
//       kNoIndex.
//   U2  The pending elements are those from next_ on.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/indexed_heap.h"

namespace stanchion::engine {

template <class T, std::uint32_t T::*Index>
class UnsavedList {
 public:
  bool is_unsaved(const T& element) const { return is_in(element, mark_); }
  bool is_pending(const T& element) const { return is_in(element, mark_ ^ 1); }

  // Does nothing if the element is already unsaved.
  void add(T& element) {
    if (is_unsaved(element)) return;
    CHECK(element.*Index == kNoIndex, "what is pending is written before it changes");
    element.*Index = index_of(unsaved_.size(), mark_);
    unsaved_.push_back(&element);
  }

  // From the list that it is in, if it is in one.
  void remove(T& element) {
    if (element.*Index == kNoIndex) return;
    const bool pending = is_pending(element);
    std::vector<T*>& items = pending ? pending_ : unsaved_;
    const std::size_t at = std::exchange(element.*Index, kNoIndex) / 2;
    CHECK(at < items.size() && items[at] == &element, "U1: the element is in this list");
    if (pending && at == next_) {
      items[next_++] = nullptr;
    } else {
      T* last = items.back();
      items.pop_back();
      if (last != &element) {
        items[at] = last;
        last->*Index = index_of(at, pending ? mark_ ^ 1 : mark_);
      }
    }
    if (pending && next_ == pending_.size()) {
      pending_ = {};
      next_ = 0;
    }
  }

  // A checkpoint has begun.
  void begin() {
    CHECK(!has_pending(), "one checkpoint at a time");
    pending_.swap(unsaved_);
    mark_ ^= 1;
  }

  bool has_pending() const { return !pending_.empty(); }
  // In the order in which they were added, if none was removed. REQUIRES: has_pending().
  T& first_pending() const { return *pending_[next_]; }

  // Both the unsaved and the pending ones.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const T* element : unsaved_) visit(*element);
    for (std::size_t i = next_; i < pending_.size(); ++i) visit(std::as_const(*pending_[i]));
  }

  bool is_sound() const {
    for (std::size_t i = 0; i < unsaved_.size(); ++i)
      if (unsaved_[i]->*Index != index_of(i, mark_)) return false;
    for (std::size_t i = next_; i < pending_.size(); ++i)
      if (pending_[i]->*Index != index_of(i, mark_ ^ 1)) return false;
    return true;
  }

 private:
  static std::uint32_t index_of(std::size_t at, std::uint32_t mark) {
    return static_cast<std::uint32_t>(at * 2 + mark);
  }
  static bool is_in(const T& element, std::uint32_t mark) {
    return element.*Index != kNoIndex && (element.*Index & 1) == mark;
  }

  std::vector<T*> unsaved_;
  std::vector<T*> pending_;
  std::uint32_t next_ = 0;  // The first of those that are still pending.
  std::uint32_t mark_ = 0;  // Of the unsaved ones.
};

}  // namespace stanchion::engine
