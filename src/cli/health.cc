#include "cli/health.h"

#include <fmt/format.h>

#include "cli/http_call.h"

namespace stanchion::cli {

std::string local_url(const Settings& settings) {
  if (!settings.server.unix_socket.empty()) return "unix:" + settings.server.unix_socket;
  // An address that means "every one of this machine's" is no address to call.
  std::string host = settings.server.listen.host;
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  const Url url{!settings.tls.certificate.empty(), host,
                fmt::to_string(settings.server.listen.port), "/"};
  return fmt::format("{}://{}", url.tls ? "https" : "http", url.authority());
}

int health(const std::string& text) {
  auto url = parse_url(text);
  if (!url) {
    fmt::print(stderr, "stanchion: --url: {}\n", url.error().message);
    return 1;
  }
  url->path = "/health/ready";
  // The server is asked whether it works, not trusted with anything: its certificate is made for
  // the name that clients use, seldom for this one.
  const auto reply = call_http(*url, "GET", {}, "", {.verify_certificate = false});
  if (!reply) {
    fmt::print(stderr, "stanchion: {}: {}\n", text, reply.error().message);
    return 1;
  }
  fmt::print("{}", reply->body);
  return reply->status == 200 ? 0 : 1;
}

}  // namespace stanchion::cli
