// Requests and replies as one line for a person. What is not shown still affects the hash of the
// run, through its effects.
#pragma once

#include <string>

#include "model/reply.h"
#include "model/request.h"

namespace stanchion::sim {

std::string describe(const Request& request);
std::string describe(const Reply& reply);

}  // namespace stanchion::sim
