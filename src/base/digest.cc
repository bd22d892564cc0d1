#include "base/digest.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <xxhash.h>

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

// An EVP MAC with its context kept; `size` is set once for algorithms with a choice of output size.
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

}  // namespace

Md5 md5(std::string_view data) {
  thread_local Digest digest("MD5");
  return digest.operator()<Md5>(data);
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

Mac siphash(const MacKey& key, std::string_view data) {
  std::size_t size = sizeof(Mac);
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
                                   OSSL_PARAM_construct_end()};
  thread_local KeyedHash mac("SIPHASH", parameters);
  return mac.operator()<Mac>(as_text(key), data);
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
