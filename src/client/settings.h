// The settings in effect after options, environment and profile are read: where to call, for which
// region to sign, and with which credentials.
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

// "https://sqs.eu-central-1.amazonaws.com", or the one of China if the region is there.
std::string endpoint_of_region(const std::string& region);

Options with_endpoint_of_queue(Options options, const std::string& queue_url,
                               const Environment& environment);

// Whether the URL is one of this machine.
bool is_local(const net::Url& url);

}  // namespace stanchion::client
