// Queue URLs: {scheme}://{host}/{account}/{name}.
#pragma once

#include <string>
#include <string_view>

#include "model/error.h"
#include "model/ids.h"

namespace stanchion::wire {

// What the meaning of queue names depends on: the caller.
struct DecodeContext {
  std::string_view account;
  std::string_view region;
};

// Uses the last two segments of any URL's path, whatever its host. A bare queue name, or one after
// "/queue/", is a queue of the caller. QueueDoesNotExist if the URL has no queue in it at all,
// InvalidAddress for everything else.
Answer<QueueRef> parse_queue_url(std::string_view url, const DecodeContext& context);

// `base_url` is scheme, host and port without a slash at the end.
void append_queue_url(std::string& out, std::string_view base_url, const QueueRef& queue);

}  // namespace stanchion::wire
