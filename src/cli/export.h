// `stanchion export`: the queues of a running server as [[queue]] tables for stanchion.toml.
#pragma once

#include <string>

#include "base/result.h"
#include "net/tls_client.h"

namespace stanchion::cli {

// With an empty access key id, calls are not signed.
struct ExportSettings {
  std::string endpoint = "http://127.0.0.1:9324";
  std::string region = "us-east-1";
  std::string access_key_id;
  std::string secret;
  std::string session_token;
  net::TlsTrust trust;
};

// The queues that the caller's account has in the region, with every attribute and tag.
Result<std::string> export_queues(const ExportSettings& settings);

class Program;
void add_export(Program& program);

}  // namespace stanchion::cli
