// Keeps the messages of running jobs invisible to others: a set ordered by end of visibility.
//
//   add ─▶ held ─every half period, if the end is within the window─▶ extending ─▶ held
//            │                                                           │
//            └─ remove: the job has ended        refused, 12 hours, too late ─▶ lost: the job is told
//
// A short visibility gives quick redelivery after a crash of the worker; the extensions keep a long
// job from being delivered twice. The monitor has no clock and no thread: the time is an argument,
// next_tick() says when to call tick(), and what is sent goes through a function. Not thread-safe.
//
//   VM1  A task is in the order exactly once from add() until remove() or its loss, and no
//        extension of it is under way twice.
//   VM2  tick() looks at the tasks that end within the window and at one more; adding, removing and
//        answering cost the logarithm of the number of tasks.
//   VM3  The end of visibility that is assumed is never later than the server's: an extension counts
//        from the moment at which it was sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker/task.h"

namespace stanchion::worker {

struct MonitorOptions {
  std::chrono::seconds period{30};  // The visibility timeout of a receive and of an extension.
  // What ends within this time from a tick is extended by it. At least one period.
  std::chrono::seconds window{0};
};

struct Extension {
  TaskId task{};
  std::string receipt_handle = {};
  std::chrono::seconds timeout{0};
};
// Up to 10 extensions of one queue, for one call.
struct ExtensionBatch {
  std::string queue_url = {};
  std::vector<Extension> extensions = {};
};

enum class Extended {
  kYes,
  kRefused,  // By the server, for good: deleted, delivered to another, beyond 12 hours.
  kFailed,   // No answer, or one that a later try may change.
};

class VisibilityMonitor {
 public:
  static constexpr std::size_t kBatchMax = 10;
  static constexpr std::chrono::hours kInFlightMax{12};

  using Extend = std::function<void(ExtensionBatch batch)>;
  using Lost = std::function<void(const Task& task, Loss loss)>;

  // `extend` sends a batch, and answers later, for every task of the batch, by answered(). `lost`
  // tells a job; the task has left the monitor by then. Neither may call the monitor.
  VisibilityMonitor(MonitorOptions options, Extend extend, Lost lost);

  // The message was received at `received`, for one period.
  void add(const Task& task, Instant received);
  // The job has ended. True if an extension is under way, whose answer is still to come: a change
  // of visibility that is sent before it may be overtaken.
  bool remove(TaskId task);
  // From add() until remove() or the loss.
  bool holds(TaskId task) const { return held_.contains(task); }
  // An extension that was sent by a tick ended so. Tasks that have left are ignored.
  void answered(TaskId task, Extended result, Instant now);

  // When tick() must be called next; nothing: when a task has been added.
  std::optional<Instant> next_tick() const;
  // Extends what ends within the window, and gives up what ended. Early calls do nothing.
  void tick(Instant now);

  void check_invariants() const;

  std::size_t size() const { return held_.size(); }
  std::chrono::seconds period() const { return options_.period; }
  // Tasks that ticks have looked at so far, the measure of their work.
  std::uint64_t visited() const { return visited_; }

 private:
  struct Held {
    Task task;
    Instant end;
    Instant cap;
    std::optional<Instant> sent;  // When the extension that is under way was sent.
    std::chrono::seconds asked{0};
  };
  using Order = std::set<std::pair<Instant, TaskId>>;

  void lose(Order::iterator at, Loss loss);
  void put(std::vector<ExtensionBatch>& batches, std::unordered_map<std::string, std::size_t>& open,
           const Held& held) const;
  Clock::duration between_ticks() const { return Clock::duration(options_.period) / 2; }

  MonitorOptions options_;
  Extend extend_;
  Lost lost_;
  std::unordered_map<TaskId, Held> held_;
  Order by_end_;
  std::optional<Instant> next_tick_;
  std::uint64_t visited_ = 0;
};

}  // namespace stanchion::worker
