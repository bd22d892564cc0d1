// Regions of ARNs. Where all regions are one, the ARNs in a request name the region that the client
// is configured with, and mean queues of this server; where regions are separate, a queue of
// another region does not exist.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/request.h"

namespace stanchion::service {

// `text` with the partition and region of every queue ARN replaced by those of `region`. ARNs
// without a region, or with wildcards for it, stay.
std::string with_home_arns(std::string_view text, std::string_view region);

// The same for all ARNs of a request: in redrive policies, queue policies and move tasks.
void bring_home(Request& request, std::string_view region);

// The error for a move task between queues that are not in the caller's region.
std::optional<Error> find_elsewhere(const Request& request, std::string_view region);

}  // namespace stanchion::service
