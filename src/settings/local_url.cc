#include "settings/local_url.h"

#include <fmt/format.h>

#include "net/url.h"

namespace stanchion::settings {

std::string local_url(const Settings& settings) {
  if (!settings.server.unix_socket.empty()) return "unix:" + settings.server.unix_socket;
  // An address that means "all addresses of this machine" cannot be called.
  std::string host = settings.server.listen.host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  const net::Url url{!settings.tls.certificate.empty(), host,
                     fmt::to_string(settings.server.listen.port), "/"};
  return fmt::format("{}://{}", url.tls ? "https" : "http", url.authority());
}

}  // namespace stanchion::settings
