// AWS Signature Version 4: proves who sent a call, by a signature in the Authorization header or in
// the query of a presigned URL; and how a client makes such signatures.
//
// Pure: the time and the keys are arguments. A Verifier belongs to one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/time.h"
#include "model/error.h"
#include "wire/http_call.h"

namespace stanchion::wire {

// What is known of an access key.
struct AccessKey {
  std::string secret;
  std::optional<std::string> session_token;  // The token that every call must carry, if any.
  Instant expires = kNever;
};

using KeyLookup = std::function<std::optional<AccessKey>(std::string_view access_key_id)>;

// Who signed, and for which region and service.
struct Signer {
  std::string access_key_id;
  std::string region;
  std::string service;
  std::string session_token;  // Empty: none was sent.
};

// What the scope of a signature must contain. An empty view accepts anything.
struct SignatureScope {
  std::string_view region;
  std::string_view service = "sqs";
  // Whether a payload need not be signed, because nobody between the client and the server can
  // change it.
  bool unsigned_payload = false;
};

// Whether the call carries anything that claims to be a signature.
bool is_signed(const HttpCall& call);

class Verifier {
 public:
  explicit Verifier(KeyLookup lookup) : lookup_(std::move(lookup)) {}

  // Everything that a signature covers is checked: the date within 15 minutes (or, presigned,
  // within its own X-Amz-Expires), the scope, the payload's hash, and the signature itself in
  // constant time. A presigned URL alone determines what its holder may do, so a payload must be
  // signed, or there must be none. REQUIRES: the call's headers include Host.
  Answer<Signer> verify(const HttpCall& call, const SignatureScope& scope, Instant now);

 private:
  struct CachedKey {
    std::string secret;
    Sha256 key;
  };

  const Sha256& signing_key(std::string_view secret, std::string_view access_key_id,
                            std::string_view scope);

  KeyLookup lookup_;
  // Signing keys are the same for a whole day; deriving one costs four times as much as using it.
  std::unordered_map<std::string, CachedKey> keys_;  // By access key id and scope.
};

// The credentials with which a client signs.
struct SigningIdentity {
  std::string_view access_key_id;
  std::string_view secret;
  std::string_view session_token;  // Empty: none.
  std::string_view region;
  std::string_view service = "sqs";
};

using OwnedHeaders = std::vector<std::pair<std::string, std::string>>;

// The headers to add to the call: X-Amz-Date, X-Amz-Security-Token where needed, Authorization. All
// headers of the call are signed. REQUIRES: they include Host.
OwnedHeaders sign(const HttpCall& call, const SigningIdentity& identity, Instant now);

// The target of the call with a signature in its query, valid for `seconds` from `now`.
std::string presign(const HttpCall& call, const SigningIdentity& identity, Instant now,
                    std::int64_t seconds);

}  // namespace stanchion::wire
