// A reply of the model into an answer of HTTP, in the protocol in which it was asked.
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

// The engine's words for a queue that is not there. The Query protocol has its own.
inline constexpr std::string_view kQueueDoesNotExist = "The specified queue does not exist.";

// REQUIRES: `request` still names the attributes that a ReceiveMessage asked for; of other
// requests nothing is read.
HttpAnswer encode(const Reply& reply, Action action, const Request& request, Protocol protocol,
                  const ReplyContext& context);

// Also for calls of which no request could be made.
HttpAnswer encode_error(const Error& error, Protocol protocol, const ReplyContext& context);

}  // namespace stanchion::wire
