// What a proxy in front reports about its client; to be believed only if the settings say so.
//
// Of several lines of a header, and of several values in a line, only the last was added by that
// proxy; the earlier ones are what the client claims.
#pragma once

#include <string_view>

#include "net/http_message.h"

namespace stanchion::service {

// The address of the client, IPv4 or IPv6, without a port; empty if the proxy does not tell it, or not
// in a way that can be understood.
std::string_view forwarded_address(const net::HttpRequest& request);
// The host that the client called, perhaps with a port; empty if it is not told, or is no host.
std::string_view forwarded_host(const net::HttpRequest& request);
// The scheme, whatever it is; empty if it is not told.
std::string_view forwarded_scheme(const net::HttpRequest& request);

}  // namespace stanchion::service
