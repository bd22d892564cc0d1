// The figures of a worker and of its queues, told from time to time.
#include <utility>

#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

constexpr const char* kVisible = "ApproximateNumberOfMessages";
constexpr const char* kInFlight = "ApproximateNumberOfMessagesNotVisible";

}  // namespace

std::optional<Instant> Worker::Impl::measure_if_due(Instant now) {
  if ((!options_.on_metrics && !options_.watch_load) || loop_.is_stopping()) return std::nullopt;
  if (now < metrics_due_) return metrics_due_;
  metrics_due_ = now + options_.metrics_every;
  if (!options_.watch_load) {
    tell_metrics();
    return metrics_due_;
  }
  for (const auto& source : sources_) {
    // The answers to a server that is slow are not asked for twice.
    if (std::exchange(source->measuring, true)) continue;
    client_.get_queue_attributes(
        {.queue_url = source->options.url, .attribute_names = {kVisible, kInFlight}},
        counted(*source, [this, &source = *source](
                             const client::Outcome<client::GetQueueAttributesResult>& outcome) {
          source.measuring = false;
          measured(source, outcome);
        }));
  }
  return metrics_due_;
}

void Worker::Impl::measured(Source& source,
                            const client::Outcome<client::GetQueueAttributesResult>& outcome) {
  source.metrics.measured = static_cast<bool>(outcome);
  if (!outcome) {
    if (!loop_.is_stopping())
      report(source, "cannot read the figures of the queue: " + outcome.error().to_string());
  } else {
    QueueMetrics& metrics = source.metrics;
    metrics.visible = static_cast<std::uint64_t>(number_in(outcome->attributes, kVisible, 0));
    metrics.in_flight = static_cast<std::uint64_t>(number_in(outcome->attributes, kInFlight, 0));
    metrics.oldest_seconds = static_cast<double>(source.oldest.count()) / 1000;
    metrics.signals =
        source.load.look({.at = Clock::now().time_since_epoch(),
                          .visible = metrics.visible,
                          .in_flight = metrics.in_flight,
                          .completed = metrics.done + metrics.rejected + metrics.paused,
                          .oldest = std::exchange(source.oldest, std::chrono::milliseconds(0))});
  }
  for (const auto& each : sources_)
    if (each->measuring) return;
  tell_metrics();
}

void Worker::Impl::tell_metrics() {
  if (!options_.on_metrics) return;
  loop_.tell([this, metrics = collect_metrics()] { options_.on_metrics(metrics); });
}

WorkerMetrics Worker::Impl::collect_metrics() const {
  WorkerMetrics metrics;
  for (const auto& source : sources_) {
    QueueMetrics& queue = metrics.queues.emplace_back(source->metrics);
    const ConsumerFigures& figures = source->consumer->figures();
    queue.received = figures.received;
    queue.redelivered = figures.redelivered;
    queue.damaged = figures.damaged;
    queue.extended = figures.extended;
    queue.given_back = figures.given_back;
    queue.lost = figures.lost;
    queue.in_hand = source->hand.size();
    queue.running = source->running.size();
  }
  return metrics;
}

}  // namespace stanchion::worker
