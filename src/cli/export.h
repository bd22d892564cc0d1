// `stanchion export`: the queues of a running server as [[queue]] tables for stanchion.toml.
#pragma once

#include <string>

#include "base/result.h"

namespace stanchion::cli {

// With an empty access key id, calls are not signed.
struct ExportSettings {
  std::string endpoint = "http://127.0.0.1:9324";
  std::string region = "us-east-1";
  std::string access_key_id;
  std::string secret;
  std::string session_token;
};

// The queues that the caller's account has in the region, with every attribute and tag.
Result<std::string> export_queues(const ExportSettings& settings);

}  // namespace stanchion::cli
