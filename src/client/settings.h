// What a client goes by once its options, the environment and the profile are read: where to call,
// for which region to sign, and who signs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "client/options.h"
#include "client/outcome.h"
#include "net/url.h"

namespace stanchion::client {

// A variable of the environment; nullopt if it is not set or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

struct Settings {
  std::string region;
  std::string endpoint;
  net::Url url;
  std::string ca_file;
  CredentialsSource credentials;
};

Outcome<Settings> read_settings(const Options& options, const Environment& environment);

// "https://sqs.eu-central-1.amazonaws.com", and that of China where the region is there.
std::string endpoint_of_region(const std::string& region);

// Whether the URL leads to this machine.
bool is_local(const net::Url& url);

}  // namespace stanchion::client
