// One HTTP exchange with a server, from a command that waits for it: plain, TLS or Unix socket.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/tls_client.h"

namespace stanchion::net {

struct Url {
  bool tls = false;
  std::string host;  // Without brackets; for a Unix socket its path.
  std::string port;  // Empty: a Unix socket.
  std::string path;  // From the slash on; at least "/".

  // What goes into the Host header.
  std::string authority() const;
};

// "http://HOST[:PORT][/PATH]", "https://…" or "unix:/path/of/socket".
Result<Url> parse_url(std::string_view text);

struct CallOptions {
  std::chrono::milliseconds timeout{5'000};  // For connecting, and for each read and write.
  TlsTrust trust = {};
};

struct HttpReply {
  int status = 0;
  std::string body;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// Sends the request on a connection of its own. Host, Content-Length and Connection are added.
Result<HttpReply> call_http(const Url& url, std::string_view method, const Headers& headers,
                            std::string_view body, const CallOptions& options);

}  // namespace stanchion::net
