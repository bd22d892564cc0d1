#include "base/prometheus_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace stanchion {
namespace {

constexpr double kMicrosPerSecond = 1e6;

std::string_view name_of(PrometheusText::Type type) {
  switch (type) {
    case PrometheusText::Type::kCounter:
      return "counter";
    case PrometheusText::Type::kGauge:
      return "gauge";
    case PrometheusText::Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

}  // namespace

void Labels::add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_ += name;
  text_ += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text_ += '\\';
    if (c == '\n') {
      text_ += "\\n";
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void PrometheusText::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                 name_of(type));
}

void PrometheusText::begin_line(std::string_view suffix, const Labels& labels,
                                std::string_view more) {
  text_ += name_;
  text_ += suffix;
  const bool both = !labels.text().empty() && !more.empty();
  if (!labels.text().empty() || !more.empty()) {
    text_ += '{';
    text_ += labels.text();
    if (both) text_ += ',';
    text_ += more;
    text_ += '}';
  }
  text_ += ' ';
}

void PrometheusText::sample(const Labels& labels, std::uint64_t value) {
  begin_line({}, labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

void PrometheusText::sample(const Labels& labels, double value) {
  begin_line({}, labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", value);
}

void PrometheusText::histogram(const Labels& labels, const LatencyCounts& counts) {
  std::array<double, LatencyCounts::kBounds.size()> bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i)
    bounds[i] = static_cast<double>(LatencyCounts::kBounds[i]) / kMicrosPerSecond;
  histogram(labels, bounds, counts.buckets, static_cast<double>(counts.micros) / kMicrosPerSecond);
}

void PrometheusText::histogram(const Labels& labels, std::span<const double> bounds,
                               std::span<const std::uint64_t> counts, double sum) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    begin_line("_bucket", labels,
               i == bounds.size() ? "le=\"+Inf\"" : fmt::format("le=\"{}\"", bounds[i]));
    fmt::format_to(std::back_inserter(text_), "{}\n", below);
  }
  begin_line("_sum", labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", sum);
  begin_line("_count", labels);
  fmt::format_to(std::back_inserter(text_), "{}\n", below);
}

}  // namespace stanchion
