#include "worker/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/prometheus_text.h"

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
    {"paused", "Messages moved to the paused queue.", &QueueMetrics::paused},
    {"published", "Results of jobs that were acknowledged.", &QueueMetrics::published},
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
    {"in_flight", "Messages received and not settled.", &QueueMetrics::in_flight},
    {"running", "Handlers that have not returned.", &QueueMetrics::running},
};

struct Signal {
  std::string_view name;
  std::string_view help;
  bool LoadSignals::*member;
};
constexpr Signal kSignals[] = {
    {"needs_more_arrival", "1: more messages arrive than are completed.",
     &LoadSignals::arrival_faster},
    {"needs_more_in_flight", "1: nearly as many messages are in flight as SQS allows.",
     &LoadSignals::in_flight_near_limit},
    {"needs_more_age", "1: messages are too old when their handler begins.", &LoadSignals::too_old},
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

}  // namespace

void Histogram::add(double seconds) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  ++count;
  sum += seconds;
}

std::string WorkerMetrics::to_prometheus() const {
  using Type = PrometheusText::Type;
  PrometheusText text;
  const auto each = [&](std::string_view name, Type type, std::string_view help, auto&& write) {
    text.family(fmt::format("stanchion_worker_{}", name), type, help);
    for (const QueueMetrics& queue : queues) write(Labels{{"queue", queue.queue_url}}, queue);
  };
  const auto each_measured = [&](std::string_view name, std::string_view help, auto&& value_of) {
    each(name, Type::kGauge, help, [&](const Labels& labels, const QueueMetrics& queue) {
      if (queue.measured) text.sample(labels, std::uint64_t{value_of(queue)});
    });
  };
  for (const Counter& counter : kCounters)
    each(fmt::format("{}_total", counter.name), Type::kCounter, counter.help,
         [&](const Labels& labels, const QueueMetrics& queue) {
           text.sample(labels, queue.*counter.member);
         });
  for (const Gauge& gauge : kGauges)
    each(gauge.name, Type::kGauge, gauge.help,
         [&](const Labels& labels, const QueueMetrics& queue) {
           text.sample(labels, std::uint64_t{queue.*gauge.member});
         });
  for (const Signal& signal : kSignals)
    each_measured(signal.name, signal.help, [&](const QueueMetrics& queue) {
      return queue.signals.*signal.member ? 1U : 0U;
    });
  each_measured("queue_visible", "Messages of the queue that wait.",
                [](const QueueMetrics& queue) { return queue.queue_visible; });
  each_measured("queue_in_flight", "Messages of the queue that all its workers have in flight.",
                [](const QueueMetrics& queue) { return queue.queue_in_flight; });
  for (const Spread& spread : kSpreads)
    each(spread.name, Type::kHistogram, spread.help,
         [&](const Labels& labels, const QueueMetrics& queue) {
           const Histogram& histogram = queue.*spread.member;
           text.histogram(labels, Histogram::kBounds, histogram.counts, histogram.sum);
         });
  return text.take();
}

}  // namespace stanchion::worker
