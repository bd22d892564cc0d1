// What the golden tests play with: a readable form of decoded requests, and sample replies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/reply.h"
#include "model/request.h"

namespace stanchion::wire {

// One line per member that was given. Written out by hand, so that a wrong pointer in the schema
// shows.
std::string dump_request(const Request& request);

// `sample` is empty for the usual one, "empty" for the one with nothing in it, and so on.
Reply sample_reply(Action action, const std::string& sample);

// Every code with a text that the server gives, and the texts that are treated specially.
std::vector<std::pair<std::string, Error>> sample_errors();

}  // namespace stanchion::wire
