// Messages for people about the server's time and the wall clock.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "os/timekeeper.h"

namespace stanchion::server {

std::string describe(const os::ClockNews& news);

// For a start: the wall clock is ahead of the last record by `gap`, or behind if it is negative.
// Empty if there is nothing to report.
std::optional<std::string> describe_gap(Instant last_record, Duration gap);

// For a start that is refused because the gap is larger than the settings allow.
std::string refuse_gap(Instant last_record, Duration gap, Duration gap_max);

}  // namespace stanchion::server
