// For tests with TLS: certificates made on the spot.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <memory>
#include <string>

#include "net/tls.h"

namespace stanchion::net::test {

template <class T, auto Free>
struct FreeWith {
  void operator()(T* object) const { Free(object); }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, FreeWith<T, Free>>;

// A self-signed certificate for `name`, valid for that many seconds from now, written to the files.
inline void write_certificate(const TlsFiles& files, const std::string& name,
                              long good_seconds = 3600) {
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const Owned<X509, X509_free> certificate(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), good_seconds);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const Owned<FILE, std::fclose> to(std::fopen(files.certificate_chain.c_str(), "w"));
  ASSERT_EQ(PEM_write_X509(to.get(), certificate.get()), 1);
  const Owned<FILE, std::fclose> key_to(std::fopen(files.private_key.c_str(), "w"));
  ASSERT_EQ(PEM_write_PrivateKey(key_to.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
}

}  // namespace stanchion::net::test
