#include "engine/move_task.h"

#include <algorithm>

#include "model/dates.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1'000'000;

// Unused rate is lost after this long, so that a pause is not followed by a burst.
constexpr std::int64_t kCatchUpMicrosMax = kMicrosPerSecond / 10;

std::int64_t to_micros(Instant t) {
  return to_millis(t) * 1'000;
}

}  // namespace

bool MoveTask::is_possible() const {
  return status >= MoveTaskStatus::kRunning && status <= MoveTaskStatus::kFailed &&
         is_date(started) && is_date(from_millis(next_micros / 1'000)) && max_per_second >= 0 &&
         max_per_second <= limits::kMoveRateMax &&
         (destination_arn.empty() || parse_queue_arn(destination_arn).has_value());
}

bool MoveTask::wants_more() const {
  return in_transit < limits::kMoveTaskInTransitMax && moved + in_transit < to_move;
}

std::uint64_t MoveTask::allowed(Instant now) const {
  const std::uint64_t room = limits::kMoveTaskInTransitMax -
                             std::min<std::uint64_t>(in_transit, limits::kMoveTaskInTransitMax);
  const std::uint64_t left = to_move - std::min(to_move, moved + in_transit);
  if (max_per_second == 0) return std::min(room, left);
  if (to_micros(now) < next_micros) return 0;
  const std::int64_t late = std::min(to_micros(now) - next_micros, kCatchUpMicrosMax);
  const auto paced = static_cast<std::uint64_t>(1 + late * max_per_second / kMicrosPerSecond);
  return std::min({room, left, paced});
}

void MoveTask::went(std::uint64_t count, Instant now) {
  in_transit += count;
  if (max_per_second == 0 || count == 0) return;
  next_micros = std::max(next_micros, to_micros(now) - kCatchUpMicrosMax) +
                static_cast<std::int64_t>(count) * kMicrosPerSecond / max_per_second;
}

Instant MoveTask::next_allowed() const {
  return from_millis((next_micros + 999) / 1'000);
}

}  // namespace stanchion::engine
