#include "net/tls_client.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace stanchion::net {

void TlsContextDeleter::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

void TlsSessionDeleter::operator()(ssl_st* session) const {
  SSL_free(session);
}

Result<TlsClientContext> make_client_context(const TlsTrust& trust) {
  TlsClientContext context(SSL_CTX_new(TLS_client_method()));
  if (!context) return fail("cannot set up TLS: " + take_tls_reason(nullptr));
  SSL_CTX_set_verify(context.get(), trust.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_app_data(context.get(), const_cast<char*>(trust.advice));
  if (!trust.verify) return context;
  if (trust.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
    return context;
  }
  if (SSL_CTX_load_verify_file(context.get(), trust.ca_file.c_str()) != 1)
    return fail(fmt::format("cannot take the certificates in {}: {}", trust.ca_file,
                            take_tls_reason(nullptr)));
  // A certificate in the file is trusted even if its authority is not in the file.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.get()), X509_V_FLAG_PARTIAL_CHAIN);
  return context;
}

TlsSession make_client_session(ssl_ctx_st* context, const std::string& host, int socket) {
  TlsSession session(SSL_new(context));
  if (!session) return session;
  X509_VERIFY_PARAM* wanted = SSL_get0_param(session.get());
  // The server is told the requested name (SNI), but an address is not a name.
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  SSL_set_fd(session.get(), socket);
  SSL_set_connect_state(session.get());
  // The failure to parse a name as an address must not be reported as the reason of a later
  // failure.
  ERR_clear_error();
  return session;
}

std::string take_tls_reason(const ssl_st* session) {
  const long verdict = session == nullptr ? X509_V_OK : SSL_get_verify_result(session);
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (verdict != X509_V_OK && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return fmt::format("the server's certificate is not trusted: {}. {}",
                       X509_verify_cert_error_string(verdict),
                       static_cast<const char*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session))));
  if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER) return "the server does not speak TLS";
  if (code == 0) return "the connection broke or took too long";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("error {:x}", code);
}

}  // namespace stanchion::net
