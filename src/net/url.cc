#include "net/url.h"

#include <fmt/format.h>

#include "base/text.h"

namespace stanchion::net {

std::string Url::authority() const {
  if (port.empty()) return "localhost";
  const bool v6 = host.find(':') != std::string::npos;
  const bool usual = port == (tls ? "443" : "80");
  return fmt::format("{}{}{}{}{}", v6 ? "[" : "", host, v6 ? "]" : "", usual ? "" : ":",
                     usual ? "" : port);
}

Result<Url> parse_url(std::string_view text) {
  static constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix) && text.size() > kUnix.size())
    return Url{false, std::string(text.substr(kUnix.size())), "", "/"};
  const auto wrong = [&] {
    return fail(fmt::format("\"{}\" is no URL; give it as in http://127.0.0.1:9324", text));
  };
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) return wrong();
  std::string_view rest = text.substr(url.tls ? 8 : 7);
  const std::size_t slash = rest.find('/');
  url.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  rest = rest.substr(0, slash);
  const std::size_t bracket = rest.rfind(']');
  const std::size_t colon = rest.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  url.port = has_port ? std::string(rest.substr(colon + 1)) : url.tls ? "443" : "80";
  url.host = rest.substr(0, has_port ? colon : std::string_view::npos);
  if (url.host.starts_with('[') && url.host.ends_with(']'))
    url.host = url.host.substr(1, url.host.size() - 2);
  const auto number = parse_decimal(url.port);
  const bool has_space = text.find_first_of(" \r\n\t") != std::string_view::npos;
  if (url.host.empty() || !number || *number > 65535 || has_space) return wrong();
  return url;
}

}  // namespace stanchion::net
