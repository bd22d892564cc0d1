// A statistic of CloudWatch by its name: "Sum", "p99.9", …
#pragma once

#include <optional>
#include <string_view>

#include "history/history.h"

namespace stanchion::cloudwatch {

class Statistic {
 public:
  // nullopt if it is none that is known here.
  static std::optional<Statistic> parse(std::string_view name);
  // SampleCount, Average, Sum, Minimum or Maximum.
  static bool is_simple(std::string_view name);

  // Whether it needs the spread of a bucket.
  bool is_percentile() const { return kind_ == Kind::kPercentile; }

  double of(const history::Bucket& bucket) const;

 private:
  enum class Kind { kSampleCount, kAverage, kSum, kMinimum, kMaximum, kPercentile };
  explicit Statistic(Kind kind, double percent = 0) : kind_(kind), percent_(percent) {}

  static std::optional<Kind> kind_of(std::string_view name);

  Kind kind_;
  double percent_;
};

}  // namespace stanchion::cloudwatch
