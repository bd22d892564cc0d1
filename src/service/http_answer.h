// What the endpoints that speak AWS's protocols have in common.
#pragma once

#include <functional>
#include <string>

#include "net/http_message.h"
#include "wire/http_call.h"

namespace stanchion::service {

// Identifies a request in answers and logs; it need not be unguessable.
std::string new_request_id();

net::HttpResponse to_response(wire::HttpAnswer answer);

// Adds to an answer what its caller wants besides. Called on the reactor of the exchange, when the
// answer is sent.
using FinishAnswer = std::function<void(net::HttpResponse&)>;

}  // namespace stanchion::service
