#include "service/forwarded.h"

#include <algorithm>

#include "service/page_guard.h"

namespace stanchion::service {

std::string_view forwarded_address(const net::HttpRequest& request) {
  std::string_view addresses = request.header("X-Forwarded-For").value_or("");
  addresses.remove_prefix(addresses.rfind(',') + 1);  // npos + 1 is 0: one address.
  while (addresses.starts_with(' ')) addresses.remove_prefix(1);
  if (addresses.empty() || !net::is_host(addresses)) return {};
  // Some proxies add the port. An IPv6 address without brackets has none.
  const bool bare_v6 = std::ranges::count(addresses, ':') > 1 && !addresses.starts_with('[');
  return bare_v6 ? addresses : name_of_host(addresses);
}

}  // namespace stanchion::service
