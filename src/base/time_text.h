// Instants and spans of time for people.
#pragma once

#include <string>

#include "base/time.h"

namespace stanchion {

// "2026-11-16T03:30:33.123Z"
std::string format_instant(Instant t);

// "7 d 3 h", "2 h 5 min", "1 min 30 s", "2.5 s", always without a sign.
std::string format_span(Duration span);

}  // namespace stanchion
