// Regions of ARNs. Where all regions are one, the ARNs that a client writes name the region that
// the client is set to, and mean queues that are here; where they are apart, a queue of another
// region does not exist.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/request.h"

namespace stanchion::service {

// `text` with the partition and region of every ARN of a queue replaced by those of `region`.
// Whatever has no region, or wildcards for it, stays.
std::string with_home_arns(std::string_view text, std::string_view region);

// The same for all ARNs of a request: of redrive policies, queue policies and move tasks.
void bring_home(Request& request, std::string_view region);

// What is wrong with a move task of queues that are not in the caller's region.
std::optional<Error> find_elsewhere(const Request& request, std::string_view region);

}  // namespace stanchion::service
