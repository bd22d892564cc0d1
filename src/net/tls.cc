#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>

namespace stanchion::net {

namespace {

std::unexpected<Failure> openssl_failure(const std::string& what) {
  char reason[256] = "unknown reason";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  return fail(what + ": " + reason);
}

// Picks "http/1.1" from the client's list; a client that offers only other protocols continues
// without ALPN, as if it had not asked.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* match = nullptr;
  if (SSL_select_next_proto(&match, chosen_size, kOurs, sizeof kOurs - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = match;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<SSL_CTX>> make_context(const TlsFiles& files) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return openssl_failure("cannot create a TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // From TLS 1.2 only what TLS 1.3 has kept: forward secrecy and authenticated encryption.
  if (SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return openssl_failure("cannot choose the ciphers");
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Partial writes from a buffer that may have moved match how sockets behave; releasing buffers
  // keeps an idle connection small.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate_chain.c_str()) != 1) {
    return openssl_failure("cannot use the certificate in " + files.certificate_chain);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.private_key.c_str(), SSL_FILETYPE_PEM) !=
      1) {
    return openssl_failure("cannot use the private key in " + files.private_key);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return openssl_failure("the private key in " + files.private_key +
                           " does not belong to the certificate in " + files.certificate_chain);
  }
  return context;
}

}  // namespace

Result<std::shared_ptr<TlsCredentials>> TlsCredentials::load(TlsFiles files) {
  const std::shared_ptr<TlsCredentials> credentials(new TlsCredentials(std::move(files)));
  RETURN_IF_FAILED(credentials->reload());
  return credentials;
}

Status TlsCredentials::reload() {
  auto context = make_context(files_);
  if (!context) return std::unexpected(std::move(context).error());
  const std::lock_guard lock(mutex_);
  context_ = std::move(*context);
  return {};
}

SSL* TlsCredentials::new_session() const {
  const std::lock_guard lock(mutex_);
  return SSL_new(context_.get());
}

}  // namespace stanchion::net
