#include "base/digest.h"

// MD5 is called below the EVP layer, which adds 36 to 70 ns to the 250 ns of a 100-byte body.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/md5.h>
#include <openssl/params.h>
// Inlined, because most inputs are short names and keys.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace stanchion {
namespace {

// An EVP digest fetched once and a context that is reset, not allocated, for each use.
class Digest {
 public:
  explicit Digest(const char* name)
      : algorithm_(EVP_MD_fetch(nullptr, name, nullptr)), context_(EVP_MD_CTX_new()) {
    CHECK(algorithm_ != nullptr && context_ != nullptr, "OpenSSL lacks a digest we need");
  }

  template <class Out>
  Out operator()(std::string_view data) {
    Out out;
    unsigned size = 0;
    const bool done = EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) == 1 &&
                      EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1 &&
                      EVP_DigestFinal_ex(context_.get(), out.data(), &size) == 1;
    CHECK(done && size == out.size(), "digest failed");
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MD* p) const { EVP_MD_free(p); }
    void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
  };
  std::unique_ptr<EVP_MD, Free> algorithm_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// An EVP MAC whose context is kept; `size` is set once, for algorithms with a choice of output
// size.
class KeyedHash {
 public:
  KeyedHash(const char* name, const OSSL_PARAM* parameters)
      : algorithm_(EVP_MAC_fetch(nullptr, name, nullptr)),
        context_(EVP_MAC_CTX_new(algorithm_.get())) {
    CHECK(context_ != nullptr && EVP_MAC_CTX_set_params(context_.get(), parameters) == 1,
          "OpenSSL lacks a MAC we need");
  }

  template <class Out>
  Out operator()(std::string_view key, std::string_view data) {
    Out out;
    std::size_t size = 0;
    const auto bytes = [](std::string_view s) {
      return reinterpret_cast<const unsigned char*>(s.data());
    };
    const bool done = EVP_MAC_init(context_.get(), bytes(key), key.size(), nullptr) == 1 &&
                      EVP_MAC_update(context_.get(), bytes(data), data.size()) == 1 &&
                      EVP_MAC_final(context_.get(), out.data(), &size, out.size()) == 1;
    CHECK(done && size == out.size(), "keyed hash failed");
    return out;
  }

 private:
  struct Free {
    void operator()(EVP_MAC* p) const { EVP_MAC_free(p); }
    void operator()(EVP_MAC_CTX* p) const { EVP_MAC_CTX_free(p); }
  };
  std::unique_ptr<EVP_MAC, Free> algorithm_;
  std::unique_ptr<EVP_MAC_CTX, Free> context_;
};

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }

  void absorb(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

Md5 md5(std::string_view data) {
  Md5 out;
  MD5_CTX context;
  const bool done = MD5_Init(&context) == 1 &&
                    MD5_Update(&context, data.data(), data.size()) == 1 &&
                    MD5_Final(out.data(), &context) == 1;
  CHECK(done, "digest failed");
  return out;
}

Sha256 sha256(std::string_view data) {
  thread_local Digest digest("SHA256");
  return digest.operator()<Sha256>(data);
}

Sha256 hmac_sha256(std::string_view key, std::string_view data) {
  char name[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                                   OSSL_PARAM_construct_end()};
  thread_local KeyedHash mac("HMAC", parameters);
  return mac.operator()<Sha256>(key, data);
}

// Our own SipHash, because OpenSSL's spends most of its time on setup when the input is a few
// bytes.
Mac siphash(const MacKey& key, std::string_view data) {
  std::uint64_t k[2];
  std::memcpy(k, key.data(), sizeof k);
  SipState s{k[0] ^ 0x736f6d6570736575ULL, k[1] ^ 0x646f72616e646f6dULL ^ 0xee,
             k[0] ^ 0x6c7967656e657261ULL, k[1] ^ 0x7465646279746573ULL};
  const std::size_t whole = data.size() / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + i, sizeof word);
    s.absorb(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(data.size()) << 56;
  for (std::size_t i = whole; i < data.size(); ++i)
    last |= std::uint64_t{static_cast<std::uint8_t>(data[i])} << 8 * (i - whole);
  s.absorb(last);
  Mac out;
  for (std::size_t half = 0; half < 2; ++half) {
    (half == 0 ? s.v2 : s.v1) ^= half == 0 ? 0xee : 0xdd;
    for (int i = 0; i < 4; ++i) s.round();
    const std::uint64_t word = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    std::memcpy(out.data() + 8 * half, &word, sizeof word);
  }
  return out;
}

std::uint64_t xxh3_64(std::string_view data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

Hash128 xxh3_128(std::string_view data, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data.data(), data.size(), seed);
  return {hash.low64, hash.high64};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace stanchion
