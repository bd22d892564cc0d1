// About how much memory a request or a reply takes while it waits.
#pragma once

#include <cstddef>

#include "model/reply.h"
#include "model/request.h"

namespace stanchion::broker {

std::size_t held_bytes(const Request& request);

// Messages count also if they are in memory anyway: they may leave it before the reply does.
std::size_t held_bytes(const Reply& reply);

}  // namespace stanchion::broker
