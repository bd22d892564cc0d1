#include "service/forwarded.h"

#include <algorithm>

#include "base/text.h"
#include "service/page_guard.h"

namespace stanchion::service {
namespace {

// What was added last: a proxy adds to the last line, or adds a line of its own behind all others.
std::string_view last_value(const net::HttpRequest& request, std::string_view name) {
  std::string_view value;
  for (const net::HttpHeader& header : request.headers)
    if (header.name.size() == name.size() && equals_ignoring_ascii_case(header.name, name))
      value = header.value;
  value.remove_prefix(value.rfind(',') + 1);  // npos + 1 is 0: one value.
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  return value;
}

}  // namespace

std::string_view forwarded_address(const net::HttpRequest& request) {
  std::string_view address = last_value(request, "X-Forwarded-For");
  // Some proxies add the port. An IPv6 address without brackets has none.
  const bool bare_v6 = std::ranges::count(address, ':') > 1 && !address.starts_with('[');
  if (!bare_v6) address = name_of_host(address);
  return is_address(address) ? address : std::string_view();
}

std::string_view forwarded_host(const net::HttpRequest& request) {
  const std::string_view host = last_value(request, "X-Forwarded-Host");
  return net::is_host(host) ? host : std::string_view();
}

std::string_view forwarded_scheme(const net::HttpRequest& request) {
  return last_value(request, "X-Forwarded-Proto");
}

}  // namespace stanchion::service
