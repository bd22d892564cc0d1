// The server's certificate and key, replaceable while it runs.
//
// Any thread may call reload(); a connection keeps the certificate with which it began. TLS 1.3,
// and 1.2 with forward secrecy and authenticated ciphers only; HTTP/1.1 is negotiated where the
// client asks.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

struct ssl_st;      // OpenSSL's SSL.
struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace stanchion::net {

struct TlsFiles {
  std::string certificate_chain;  // PEM, the server's own certificate first.
  std::string private_key;        // PEM.
};

class TlsCredentials {
 public:
  static Result<std::shared_ptr<TlsCredentials>> load(TlsFiles files);

  // Reads the files again. On failure the certificate in use stays.
  Status reload();

  // A new server side of a TLS connection, or null if OpenSSL is out of memory. The caller frees
  // it.
  ssl_st* new_session() const;

 private:
  explicit TlsCredentials(TlsFiles files) : files_(std::move(files)) {}

  TlsFiles files_;
  mutable std::mutex mutex_;
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace stanchion::net
