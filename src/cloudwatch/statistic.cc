#include "cloudwatch/statistic.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace stanchion::cloudwatch {
namespace {

using history::Bucket;

// The least value that is not exceeded by more than the rest of the values.
double percentile_of(const Bucket& bucket, double percent) {
  std::vector<std::pair<double, std::uint64_t>> sorted = bucket.spread;
  std::ranges::sort(sorted);
  std::uint64_t all = 0;
  for (const auto& [value, weight] : sorted) all += weight;
  const double rank = std::ceil(percent / 100 * static_cast<double>(all));
  std::uint64_t seen = 0;
  for (const auto& [value, weight] : sorted) {
    seen += weight;
    if (static_cast<double>(seen) >= rank) return value;
  }
  return sorted.empty() ? 0 : sorted.back().first;
}

}  // namespace

std::optional<Statistic::Kind> Statistic::kind_of(std::string_view name) {
  if (name == "SampleCount") return Kind::kSampleCount;
  if (name == "Average") return Kind::kAverage;
  if (name == "Sum") return Kind::kSum;
  if (name == "Minimum") return Kind::kMinimum;
  if (name == "Maximum") return Kind::kMaximum;
  return std::nullopt;
}

bool Statistic::is_simple(std::string_view name) {
  return kind_of(name).has_value();
}

std::optional<Statistic> Statistic::parse(std::string_view name) {
  if (const auto kind = kind_of(name)) return Statistic(*kind);
  if (name.size() < 2 || name.front() != 'p') return std::nullopt;
  const char* const end = name.data() + name.size();
  double percent = 0;
  const auto [stop, problem] =
      std::from_chars(name.data() + 1, end, percent, std::chars_format::fixed);
  if (problem != std::errc() || stop != end || !(percent >= 0) || percent > 100)
    return std::nullopt;
  return Statistic(Kind::kPercentile, percent);
}

double Statistic::of(const Bucket& bucket) const {
  switch (kind_) {
    case Kind::kSampleCount:
      return static_cast<double>(bucket.samples);
    case Kind::kAverage:
      return static_cast<double>(bucket.sum) / static_cast<double>(bucket.samples);
    case Kind::kSum:
      return static_cast<double>(bucket.sum);
    case Kind::kMinimum:
      return static_cast<double>(bucket.min);
    case Kind::kMaximum:
      return static_cast<double>(bucket.max);
    case Kind::kPercentile:
      return percentile_of(bucket, percent_);
  }
  return 0;
}

}  // namespace stanchion::cloudwatch
