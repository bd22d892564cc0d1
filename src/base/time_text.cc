#include "base/time_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>

namespace stanchion {
namespace {

std::string format_pair(std::int64_t count, std::int64_t per, const char* large,
                        const char* small) {
  if (count % per == 0) return fmt::format("{} {}", count / per, large);
  return fmt::format("{} {} {} {}", count / per, large, count % per, small);
}

}  // namespace

std::string format_instant(Instant t) {
  const auto seconds = static_cast<std::time_t>(to_millis(t) / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), to_millis(t) % 1000);
}

std::string format_span(Duration span) {
  const std::int64_t millis = std::abs(span.count());
  if (millis < 60'000) return fmt::format("{}.{} s", millis / 1000, millis % 1000 / 100);
  const std::int64_t seconds = millis / 1000;
  if (seconds < 3600) return format_pair(seconds, 60, "min", "s");
  if (seconds < 86'400) return format_pair(seconds / 60, 60, "h", "min");
  return format_pair(seconds / 3600, 24, "d", "h");
}

}  // namespace stanchion
