#include "worker/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace stanchion::worker {
namespace {

struct Counter {
  std::string_view name;
  std::string_view help;
  std::uint64_t QueueMetrics::*member;
};
constexpr Counter kCounters[] = {
    {"received", "Messages received.", &QueueMetrics::received},
    {"redelivered", "Messages received that had been received before.", &QueueMetrics::redelivered},
    {"done", "Messages deleted after their handler was done.", &QueueMetrics::done},
    {"retried", "Messages put back because their handler failed.", &QueueMetrics::retried},
    {"thrown", "Handlers that threw an exception.", &QueueMetrics::thrown},
    {"rejected", "Messages sent to another queue and deleted.", &QueueMetrics::rejected},
    {"given_back", "Messages put back without an outcome of their own.", &QueueMetrics::given_back},
    {"lost", "Messages no longer held before their job ended.", &QueueMetrics::lost},
    {"extended", "Extensions of visibility.", &QueueMetrics::extended},
    {"damaged", "Messages received whose MD5 does not match.", &QueueMetrics::damaged},
    {"errors", "Calls that failed.", &QueueMetrics::errors},
};

struct Gauge {
  std::string_view name;
  std::string_view help;
  std::size_t QueueMetrics::*member;
};
constexpr Gauge kGauges[] = {
    {"in_hand", "Messages received and not settled.", &QueueMetrics::in_hand},
    {"running", "Handlers that have not returned.", &QueueMetrics::running},
};

struct Spread {
  std::string_view name;
  std::string_view help;
  Histogram QueueMetrics::*member;
};
constexpr Spread kSpreads[] = {
    {"duration_seconds", "How long handlers took.", &QueueMetrics::duration},
    {"age_seconds", "From the send to the beginning of the handler.", &QueueMetrics::age},
};

std::string label(const QueueMetrics& queue) {
  std::string escaped;
  for (const char c : queue.queue_url) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n')
      escaped += "\\n";
    else
      escaped += c;
  }
  return fmt::format("queue=\"{}\"", escaped);
}

void describe(std::string& text, std::string_view name, std::string_view help,
              std::string_view type) {
  text += fmt::format("# HELP stanchion_worker_{} {}\n# TYPE stanchion_worker_{} {}\n", name, help,
                      name, type);
}

void write(std::string& text, std::string_view name, const std::string& queue,
           const Histogram& histogram) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    below += histogram.counts[i];
    text += fmt::format("stanchion_worker_{}_bucket{{{},le=\"{}\"}} {}\n", name, queue,
                        Histogram::kBounds[i], below);
  }
  text += fmt::format(
      "stanchion_worker_{0}_bucket{{{1},le=\"+Inf\"}} {2}\n"
      "stanchion_worker_{0}_sum{{{1}}} {3}\nstanchion_worker_{0}_count{{{1}}} {2}\n",
      name, queue, histogram.count, histogram.sum);
}

}  // namespace

void Histogram::add(double seconds) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  ++count;
  sum += seconds;
}

std::string WorkerMetrics::to_prometheus() const {
  std::string text;
  for (const Counter& counter : kCounters) {
    describe(text, fmt::format("{}_total", counter.name), counter.help, "counter");
    for (const QueueMetrics& queue : queues)
      text += fmt::format("stanchion_worker_{}_total{{{}}} {}\n", counter.name, label(queue),
                          queue.*counter.member);
  }
  for (const Gauge& gauge : kGauges) {
    describe(text, gauge.name, gauge.help, "gauge");
    for (const QueueMetrics& queue : queues)
      text += fmt::format("stanchion_worker_{}{{{}}} {}\n", gauge.name, label(queue),
                          queue.*gauge.member);
  }
  for (const Spread& spread : kSpreads) {
    describe(text, spread.name, spread.help, "histogram");
    for (const QueueMetrics& queue : queues)
      write(text, spread.name, label(queue), queue.*spread.member);
  }
  return text;
}

}  // namespace stanchion::worker
