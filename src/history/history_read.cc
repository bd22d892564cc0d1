// Reading the history: the points of one queue, brought together by period.
#include <algorithm>

#include "history/history.h"
#include "history/keys.h"
#include "history/old_points.h"

namespace stanchion::history {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1);
// To find the first point of a day takes as long as to read so many.
constexpr std::uint64_t kPointsADay = 16;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

Instant period_begin(const Reading& reading, Instant at) {
  return reading.origin +
         reading.period * floor_div((at - reading.origin).count(), reading.period.count());
}

// The sizes of a bucket are spread evenly over it, as far as they lie between the smallest and the
// largest. Four values stand for a bucket: more would not say more.
void add_spread(Bucket& bucket, const SizeDistribution& sizes) {
  constexpr std::uint64_t kParts = 4;
  for (const SizeDistribution::Bucket& one : sizes.buckets()) {
    const auto low =
        static_cast<double>(std::max(sizes.min(), SizeDistribution::lower_end(one.index)));
    const auto high =
        static_cast<double>(std::min(sizes.max(), SizeDistribution::lower_end(one.index + 1) - 1));
    const std::uint64_t parts = low == high ? 1 : std::min<std::uint64_t>(kParts, one.count);
    for (std::uint64_t i = 0; i < parts; ++i) {
      const double share =
          parts == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(parts - 1);
      const std::uint64_t weight = one.count / parts + (i < one.count % parts ? 1 : 0);
      bucket.spread.emplace_back(low + (high - low) * share, weight);
    }
  }
}

void add_sizes(Bucket& bucket, const Point& point, bool with_spread) {
  const std::uint64_t sent = point.of(Metric::kNumberOfMessagesSent).sum;
  const std::uint64_t bytes = point.of(Metric::kSentMessageSize).sum;
  if (sent == 0) return;
  // Without a distribution all are taken to be as large as the mean.
  const std::uint64_t mean = bytes / sent;
  const std::uint64_t min = point.sizes.empty() ? mean : point.sizes.min();
  const std::uint64_t max = point.sizes.empty() ? mean : point.sizes.max();
  bucket.min = bucket.samples == 0 ? min : std::min(bucket.min, min);
  bucket.max = bucket.samples == 0 ? max : std::max(bucket.max, max);
  bucket.samples += sent;
  bucket.sum += bytes;
  if (!with_spread) return;
  if (point.sizes.empty())
    bucket.spread.emplace_back(static_cast<double>(mean), sent);
  else
    add_spread(bucket, point.sizes);
}

void add_values(Bucket& bucket, const Values& values, std::uint32_t minutes, bool with_spread) {
  if (minutes == 0) return;
  bucket.min = bucket.samples == 0 ? values.min : std::min(bucket.min, values.min);
  bucket.max = bucket.samples == 0 ? values.max : std::max(bucket.max, values.max);
  bucket.samples += minutes;
  bucket.sum += values.sum;
  if (!with_spread) return;
  bucket.spread.emplace_back(static_cast<double>(values.min), 1);
  if (minutes > 1) bucket.spread.emplace_back(static_cast<double>(values.max), 1);
  if (minutes > 2)
    bucket.spread.emplace_back(
        static_cast<double>(values.sum - values.min - values.max) / (minutes - 2), minutes - 2);
}

void add_point(Bucket& bucket, const Reading& reading, const Point& point) {
  if (reading.metric == Metric::kSentMessageSize)
    return add_sizes(bucket, point, reading.with_spread);
  const bool fair = info_of(reading.metric).whose == Whose::kFair;
  add_values(bucket, point.of(reading.metric), fair ? point.fair_minutes : point.minutes,
             reading.with_spread);
}

// Values that occurred several times become one. Points of messages have most of theirs in common, so
// that the spread of any time takes little.
void join_equal(Bucket& bucket) {
  auto& spread = bucket.spread;
  std::ranges::sort(spread);
  std::size_t kept = 0;
  for (std::size_t i = 1; i < spread.size(); ++i) {
    if (spread[i].first == spread[kept].first)
      spread[kept].second += spread[i].second;
    else
      spread[++kept] = spread[i];
  }
  spread.resize(std::min(spread.size(), kept + 1));
}

// Brings points together in buckets.
class Buckets {
 public:
  Buckets(const Reading& reading, const History::BucketVisitor& visit)
      : reading_(reading), visit_(visit) {}

  void add(Instant at, const Point& point) {
    const Instant begin = period_begin(reading_, at);
    if (!open_ || open_->at != begin) {
      close();
      open_ = Bucket{.at = begin};
      spread_max_ = kSpreadMin;
    }
    add_point(*open_, reading_, point);
    if (open_->spread.size() <= spread_max_) return;
    join_equal(*open_);
    spread_max_ = std::max(kSpreadMin, 2 * open_->spread.size());
  }
  void close() {
    if (open_ && open_->samples > 0) visit_(*open_);
    open_.reset();
  }

 private:
  static constexpr std::size_t kSpreadMin = 4096;

  const Reading& reading_;
  const History::BucketVisitor& visit_;
  std::optional<Bucket> open_;
  std::size_t spread_max_ = kSpreadMin;  // When equal values are joined.
};

bool has_metric(const QueueRef& queue, Metric metric) {
  const Whose whose = info_of(metric).whose;
  return whose == Whose::kAll || (whose == Whose::kFifo) == is_fifo_name(queue.name);
}

}  // namespace

Status History::read(const Reading& reading, const BucketVisitor& visit) const {
  const auto found = queues_.find(reading.queue);
  if (found == queues_.end() || !has_metric(reading.queue, reading.metric)) return {};
  Buckets buckets(reading, visit);
  const std::uint32_t number = found->second.number;
  // No point is later, so nobody has to look for days that have not come.
  const Instant until = std::min(reading.until, begin_of(found->second.last_minute) + kMinute);
  const Instant from = std::max(reading.from, Instant());

  const auto scan_days = [&](char kind, Minute minutes_each) -> Status {
    if (from >= until) return {};
    auto first = OldPoints(*store_).first_day(kind);
    if (!first) return std::unexpected(std::move(first).error());
    if (!*first) return {};
    const std::int64_t last = day_of(minute_of(until - Duration(1)));
    for (std::int64_t day = std::max(**first, day_of(minute_of(from))); day <= last; ++day) {
      const KeyRange range{point_key(kind, day, number, 0), point_key(kind, day, number + 1, 0)};
      points_read_ += kPointsADay;
      RETURN_IF_FAILED(store_->scan(range, [&](std::string_view key, std::string_view value) {
        ++points_read_;
        if (key.size() != kPointKeySize) return true;
        const Minute minute = day * kMinutesADay + parse_point_key(key).of_day * minutes_each;
        const Instant at = begin_of(minute);
        if (at < from) return true;
        if (at >= until) return false;
        const auto point = decode_point(value);
        if (!point) return true;
        buckets.add(at, *point);
        return true;
      }));
    }
    return {};
  };
  // All points of five minutes are of earlier days than any point of a minute.
  if (reading.period % (kMinutesOfFive * kMinute) == Duration(0))
    RETURN_IF_FAILED(scan_days(kFiveKind, kMinutesOfFive));
  RETURN_IF_FAILED(scan_days(kMinuteKind, 1));
  buckets.close();
  return {};
}

}  // namespace stanchion::history
