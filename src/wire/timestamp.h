// Dates with a time, as CloudWatch takes and writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace stanchion::wire {

// "2026-01-31T12:00:00Z", also with fractions of seconds, without seconds, with an offset such as
// +01:00, or only a date; or seconds since 1970. nullopt unless it is an instant from 1970 to 9999.
std::optional<Instant> parse_date_time(std::string_view text);
// Seconds since 1970, to the millisecond.
std::optional<Instant> date_time_of(double seconds);

// "2026-01-31T12:00:00Z"
std::string format_date_time(Instant at);

}  // namespace stanchion::wire
