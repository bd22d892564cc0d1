// An instant as people write it, in UTC and to the second: 2026-11-16T23:39:02Z.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "base/time.h"

namespace stanchion {

inline std::string date(Instant at) {
  const std::chrono::sys_time<Duration> when{Duration(to_millis(at))};
  return fmt::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(when));
}

}  // namespace stanchion
