// One call, as a line of the access log.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

namespace stanchion::log {

// Nothing in it is a secret.
struct AccessRecord {
  std::string_view peer;
  std::string_view account;  // Empty: the caller is unknown.
  std::string_view action;   // Empty: the action is unknown.
  std::string_view queue;    // Empty: none, or unknown. May hold any bytes that the client sent.
  std::string_view error;    // The code of the Query protocol; empty: no error.
  std::string_view request_id;
  int status = 0;
  std::size_t request_bytes = 0;
  std::size_t response_bytes = 0;
  std::chrono::microseconds took{};
};
using AccessLog = std::function<void(const AccessRecord&)>;

}  // namespace stanchion::log
