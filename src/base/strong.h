// Numbers that must not be mixed up: each kind of id, position and count has a type of its own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stanchion {

// A number of type T that can be compared only with numbers of the same Tag. Conversions in both
// directions are explicit.
template <class Tag, class T = std::uint64_t>
class Strong {
 public:
  using Value = T;

  constexpr Strong() = default;
  constexpr explicit Strong(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr Strong next() const { return Strong(static_cast<T>(value_ + 1)); }

  friend constexpr auto operator<=>(Strong, Strong) = default;

 private:
  T value_{};
};

}  // namespace stanchion

template <class Tag, class T>
struct std::hash<stanchion::Strong<Tag, T>> {
  std::size_t operator()(stanchion::Strong<Tag, T> id) const noexcept {
    // Ids are dense counters; the multiplication spreads them over the high bits.
    return static_cast<std::size_t>(static_cast<std::uint64_t>(id.value()) * 0x9E3779B97F4A7C15ULL);
  }
};
