// Data for the golden tests: a readable form of decoded requests, and sample replies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/reply.h"
#include "model/request.h"

namespace stanchion::wire {

// One line per member that was given. Written by hand, so that a wrong pointer in the schema is
// noticed.
std::string dump_request(const Request& request);

// `sample` is empty for the usual reply, "empty" for the reply with nothing in it, and so on.
Reply sample_reply(Action action, const std::string& sample);

// Every error code with a text that the server gives, and the texts that are treated specially.
std::vector<std::pair<std::string, Error>> sample_errors();

}  // namespace stanchion::wire
