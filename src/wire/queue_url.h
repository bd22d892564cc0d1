// Queue URLs: {scheme}://{host}/{account}/{name}.
#pragma once

#include <string>
#include <string_view>

#include "model/error.h"
#include "model/ids.h"

namespace stanchion::wire {

// Who calls, as far as names of queues depend on it.
struct DecodeContext {
  std::string_view account;
  std::string_view region;
};

// Takes the last two segments of any URL's path, whatever its host. A bare queue name, and one
// behind "/queue/", is a queue of the caller. QueueDoesNotExist if there is no queue in it at all,
// InvalidAddress for everything else.
Answer<QueueRef> parse_queue_url(std::string_view url, const DecodeContext& context);

// `base_url` is scheme, host and port without a slash at the end.
void append_queue_url(std::string& out, std::string_view base_url, const QueueRef& queue);

}  // namespace stanchion::wire
