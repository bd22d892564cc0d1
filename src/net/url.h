// The address of an HTTP server: "http://HOST[:PORT][/PATH]", "https://…" or
// "unix:/path/of/socket".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stanchion::net {

struct Url {
  bool tls = false;
  std::string host = {};   // Without brackets; for a Unix socket its path.
  std::string port = {};   // Empty: a Unix socket.
  std::string path = "/";  // From the slash on; at least "/".

  // The value of the Host header: with the port only if it is not that of the scheme.
  std::string authority() const;
};

Result<Url> parse_url(std::string_view text);

}  // namespace stanchion::net
