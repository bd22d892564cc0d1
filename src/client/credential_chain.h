// The standard places of credentials, in the order of client/credentials.h.
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
  // The server is on this machine: where the environment and the profile have nothing, calls are not
  // signed.
  bool local = false;
};

// Looks through all places anew with every call.
CredentialsSource standard_chain(ChainOptions options, Environment environment);

// The answer of a container's endpoint and of the metadata of an instance.
Outcome<Credentials> parse_credentials(std::string_view json);

}  // namespace stanchion::client
