// Looks from time to time at the figures of a worker's queues, and tells when there is something new.
//
//   every period ─▶ GetQueueAttributes of each queue ─▶ signals ─▶ told, when all have answered
//
// With the mutex of the loop, all functions.
//
//   LO1  A queue is asked once at a time: a server that is slow is not asked again before it answers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "worker/scaling.h"
#include "worker/task.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// What the last look at a queue has found; nothing, unless it was `measured`.
struct QueueLoad {
  bool measured = false;
  std::uint64_t visible = 0;
  std::uint64_t in_flight = 0;
  double oldest_seconds = 0;
  LoadSignals signals = {};
};

struct LoadReporterOptions {
  bool tells = false;        // There is somebody who wants to know.
  bool asks_queues = false;  // The queues are asked before.
  std::chrono::milliseconds every{10'000};
};

class LoadReporter {
 public:
  struct Outside {
    std::function<std::uint64_t(std::size_t queue)>
        completed;  // Messages that have left it so far.
    std::function<void(std::size_t queue, const std::string& what)> report;
    std::function<void()> tell;
  };

  LoadReporter(client::Client& client, WorkerLoop& loop, LoadReporterOptions options,
               Outside outside);

  // Queues are numbered from 0 on.
  void add(const std::string& queue_url, const LoadOptions& options);
  // A handler begins with a message of that age.
  void began(std::size_t queue, std::chrono::milliseconds age);
  // Looks if it is time; when to call it next.
  std::optional<Instant> tick(Instant now);
  const QueueLoad& load(std::size_t queue) const { return queues_.at(queue).load; }

 private:
  struct Queue {
    std::string url;
    LoadWatch watch;
    std::chrono::milliseconds oldest{0};  // Of the messages that have begun since the last look.
    bool asked = false;
    QueueLoad load = {};
  };
  using Attributes = client::Outcome<client::GetQueueAttributesResult>;

  void ask(std::size_t queue);
  void answered(std::size_t queue, const Attributes& attributes);

  client::Client& client_;
  WorkerLoop& loop_;
  const LoadReporterOptions options_;
  const Outside outside_;
  std::vector<Queue> queues_;
  std::size_t asked_ = 0;  // Queues whose answers are to come.
  Instant due_{};
};

}  // namespace stanchion::worker
