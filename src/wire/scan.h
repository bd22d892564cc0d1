// Searching for the few bytes that matter, eight at a time. Most text has none of them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace stanchion::wire {

inline constexpr std::uint64_t kEachByte = 0x0101010101010101ULL;
inline constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;

// The tests below return a word with the high bit set in each byte that passes. They are exact up
// to and including the first such byte; above it, a borrow may set more bits.

constexpr std::uint64_t bytes_equal(std::uint64_t word, unsigned char byte) {
  const std::uint64_t difference = word ^ (kEachByte * byte);
  return (difference - kEachByte) & ~difference & kHighBits;
}

// REQUIRES: limit <= 128.
constexpr std::uint64_t bytes_below(std::uint64_t word, unsigned char limit) {
  return (word - kEachByte * limit) & ~word & kHighBits;
}

// The first byte in [at, end) that one of the tests finds. in_word(word) tests eight bytes and
// returns as the functions above; in_byte(byte) tests one.
template <class InWord, class InByte>
const char* find_byte(const char* at, const char* end, const InWord& in_word,
                      const InByte& in_byte) {
  for (; end - at >= 8; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    if (const std::uint64_t found = in_word(word); found != 0)
      return at + std::countr_zero(found) / 8;
  }
  while (at != end && !in_byte(static_cast<unsigned char>(*at))) ++at;
  return at;
}

}  // namespace stanchion::wire
