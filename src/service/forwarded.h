// What a proxy in front reports about its client; to be believed only if the settings say so.
#pragma once

#include <string_view>

#include "net/http_message.h"

namespace stanchion::service {

// The address of the client; empty if the proxy does not tell it. Of several addresses only the
// last was added by that proxy; the earlier ones are what the client claims.
std::string_view forwarded_address(const net::HttpRequest& request);

}  // namespace stanchion::service
