// A hash index for millions of entries that are added and removed in any order: it maps hashes to
// places.
//
// A map of the keys themselves would be three times as big, and every access two cache misses. Here
// an entry is eight bytes: a part of its hash, and its place, which is where the caller keeps the
// key. The caller can prefetch the one cache line that an access needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fetch_soon.h"

namespace stanchion::engine {

class HashPlaces {
 public:
  std::size_t size() const { return size_; }

  void expect(std::uint32_t hash) const {
    if (!slots_.empty()) fetch_soon(&slots_[hash & mask()]);
  }

  // The place of the entry with this hash for which is_it(place) holds.
  template <class IsIt>
  std::optional<std::uint32_t> find(std::uint32_t hash, IsIt&& is_it) const {
    if (slots_.empty()) return std::nullopt;
    for (std::size_t at = hash & mask(); slots_[at].used(); at = (at + 1) & mask())
      if (slots_[at].hash == hash && is_it(slots_[at].place())) return slots_[at].place();
    return std::nullopt;
  }

  // REQUIRES: the place is not in use.
  void insert(std::uint32_t hash, std::uint32_t place) {
    CHECK(place != UINT32_MAX, "the last place stands for none");
    if (size_ >= slots_.size() / 8 * 5) grow();
    put({hash, place + 1});
    ++size_;
  }

  // REQUIRES: the entry was inserted.
  void erase(std::uint32_t hash, std::uint32_t place) {
    std::size_t hole = hash & mask();
    while (slots_[hole].place_plus_one != place + 1) hole = (hole + 1) & mask();
    // Entries displaced by the removed one move up, so that no search ends too early.
    for (std::size_t at = (hole + 1) & mask(); slots_[at].used(); at = (at + 1) & mask()) {
      const std::size_t way = (at - (slots_[at].hash & mask())) & mask();
      if (way < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
    --size_;
  }

  // Calls visit(hash, place) for all.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Slot& slot : slots_)
      if (slot.used()) visit(slot.hash, slot.place());
  }

 private:
  static constexpr std::size_t kFirstSlots = 8;

  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t place_plus_one = 0;  // 0: none.

    bool used() const { return place_plus_one != 0; }
    std::uint32_t place() const { return place_plus_one - 1; }
  };

  std::size_t mask() const { return slots_.size() - 1; }

  void put(const Slot& slot) {
    std::size_t at = slot.hash & mask();
    while (slots_[at].used()) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    const std::size_t slots = slots_.empty() ? kFirstSlots : 2 * slots_.size();
    for (const Slot& slot : std::exchange(slots_, std::vector<Slot>(slots)))
      if (slot.used()) put(slot);
  }

  std::vector<Slot> slots_;  // None, or a power of two.
  std::size_t size_ = 0;
};

}  // namespace stanchion::engine
