// Where nodes listen.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "net/client_connection.h"

namespace stanchion::link {

struct HostAndPort {
  std::string host;
  std::string port;
};

// Of "host:port", "1.2.3.4:port" or "[::1]:port".
std::optional<HostAndPort> parse_address(const std::string& text);

bool is_loopback(const net::ClientAddress& address);
std::string to_text(const net::ClientAddress& address);

}  // namespace stanchion::link
