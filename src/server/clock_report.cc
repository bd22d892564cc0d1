#include "server/clock_report.h"

#include <fmt/format.h>

#include "base/time_text.h"

namespace stanchion::server {
namespace {

// After a server was off for longer than this, the message says what that means.
constexpr Duration kLongGap = std::chrono::hours(1);

// How a difference to the wall clock ends.
std::string remedy(Duration ahead) {
  const std::int64_t factor =
      ahead > Duration(0) ? os::Timekeeper::kSlowerBy : os::Timekeeper::kFasterBy;
  const std::string pace = ahead > Duration(0) ? "a tenth slower until the wall clock has caught up"
                                               : "a hundredth faster until it has caught up";
  return fmt::format("continues without a jump, {}, for about {}", pace,
                     format_span(ahead * factor));
}

}  // namespace

std::string describe(const os::ClockNews& news) {
  if (news.kind == os::ClockNews::Kind::kMadeUp)
    return "the server's time and the wall clock agree again";
  const bool ahead = news.difference > Duration(0);
  const char* way = news.kind == os::ClockNews::Kind::kSetBack ? "back" : "forward";
  if (std::chrono::abs(news.difference) < os::Timekeeper::kNegligible)
    return fmt::format("the wall clock was set {} by {} and agrees with the server's time", way,
                       format_span(news.step));
  return fmt::format("the wall clock was set {} by {}. The server's time is {} {} it and {}.{}",
                     way, format_span(news.step), format_span(news.difference),
                     ahead ? "ahead of" : "behind", remedy(news.difference),
                     ahead ? "" : " A restart adopts the wall clock's time at once.");
}

std::optional<std::string> describe_gap(Instant last_record, Duration gap) {
  if (gap <= -os::Timekeeper::kNewsworthy)
    return fmt::format(
        "the wall clock is {} behind the last record, which is of {}. The server's time begins "
        "there and {}",
        format_span(gap), format_instant(last_record), remedy(-gap));
  if (gap < kLongGap) return std::nullopt;
  return fmt::format(
      "according to the wall clock, {} have passed since the last record, which is of {}: "
      "messages whose retention ended meanwhile expire now. If the wall clock is wrong, restore "
      "the last backup",
      format_span(gap), format_instant(last_record));
}

std::string refuse_gap(Instant last_record, Duration gap, Duration gap_max) {
  return fmt::format(
      "the wall clock is {} ahead of the last record, which is of {}, and clock.max_jump_forward "
      "allows {}. Nothing was changed. If the wall clock is wrong, correct it: messages would "
      "expire. If it is right, because the server was off for so long, start once with "
      "--clock-max-jump-forward 0s",
      format_span(gap), format_instant(last_record), format_span(gap_max));
}

}  // namespace stanchion::server
