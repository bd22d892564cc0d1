// Encodes a reply of the model as an HTTP answer, in the protocol of the call.
#pragma once

#include <string_view>

#include "model/reply.h"
#include "model/request.h"
#include "wire/http_call.h"

namespace stanchion::wire {

struct ReplyContext {
  std::string_view request_id;
  std::string_view base_url;  // Scheme, host and port, without a slash at the end.
};

// The engine's text for a queue that does not exist. The Query protocol has its own.
inline constexpr std::string_view kQueueDoesNotExist = "The specified queue does not exist.";

// REQUIRES: `request` still names the attributes that a ReceiveMessage asked for; other requests
// are not read.
HttpAnswer encode(const Reply& reply, Action action, const Request& request, Protocol protocol,
                  const ReplyContext& context);

// Also for calls that could not be decoded into a request.
HttpAnswer encode_error(const Error& error, Protocol protocol, const ReplyContext& context);

}  // namespace stanchion::wire
