// What `stanchion serve` can be told, validated, in one struct.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace stanchion::cli {

struct ListenAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 9324;
};

struct ServeSettings {
  ListenAddress listen;
  std::string data = "stanchion-data";
  bool in_memory = false;
  bool insecure = false;
  bool strict = false;
  bool virtual_time = false;      // Time can be moved forward by an HTTP call.
  bool separate_regions = false;  // Each region a space of its own.
  std::uint32_t threads = 0;      // 0: one per CPU.
  std::uint32_t shards = 0;       // For a new data directory; 0: one per thread.
  std::string account = "000000000000";
  std::string region = "us-east-1";
};

// "HOST:PORT", "[IPV6]:PORT" or ":PORT".
Result<ListenAddress> parse_listen(const std::string& text);

// Whether the address can be reached from this machine only.
bool is_loopback(const std::string& host);

// What is wrong with the settings as a whole, in words that name the setting.
Status check(const ServeSettings& settings);

}  // namespace stanchion::cli
