// TLS between the nodes of a fleet, mutual either way: by certificates of an authority, or by a
// secret that all nodes share, which is used as a pre-shared key of TLS 1.3.
//
// While the secret is changed, a node has two. It offers the first, and accepts both:
//
//   LT1  The identity of a key says which one it is, since the listener has to know before it can
//        verify. Nodes with one secret offer it under a name that earlier releases know, too; so a
//        key under that name is the listener's first.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

  // What a handshake that failed may be due to, for a person.
  std::string_view likely_cause() const;

  struct Secret {
    std::string identity;
    std::string key;
  };
  // LT1: the one that is offered first.
  struct Secrets {
    std::string old_identity;  // Of the first.
    std::vector<Secret> all;

    const std::string& offered() const {
      return all.size() > 1 ? all.front().identity : old_identity;
    }
    const Secret* find(std::string_view identity) const;
  };

 private:
  LinkTls() = default;

  Status use_certificates(const LinkSecurity& security);
  Status read_secret(const std::string& file, const std::string& fleet);
  Status use_secrets(const LinkSecurity& security, const std::string& fleet);

  std::shared_ptr<ssl_ctx_st> context_;
  Secrets secrets_;
};

}  // namespace stanchion::link
