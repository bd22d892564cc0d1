// Searching for the few bytes that matter, sixteen at a time. Most text has none of them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stanchion {

// The registers that every processor has that this is compiled for.
using Bytes = unsigned char __attribute__((vector_size(16)));
// Of each byte: all bits, or none.
using ByteMask = signed char __attribute__((vector_size(16)));

static_assert(std::endian::native == std::endian::little, "the first byte is in the lowest bits");

inline Bytes load_bytes(const char* at) {
  Bytes bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return bytes;
}

inline ByteMask bytes_equal(Bytes bytes, unsigned char byte) {
  return bytes == byte;
}

inline ByteMask bytes_below(Bytes bytes, unsigned char limit) {
  return bytes < limit;
}

// The number of the first byte in the mask; sizeof(Bytes) if it has none.
inline std::size_t first_of(ByteMask mask) {
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(mask);
  if ((halves[0] | halves[1]) == 0) return sizeof mask;
  const std::size_t half = halves[0] != 0 ? 0 : 1;
  return half * sizeof halves[0] + static_cast<std::size_t>(std::countr_zero(halves[half])) / 8;
}

inline bool has_any(ByteMask mask) {
  const auto halves = std::bit_cast<std::array<std::uint64_t, 2>>(mask);
  return (halves[0] | halves[1]) != 0;
}

inline bool is_ascii(Bytes bytes) {
  return !has_any(bytes >= 0x80);
}

// The first byte in [at, end) that one of the tests finds. in_bytes(bytes) tests sixteen and returns
// as the functions above; in_byte(byte) tests one.
template <class InBytes, class InByte>
const char* find_byte(const char* at, const char* end, const InBytes& in_bytes,
                      const InByte& in_byte) {
  constexpr auto kStep = sizeof(Bytes);
  for (; static_cast<std::size_t>(end - at) >= kStep; at += kStep)
    if (const std::size_t found = first_of(in_bytes(load_bytes(at))); found != kStep)
      return at + found;
  while (at != end && !in_byte(static_cast<unsigned char>(*at))) ++at;
  return at;
}

}  // namespace stanchion
