// The client's side of TLS, for programs that call a server: whom to trust, and why a server is not
// trusted.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_st;      // OpenSSL's SSL.
struct ssl_ctx_st;  // OpenSSL's SSL_CTX.

namespace stanchion::net {

struct TlsTrust {
  // False: whoever answers is accepted as the server.
  bool verify = true;
  // PEM: certificates to trust, of authorities or of the server itself, instead of the system's.
  // Empty: the system's ($SSL_CERT_FILE and $SSL_CERT_DIR name others).
  std::string ca_file = {};
  // What to do about a server that is not trusted, in the words of whoever asks; a literal.
  const char* advice =
      "Name the file of its authority with --ca, or take any certificate with --no-verify";
};

struct TlsContextDeleter {
  void operator()(ssl_ctx_st* context) const;
};
using TlsClientContext = std::unique_ptr<ssl_ctx_st, TlsContextDeleter>;

struct TlsSessionDeleter {
  void operator()(ssl_st* session) const;
};
using TlsSession = std::unique_ptr<ssl_st, TlsSessionDeleter>;

Result<TlsClientContext> make_client_context(const TlsTrust& trust);

// A session on a connected socket, in which the server must prove to be `host`. Null if OpenSSL is
// out of memory.
TlsSession make_client_session(ssl_ctx_st* context, const std::string& host, int socket);

// Why the handshake or the transfer failed, as text; `session` may be null. Clears the reason.
std::string take_tls_reason(const ssl_st* session);

}  // namespace stanchion::net
