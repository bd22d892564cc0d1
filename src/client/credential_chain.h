// The standard sources of credentials, in the order of client/credentials.h.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "client/credentials.h"
#include "client/settings.h"

namespace stanchion::client {

struct ChainOptions {
  std::string profile = {};  // Empty: $AWS_PROFILE, else "default".
  // The server is on this machine: if neither the environment nor the profile has credentials,
  // calls are not signed.
  bool local = false;
};

// Tries all sources anew with every call.
CredentialsSource standard_chain(ChainOptions options, Environment environment);

// Parses the answer of a container's endpoint or of an instance's metadata service.
Outcome<Credentials> parse_credentials(std::string_view json);

}  // namespace stanchion::client
