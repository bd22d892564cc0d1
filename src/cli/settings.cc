#include "cli/settings.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/limits.h"

namespace stanchion::cli {

Result<ListenAddress> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto wrong = [&] {
    return fail(fmt::format("--listen {}: give it as HOST:PORT, for example 127.0.0.1:9324", text));
  };
  if (colon == std::string::npos) return wrong();
  const auto port = parse_decimal(std::string_view(text).substr(colon + 1));
  if (!port || *port > 65535) return wrong();
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return fail(
        fmt::format("--listen {}: write an IPv6 address in brackets, as in [::1]:9324", text));
  }
  return ListenAddress{host.empty() ? "127.0.0.1" : host, static_cast<std::uint16_t>(*port)};
}

bool is_loopback(const std::string& host) {
  // A name such as 127.example.com is whatever its owner says it is.
  in_addr address{};
  const bool is_ipv4 = inet_pton(AF_INET, host.c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (is_ipv4 && host.starts_with("127."));
}

Status check(const ServeSettings& settings) {
  if (!is_loopback(settings.listen.host) && !settings.insecure)
    return fail(fmt::format(
        "--listen {}: this address can be reached from other machines, and nobody who calls is "
        "asked who they are. Listen on 127.0.0.1, or say --insecure if that is what you want",
        settings.listen.host));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (settings.account.size() != 12 || !std::ranges::all_of(settings.account, is_digit))
    return fail(fmt::format("--account {}: an account id has 12 digits", settings.account));
  const auto is_region_letter = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-';
  };
  if (settings.region.empty() || settings.region.size() > 64 ||
      !std::ranges::all_of(settings.region, is_region_letter))
    return fail("--region: give the name of a region, for example us-east-1");
  if (settings.shards > limits::kShardsMax || settings.threads > limits::kShardsMax)
    return fail(fmt::format("--shards and --threads go up to {}", limits::kShardsMax));
  return {};
}

}  // namespace stanchion::cli
