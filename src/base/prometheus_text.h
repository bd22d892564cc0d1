// Metrics as Prometheus reads them: its text format, version 0.0.4.
//
//   # HELP stanchion_messages_sent_total Messages that clients sent.
//   # TYPE stanchion_messages_sent_total counter
//   stanchion_messages_sent_total{account="000000000000",region="us-east-1",queue="orders"} 42
//
// All samples of a family stand together, behind its head.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/latency.h"

namespace stanchion {

// Labels as they stand between the braces; made once for all samples of a queue.
class Labels {
 public:
  using Pair = std::pair<std::string_view, std::string_view>;

  Labels() = default;
  Labels(std::initializer_list<Pair> pairs) {
    std::size_t size = 0;
    for (const auto& [name, value] : pairs) size += name.size() + value.size() + 4;
    text_.reserve(size);
    for (const auto& [name, value] : pairs) add(name, value);
  }
  // Any value: what would end it is escaped.
  void add(std::string_view name, std::string_view value);
  std::string_view text() const { return text_; }

 private:
  std::string text_;
};

class PrometheusText {
 public:
  enum class Type { kCounter, kGauge, kHistogram };

  // Begins a family. `help` is one line without a backslash.
  void family(std::string_view name, Type type, std::string_view help);
  // Goes on with a family whose head was written to another text before this one.
  void go_on_with(std::string_view name) { name_ = name; }

  void sample(const Labels& labels, std::uint64_t value);
  void sample(const Labels& labels, double value);
  // Of a family that is a histogram; in seconds.
  void histogram(const Labels& labels, const LatencyCounts& counts);
  // `counts` has one more than `bounds`, for all above them.
  void histogram(const Labels& labels, std::span<const double> bounds,
                 std::span<const std::uint64_t> counts, double sum);

  std::size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }

 private:
  void begin_line(std::string_view suffix, const Labels& labels, std::string_view more = {});

  std::string name_;
  std::string text_;
};

}  // namespace stanchion
