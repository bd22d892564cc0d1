#include "service/page_guard.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/text.h"

namespace stanchion::service {
namespace {

constexpr std::string_view kFromAPage =
    "Calls from web pages are refused as long as no accounts are configured, because any page "
    "could make them.";

bool is(std::string_view header, std::string_view name) {
  return header.size() == name.size() && equals_ignoring_ascii_case(header, name);
}

bool begins_with(std::string_view text, std::string_view start) {
  return text.size() >= start.size() &&
         equals_ignoring_ascii_case(text.substr(0, start.size()), start);
}

// Whether a browser would need a preflight before it sends this header for a page. Browsers add
// Authorization of other kinds by themselves, and proxies add headers of any name but these.
bool needs_preflight(std::string_view header, std::string_view value) {
  switch (header.empty() ? '\0' : header.front() | 0x20) {
    case 'x':
      return begins_with(header, "X-Amz-") || is(header, "X-Stanchion-Control");
    case 'a':
      return (is(header, "Authorization") && begins_with(value, "AWS")) ||
             begins_with(header, "amz-sdk-");
    default:
      return false;
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A single word, or a name below a domain that nobody can own.
bool is_private_name(std::string_view name) {
  if (name.find('.') == std::string_view::npos) return true;
  const std::string lower = to_lower_ascii(name);
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".local", ".internal", ".test", ".home.arpa"},
      [&](std::string_view domain) { return lower.ends_with(domain); });
}

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.starts_with("*.")) return is(name, pattern);
  pattern.remove_prefix(1);
  return name.size() > pattern.size() && is(name.substr(name.size() - pattern.size()), pattern);
}

Error unknown_host(std::string_view host) {
  return {ErrorCode::kAccessDenied,
          fmt::format("This server does not have the name {0}. As long as no accounts are "
                      "configured, call it by one of its own names, because a web page of another "
                      "name could be calling: use localhost or 127.0.0.1, or start it with "
                      "--allowed-hosts {0}.",
                      name_of_host(host).empty() ? host : name_of_host(host))};
}

}  // namespace

std::string_view name_of_host(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const std::size_t end = bracketed ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return {};
  std::string_view name = host.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0));
  const std::string_view port = host.substr(end + (bracketed ? 1 : 0));
  if (!port.empty() && (port[0] != ':' || !std::ranges::all_of(port.substr(1), is_digit)))
    return {};
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool is_address(std::string_view name) {
  const std::string text(name);
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool names_loopback(std::string_view name) {
  if (name.starts_with("127."))
    return std::ranges::all_of(name, [](char c) { return is_digit(c) || c == '.'; });
  if (name.find(':') != std::string_view::npos) {
    in6_addr address{};
    if (inet_pton(AF_INET6, std::string(name).c_str(), &address) != 1) return false;
    return IN6_IS_ADDR_LOOPBACK(&address) ||
           (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == IN_LOOPBACKNET);
  }
  constexpr std::string_view kBelow = ".localhost";
  return is(name, "localhost") ||
         (name.size() > kBelow.size() && is(name.substr(name.size() - kBelow.size()), kBelow));
}

PageGuard::PageGuard(PageGuardOptions options)
    : options_(std::move(options)),
      any_(std::ranges::find(options_.hosts, "*") != options_.hosts.end()) {}

bool PageGuard::knows(std::string_view host) const {
  // Every browser sends a Host header.
  if (any_ || host.empty()) return true;
  const std::string_view name = name_of_host(host);
  if (name.empty()) return false;
  if (names_loopback(name)) return true;
  if (options_.open && (is_address(name) || is_private_name(name))) return true;
  return std::ranges::any_of(options_.hosts,
                             [&](const std::string& pattern) { return matches(name, pattern); });
}

std::optional<Error> PageGuard::check_call(const wire::HttpCall& call) const {
  for (const auto& [name, value] : call.headers) {
    switch (name.size()) {
      case 4:
        if (is(name, "Host") && !knows(value)) return unknown_host(value);
        break;
      case 6:
        if (is(name, "Origin")) return Error{ErrorCode::kAccessDenied, std::string(kFromAPage)};
        break;
      case 14:
        // "none" means that a person typed the URL into the address bar.
        if (is(name, "Sec-Fetch-Site") && value != "none")
          return Error{ErrorCode::kAccessDenied, std::string(kFromAPage)};
        break;
      case 16:
        if (options_.trust_forwarded && is(name, "X-Forwarded-Host") && !knows(value))
          return unknown_host(value);
        break;
      default:
        break;
    }
  }
  return std::nullopt;
}

std::optional<Error> PageGuard::check_action(const wire::HttpCall& call, Action action) {
  if (traits_of(action).effect == Effect::kReads) return std::nullopt;
  for (const auto& [name, value] : call.headers)
    if (needs_preflight(name, value)) return std::nullopt;
  return Error{
      ErrorCode::kAccessDenied,
      fmt::format("As long as no accounts are configured, {} must have a header that a web page "
                  "cannot send unasked: a signature in Authorization, any X-Amz- header, or, for "
                  "curl and the like, \"X-Stanchion-Control: 1\".{}",
                  name_of(action),
                  call.query().find("X-Amz-Signature=") == std::string_view::npos
                      ? ""
                      : " The signature in the URL is not enough, because a page could make the "
                        "browser open it.")};
}

}  // namespace stanchion::service
