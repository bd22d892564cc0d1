// When a queue needs more workers, and how many. Pure: figures in, advice out, no clock.
//
//   figures of a queue ─▶ LoadWatch ─▶ signals: more workers are needed, and why
//                    └──▶ ScalingAdvisor ─▶ a number of workers
//
// Neither is thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stanchion::worker {

// A queue and its workers at one moment. GetQueueAttributes and WorkerMetrics have all of it; where a
// queue has several workers, the figures of the workers are added up.
struct LoadFigures {
  std::chrono::milliseconds at{0};      // On any clock that is not set back.
  std::uint64_t visible = 0;            // ApproximateNumberOfMessages.
  std::uint64_t in_flight = 0;          // ApproximateNumberOfMessagesNotVisible.
  std::uint64_t completed = 0;          // Messages that have left the queue so far.
  std::chrono::milliseconds oldest{0};  // How old messages are when their handler begins.
};

// Why a queue needs more workers.
struct LoadSignals {
  bool arrival_faster = false;  // More messages arrive than are completed.
  bool in_flight_near_limit = false;
  bool too_old = false;

  bool any() const { return arrival_faster || in_flight_near_limit || too_old; }
  bool operator==(const LoadSignals&) const = default;
};

struct LoadOptions {
  // SQS refuses to hand out more than 120,000 messages of a queue at a time.
  std::uint64_t in_flight_limit = 120'000;
  double in_flight_share = 0.8;                // "Near": from this share on.
  std::chrono::milliseconds age_max{300'000};  // 0: any age will do.
  // The backlog must have grown in this many looks in a row, and by more than the noise of a queue
  // that is worked off as fast as it fills.
  int growing_looks = 3;
  std::uint64_t growth_min = 100;
};

class LoadWatch {
 public:
  explicit LoadWatch(LoadOptions options = {}) : options_(options) {}

  LoadSignals look(const LoadFigures& figures);

 private:
  LoadOptions options_;
  std::uint64_t last_backlog_ = 0;
  std::uint64_t grown_from_ = 0;  // The backlog at the beginning of its growth.
  int growing_ = 0;
  bool first_ = true;
};

struct ScalingOptions {
  std::size_t workers_min = 1;
  std::size_t workers_max = 100;
  // What one worker completes a second at its best: its concurrency divided by the duration of a job.
  double per_worker = 10;
  // The share of that which workers are meant to be busy, so that a queue does not grow by chance.
  double utilisation = 0.8;
  // How soon a backlog is to be worked off.
  std::chrono::milliseconds drain_within{300'000};
  // At most this many times as many workers by one piece of advice.
  double growth_max = 2;
  // Workers are given up only if this share of them was enough for so long.
  double shrink_share = 0.8;
  std::chrono::milliseconds shrink_after{300'000};
};

struct ScalingAdvice {
  std::size_t workers = 0;
  std::string reason = {};  // For people: "grows: 120.0 messages/s arrive, 4000 wait".
};

class ScalingAdvisor {
 public:
  explicit ScalingAdvisor(ScalingOptions options) : options_(options) {}

  // How many workers there should be from now on. To be asked regularly, every 5 to 60 seconds;
  // `workers` is how many there are, or are being started.
  ScalingAdvice advise(const LoadFigures& figures, std::size_t workers);

  // Messages a second, smoothed over some looks.
  double arrival_rate() const { return arrival_; }

 private:
  struct Need {
    std::chrono::milliseconds at;
    std::size_t workers;
  };

  void measure_arrival(const LoadFigures& figures);
  std::size_t needed(const LoadFigures& figures) const;
  // The most that was needed within shrink_after; nothing if that time has not passed.
  std::optional<std::size_t> needed_lately(std::chrono::milliseconds now) const;

  ScalingOptions options_;
  std::optional<LoadFigures> last_;
  double arrival_ = 0;
  std::vector<Need> needs_;  // In order of time, those within shrink_after and one before.
};

}  // namespace stanchion::worker
