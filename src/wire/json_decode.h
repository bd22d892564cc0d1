// AWS JSON 1.0: the body of a request.
#pragma once

#include <string_view>

#include "model/error.h"
#include "model/request.h"
#include "wire/queue_url.h"

namespace stanchion::wire {

Answer<Request> decode_json(Action action, std::string_view body, const DecodeContext& context);

}  // namespace stanchion::wire
