// AWS Query: decodes flattened parameters into requests.
#pragma once

#include <string_view>

#include "model/error.h"
#include "model/request.h"
#include "wire/query_parameters.h"
#include "wire/queue_url.h"

namespace stanchion::wire {

// `path` is the path of the URL; if it names a queue and no QueueUrl is given, it is used instead.
Answer<Request> decode_query(Action action, std::string_view path,
                             const QueryParameters& parameters, const DecodeContext& context);

// "The action X is not valid for this endpoint."
std::unexpected<Error> invalid_action(std::string_view action);

}  // namespace stanchion::wire
