// Digests and keyed hashes. All use of OpenSSL's and xxHash's hashing goes through this file.
//
// Functions keep their contexts per thread, so a call costs only the hashing itself.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace stanchion {

using Md5 = std::array<std::uint8_t, 16>;
using Sha256 = std::array<std::uint8_t, 32>;
using MacKey = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 16>;

Md5 md5(std::string_view data);
// The MD5 of each text, in less time than hashing one text after the other.
void md5_each(std::span<const std::string_view> texts, std::span<Md5> out);
Sha256 sha256(std::string_view data);
Sha256 hmac_sha256(std::string_view key, std::string_view data);

// SipHash-2-4 with 128 bits of output: a short keyed MAC for values that we hand out to clients and
// get back.
Mac siphash(const MacKey& key, std::string_view data);

// XXH3, 64 and 128 bits: fast checksums and table keys; no protection against an adversary.
std::uint64_t xxh3_64(std::string_view data, std::uint64_t seed = 0);
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};
Hash128 xxh3_128(std::string_view data, std::uint64_t seed = 0);

// Takes the same time wherever the first difference is, so that timing reveals nothing.
bool equal_in_constant_time(std::string_view a, std::string_view b);

template <class Array>
std::string_view as_text(const Array& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace stanchion
