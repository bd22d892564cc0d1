// What a worker has done, as numbers and as Prometheus text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/scaling.h"

namespace stanchion::worker {

// Seconds, by upper bound.
struct Histogram {
  static constexpr std::array<double, 10> kBounds{0.001, 0.01, 0.1, 0.5, 1, 5, 30, 60, 600, 3600};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  std::uint64_t count = 0;
  double sum = 0;

  void add(double seconds);
};

struct QueueMetrics {
  std::string queue_url = {};
  std::uint64_t received = 0;
  std::uint64_t redelivered = 0;  // Of these, with a receive count above 1.
  std::uint64_t done = 0;         // Deleted after their handler was done.
  std::uint64_t retried = 0;      // Back in the queue because their handler said so or threw.
  std::uint64_t thrown = 0;       // Handlers that threw.
  std::uint64_t rejected = 0;     // Sent to another queue and deleted.
  std::uint64_t paused = 0;       // Moved to the paused queue.
  std::uint64_t published = 0;    // Results that were acknowledged.
  std::uint64_t given_back = 0;   // Back in the queue without an outcome of their own.
  std::uint64_t lost = 0;         // No longer held, although the job had not ended.
  std::uint64_t extended = 0;     // Extensions of visibility that were acknowledged.
  std::uint64_t damaged = 0;      // Left in the queue, because their MD5 does not match.
  std::uint64_t errors = 0;       // Calls that failed.
  std::size_t in_flight = 0;      // Received and not settled.
  std::size_t running = 0;        // Of these, with a handler that has not returned.
  // Of the queue and all its workers, with WorkerOptions::watch_load; known if `measured`. Nobody
  // must take a figure that was not read for 0.
  bool measured = false;
  std::uint64_t queue_visible = 0;
  std::uint64_t queue_in_flight = 0;
  double oldest_seconds = 0;  // The age of the oldest message that was begun with lately.
  LoadSignals signals = {};   // Why the queue needs more workers.
  Histogram duration = {};    // Of handlers.
  Histogram age = {};         // From the send to the beginning of the handler.
};

struct WorkerMetrics {
  std::vector<QueueMetrics> queues = {};

  // The text format of Prometheus; names begin with stanchion_worker_.
  std::string to_prometheus() const;
};

}  // namespace stanchion::worker
