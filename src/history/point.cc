#include "history/point.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace stanchion::history {
namespace {

// A day: points are never longer.
constexpr std::uint64_t kMinutesMax = 1'440;

void write_sizes(ByteWriter& writer, const SizeDistribution& sizes) {
  writer.varint(sizes.buckets().size());
  if (sizes.empty()) return;
  writer.varint(sizes.min());
  writer.varint(sizes.max() - sizes.min());
  std::uint32_t before = 0;
  for (const SizeDistribution::Bucket& bucket : sizes.buckets()) {
    writer.varint(bucket.index - before);
    writer.varint(bucket.count);
    before = bucket.index;
  }
}

bool read_sizes(ByteReader& reader, SizeDistribution& sizes) {
  const std::size_t count = reader.count();
  if (count == 0) return reader.ok();
  const std::uint64_t min = reader.varint();
  const std::uint64_t width = reader.varint();
  if (count > SizeDistribution::kBuckets || width > UINT64_MAX - min) return false;
  std::vector<SizeDistribution::Bucket> buckets;
  std::uint64_t index = 0;
  for (std::size_t i = 0; i < count; ++i) {
    index += std::min<std::uint64_t>(reader.varint(), SizeDistribution::kBuckets);
    const std::uint64_t messages = reader.varint();
    if (messages > UINT32_MAX) return false;
    buckets.push_back({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(messages)});
  }
  return reader.ok() && SizeDistribution::make(min, min + width, std::move(buckets), sizes);
}

}  // namespace

void Point::add_same_minute(const Point& later) {
  fair_minutes = std::max(fair_minutes, later.fair_minutes);
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    const std::uint64_t sum =
        kMetrics[i].is_gauge ? later.values[i].sum : values[i].sum + later.values[i].sum;
    values[i] = {sum, sum, sum};
  }
  // Both may have been read from the same count, so they are not added.
  if (later.sizes.count() > sizes.count()) sizes = later.sizes;
}

void Point::add_other_minutes(const Point& other) {
  minutes += other.minutes;
  fair_minutes += other.fair_minutes;
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    values[i].sum += other.values[i].sum;
    values[i].min = std::min(values[i].min, other.values[i].min);
    values[i].max = std::max(values[i].max, other.values[i].max);
  }
  if (!other.sizes.empty()) sizes.add(other.sizes);
}

std::string encode(const Point& point) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.varint(point.minutes);
  writer.varint(point.fair_minutes);
  std::uint64_t present = 0;
  for (std::size_t i = 0; i < kMetricCount; ++i)
    if (point.values[i] != Values()) present |= std::uint64_t{1} << i;
  writer.varint(present);
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    if ((present >> i & 1) == 0) continue;
    const Values& values = point.values[i];
    writer.varint(values.sum);
    if (point.minutes == 1) continue;
    writer.varint(values.min);
    writer.varint(values.max - values.min);
  }
  if ((present >> index_of(Metric::kSentMessageSize) & 1) != 0) write_sizes(writer, point.sizes);
  return bytes;
}

std::optional<Point> decode_point(std::string_view bytes) {
  ByteReader reader(bytes);
  Point point;
  const std::uint64_t minutes = reader.varint();
  const std::uint64_t fair = reader.varint();
  const std::uint64_t present = reader.varint();
  if (minutes == 0 || minutes > kMinutesMax || fair > minutes) return std::nullopt;
  if (present >> kMetricCount != 0) return std::nullopt;
  point.minutes = static_cast<std::uint32_t>(minutes);
  point.fair_minutes = static_cast<std::uint32_t>(fair);
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    if ((present >> i & 1) == 0) continue;
    Values& values = point.values[i];
    values.sum = values.min = values.max = reader.varint();
    if (minutes > 1) {
      values.min = reader.varint();
      const std::uint64_t width = reader.varint();
      if (width > UINT64_MAX - values.min) return std::nullopt;
      values.max = values.min + width;
    }
    if (values == Values()) return std::nullopt;  // It would not have been written.
  }
  const bool sized = (present >> index_of(Metric::kSentMessageSize) & 1) != 0;
  if (sized && !read_sizes(reader, point.sizes)) return std::nullopt;
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return point;
}

}  // namespace stanchion::history
