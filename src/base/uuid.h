// UUIDs of version 4: random bits, but for the six that say so.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace stanchion {

inline std::array<std::uint8_t, 16> make_uuid(std::uint64_t first_bits, std::uint64_t last_bits) {
  const std::array<std::uint64_t, 2> halves{first_bits, last_bits};
  std::array<std::uint8_t, 16> bytes;
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  return bytes;
}

}  // namespace stanchion
