#include "link/link_tls.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/digest.h"
#include "base/text.h"

namespace stanchion::link {
namespace {

std::unexpected<Failure> tls_failure(const std::string& what) {
  char reason[256] = "unknown reason";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, reason, sizeof reason);
  ERR_clear_error();
  return fail(fmt::format("{}: {}", what, reason));
}

const LinkTls::Secrets& secrets_of(const SSL* session) {
  return *static_cast<const LinkTls::Secrets*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session)));
}

constexpr std::size_t kSecretNameSize = 8;
constexpr unsigned char kSessions[] = {'f', 'l', 'e', 'e', 't'};

// A session that both sides can resume although it never was: so TLS 1.3 takes a shared secret.
SSL_SESSION* session_of(SSL* session, const LinkTls::Secret& secret) {
  static constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};
  const SSL_CIPHER* cipher = SSL_CIPHER_find(session, kAes128GcmSha256);
  SSL_SESSION* const made = SSL_SESSION_new();
  if (made == nullptr) return nullptr;
  if (cipher == nullptr ||
      SSL_SESSION_set1_master_key(made, reinterpret_cast<const unsigned char*>(secret.key.data()),
                                  secret.key.size()) != 1 ||
      SSL_SESSION_set_cipher(made, cipher) != 1 ||
      SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION) != 1 ||
      SSL_SESSION_set1_id_context(made, kSessions, sizeof kSessions) != 1) {
    SSL_SESSION_free(made);
    return nullptr;
  }
  return made;
}

int use_session(SSL* session, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                SSL_SESSION** made) {
  const LinkTls::Secrets& secrets = secrets_of(session);
  *made = session_of(session, secrets.all.front());
  if (*made == nullptr) return 0;
  *identity = reinterpret_cast<const unsigned char*>(secrets.offered().data());
  *size = secrets.offered().size();
  return 1;
}

int find_session(SSL* session, const unsigned char* identity, std::size_t size,
                 SSL_SESSION** made) {
  const LinkTls::Secret* const secret =
      secrets_of(session).find({reinterpret_cast<const char*>(identity), size});
  *made = nullptr;
  if (secret == nullptr) return 1;
  *made = session_of(session, *secret);
  return *made != nullptr ? 1 : 0;
}

}  // namespace

Result<std::unique_ptr<LinkTls>> LinkTls::load(const LinkSecurity& security,
                                               const std::string& fleet) {
  const bool certificates =
      !security.certificate_file.empty() || !security.key_file.empty() || !security.ca_file.empty();
  if (!security.accepted_secret_file.empty() && security.secret_file.empty())
    return fail("a secret is accepted for the fleet's nodes, but none is set that this one offers");
  if (!certificates && security.secret_file.empty()) return nullptr;
  if (certificates && !security.secret_file.empty())
    return fail("both certificates and a secret are set for the fleet's nodes: choose one");
  if (certificates &&
      (security.certificate_file.empty() || security.key_file.empty() || security.ca_file.empty()))
    return fail("a node needs its certificate, its key and the fleet's authority: one is missing");
  std::unique_ptr<LinkTls> tls(new LinkTls());
  tls->context_ = std::shared_ptr<SSL_CTX>(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  SSL_CTX* const context = tls->context_.get();
  if (context == nullptr) return tls_failure("cannot set up TLS");
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A node that has no certificate of the authority is refused; with a secret nobody's certificate
  // is trusted, so that the secret alone counts.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  RETURN_IF_FAILED(certificates ? tls->use_certificates(security)
                                : tls->use_secrets(security, fleet));
  return tls;
}

LinkTls::~LinkTls() {
  for (Secret& secret : secrets_.all) OPENSSL_cleanse(secret.key.data(), secret.key.size());
}

const LinkTls::Secret* LinkTls::Secrets::find(std::string_view identity) const {
  if (identity == old_identity) return &all.front();
  const auto found = std::ranges::find(all, identity, &Secret::identity);
  return found == all.end() ? nullptr : &*found;
}

std::string_view LinkTls::likely_cause() const {
  return secrets_.all.empty() ? "one does not trust the other's certificate"
                              : "the two have different secrets";
}

Status LinkTls::use_certificates(const LinkSecurity& security) {
  SSL_CTX* const context = context_.get();
  if (SSL_CTX_use_certificate_chain_file(context, security.certificate_file.c_str()) != 1)
    return tls_failure("cannot use the certificate in " + security.certificate_file);
  if (SSL_CTX_use_PrivateKey_file(context, security.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return tls_failure("cannot use the private key in " + security.key_file);
  if (SSL_CTX_check_private_key(context) != 1)
    return tls_failure(fmt::format("the private key in {} does not belong to the certificate in {}",
                                   security.key_file, security.certificate_file));
  if (SSL_CTX_load_verify_file(context, security.ca_file.c_str()) != 1)
    return tls_failure("cannot use the authority in " + security.ca_file);
  return {};
}

Status LinkTls::read_secret(const std::string& file, const std::string& fleet) {
  std::ifstream in(file, std::ios::binary);
  std::string secret(kSecretSizeMax + 1, '\0');
  in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  if (in.bad() || (in.fail() && !in.eof())) return fail("cannot read the secret in " + file, errno);
  secret.resize(static_cast<std::size_t>(in.gcount()));
  // Editors end a file with a newline, and not all do.
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.size() < kSecretSizeMin || secret.size() > kSecretSizeMax)
    return fail(fmt::format("the secret in {} has {} bytes; it needs {} to {}", file, secret.size(),
                            kSecretSizeMin, kSecretSizeMax));
  const auto key = hmac_sha256(secret, "stanchion fleet " + fleet);
  // It travels in the clear, as what the key seals does; neither tells the key.
  const auto name = hmac_sha256(secret, "name of the secret of stanchion fleet " + fleet);
  OPENSSL_cleanse(secret.data(), secret.size());
  secrets_.all.push_back({fmt::format("stanchion fleet {} {}", fleet,
                                      to_hex(as_text(name).substr(0, kSecretNameSize))),
                          std::string(as_text(key))});
  return {};
}

Status LinkTls::use_secrets(const LinkSecurity& security, const std::string& fleet) {
  secrets_.old_identity = "stanchion fleet " + fleet;
  RETURN_IF_FAILED(read_secret(security.secret_file, fleet));
  if (!security.accepted_secret_file.empty())
    RETURN_IF_FAILED(read_secret(security.accepted_secret_file, fleet));
  SSL_CTX_set_app_data(context_.get(), &secrets_);
  // Without a context, a side that verifies its peer takes no session, and the secret is one.
  // A secret is used only with the hash that it was made for, and the suite is chosen before it.
  if (SSL_CTX_set_session_id_context(context_.get(), kSessions, sizeof kSessions) != 1 ||
      SSL_CTX_set_ciphersuites(context_.get(), "TLS_AES_128_GCM_SHA256") != 1)
    return tls_failure("cannot set up TLS");
  SSL_CTX_set_psk_use_session_callback(context_.get(), use_session);
  SSL_CTX_set_psk_find_session_callback(context_.get(), find_session);
  return {};
}

ssl_st* LinkTls::new_session() const {
  return SSL_new(context_.get());
}

}  // namespace stanchion::link
