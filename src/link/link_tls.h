// TLS between the nodes of a fleet, mutual either way: by certificates of one authority, or by a
// secret that all nodes share, which is used as a pre-shared key of TLS 1.3.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "link/tcp_transport.h"

struct ssl_st;      // OpenSSL's SSL.
struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace stanchion::link {

inline constexpr std::size_t kSecretSizeMin = 16;
inline constexpr std::size_t kSecretSizeMax = 4'096;

// Any thread.
class LinkTls {
 public:
  // Null: without TLS, because nothing is set. A failure if only some of the files are set, or they
  // cannot be used.
  static Result<std::unique_ptr<LinkTls>> load(const LinkSecurity& security,
                                               const std::string& fleet);
  ~LinkTls();

  // Of either side. Null if OpenSSL is out of memory. The caller frees it.
  ssl_st* new_session() const;

  struct Secret {
    std::string identity;
    std::string key;
  };

 private:
  LinkTls() = default;

  Status use_certificates(const LinkSecurity& security);
  Status use_secret(const std::string& file, const std::string& fleet);

  std::shared_ptr<ssl_ctx_st> context_;
  Secret secret_;
};

}  // namespace stanchion::link
