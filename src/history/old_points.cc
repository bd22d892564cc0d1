#include "history/old_points.h"

#include "history/keys.h"

namespace stanchion::history {
namespace {

// Points that one step reads: some milliseconds, after which others have their turn, and some
// megabytes while they are merged.
constexpr std::size_t kPointsAtOnce = 20'000;

}  // namespace

Result<std::optional<std::int64_t>> OldPoints::first_day(char kind) const {
  std::optional<std::int64_t> day;
  const KeyRange all{std::string(1, kind), std::string(1, static_cast<char>(kind + 1))};
  const Status scanned = store_.scan(all, [&](std::string_view key, std::string_view) {
    if (key.size() == kPointKeySize) day = parse_point_key(key).day;
    return !day;
  });
  if (!scanned) return std::unexpected(scanned.error());
  return day;
}

// A day of some queues may have been merged before: a process that starts after weeks puts what the
// last one had not written into the minute behind the last one that it wrote.
Status OldPoints::add_five_minutes(std::int64_t day, Merged& merged) const {
  if (merged.empty()) return {};
  const KeyRange range{point_key(kFiveKind, day, merged.begin()->first.first, 0),
                       point_key(kFiveKind, day, merged.rbegin()->first.first + 1, 0)};
  return store_.scan(range, [&](std::string_view key, std::string_view value) {
    if (key.size() != kPointKeySize) return true;
    const PointName name = parse_point_key(key);
    const auto at = merged.find({name.number, name.of_day});
    const auto earlier = at == merged.end() ? std::nullopt : decode_point(value);
    if (earlier) at->second.add_other_minutes(*earlier);
    return true;
  });
}

// Merges the points of whole queues, and erases what it has merged in the same commit: a crash
// leaves each queue's day in one form or the other.
Status OldPoints::merge_some(std::int64_t day) {
  Batch batch;
  std::size_t points = 0;
  std::optional<std::uint32_t> current;
  std::optional<std::uint32_t> first_left;
  Merged merged;
  const KeyRange all{day_key(kMinuteKind, day), day_key(kMinuteKind, day + 1)};
  const Status scanned = store_.scan(all, [&](std::string_view key, std::string_view value) {
    if (key.size() != kPointKeySize) return true;
    const PointName name = parse_point_key(key);
    if (name.number != current && points >= kPointsAtOnce) {
      first_left = name.number;
      return false;
    }
    current = name.number;
    ++points;
    auto point = decode_point(value);
    if (!point) return true;
    const auto [at, is_new] =
        merged.try_emplace({name.number, name.of_day / kMinutesOfFive}, *point);
    if (!is_new) at->second.add_other_minutes(*point);
    return true;
  });
  if (!scanned) return std::unexpected(scanned.error());
  RETURN_IF_FAILED(add_five_minutes(day, merged));
  for (const auto& [of, point] : merged)
    batch.puts.push_back(
        {Key(point_key(kFiveKind, day, of.first, of.second)), encode(point), nullptr});
  const std::string end = first_left ? point_key(kMinuteKind, day, *first_left, 0) : all.end;
  batch.erased_ranges.push_back({all.begin, end});
  return store_.commit(batch);
}

Status OldPoints::erase_five_minutes(std::int64_t last_day) {
  Batch batch;
  batch.erased_ranges.push_back({std::string(1, kFiveKind), day_key(kFiveKind, last_day + 1)});
  return store_.commit(batch);
}

}  // namespace stanchion::history
