// The credentials that sign a client's calls, and where they are found.
//
// The standard chain tries these sources in order, and stops at the first one that has credentials:
//
//   1. $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_SESSION_TOKEN
//   2. the profile ($AWS_PROFILE, else "default") in ~/.aws/credentials
//      ($AWS_SHARED_CREDENTIALS_FILE), then in ~/.aws/config ($AWS_CONFIG_FILE)
//   3. the endpoint of a container: $AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI, with the
//      token of $AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or $AWS_CONTAINER_AUTHORIZATION_TOKEN
//   4. the metadata of an EC2 instance, version 2, unless $AWS_EC2_METADATA_DISABLED is true
//
// Credentials that expire are fetched again before they do.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "client/outcome.h"

namespace stanchion::client {

struct Credentials {
  std::string access_key_id = {};
  std::string secret_access_key = {};
  std::string session_token = {};  // Empty: none.
  std::optional<std::chrono::system_clock::time_point> expires = {};

  // Calls are sent without a signature.
  bool anonymous() const { return access_key_id.empty(); }
};

// Returns credentials whenever new ones are needed. It is called on a separate thread, one call at
// a time, and may block.
using CredentialsSource = std::function<Outcome<Credentials>()>;

// Always these.
CredentialsSource static_credentials(Credentials credentials);

// Calls without a signature, for a server without accounts.
CredentialsSource anonymous_credentials();

}  // namespace stanchion::client
