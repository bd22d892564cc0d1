// The messages of one queue, from the receive until they are settled. What a worker and a distributor
// do with them in between is theirs.
//
//   poll ─▶ receive ─▶ held ─remove─▶ waits for its batch ─▶ delete ─▶ gone
//                      │  ▲                    ▲               │
//             extended └──┘                    └─ again later ─┘ failed, but still held
//                      ├─ put_back ─after an extension under way─▶ visible again
//                      └─ refused, expired, 12 hours ─▶ lost
//
// Pure: no thread, no clock and no lock. The time is an argument, and calls go through a port, which
// answers each of them later by a function of the consumer. Not thread-safe.
//
//   CU1  Receives under way ask for no more messages than there were places for when each of them
//        began, and more than one is under way only while messages come (WK2).
//   CU2  A message is extended from its receive until it is deleted, put back or lost (WK4).
//   CU3  No change of visibility is sent while an extension of the same message is under way: the
//        extension could overtake it, and hide a message that was put back.
//   CU4  A removal is tried again until the server has deleted the message, says that it never will,
//        or the message is lost; its end is told once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/client.h"
#include "worker/limits.h"
#include "worker/task.h"
#include "worker/visibility_monitor.h"

namespace stanchion::worker {

// The calls that a consumer makes. None may call the consumer.
class ConsumerPort {
 public:
  virtual ~ConsumerPort() = default;

  // Answered by received().
  virtual client::CallId receive(std::uint64_t poll, std::size_t count) = 0;
  virtual void cancel(client::CallId receive) = 0;
  virtual void extend(ExtensionBatch batch) = 0;  // Answered by extended().
  // Up to 10 deletes, answered by removed().
  virtual void remove(std::uint64_t batch, std::vector<std::string> receipt_handles) = 0;
  // Not answered: if it fails, the message comes again when its visibility ends.
  virtual void change_visibility(const Task& task, std::chrono::seconds timeout) = 0;

  // tick() must be called at that time.
  virtual void tick_by(Instant time) = 0;
  virtual void lost(const Task& task, Loss loss) = 0;
  virtual void report(const std::string& what) = 0;  // For people.
};

// What tasks of a consumer have in common.
struct TaskOrigin {
  std::string queue_name = {};
  std::string queue_url = {};
  std::string queue_arn = {};
  bool poison = false;
  std::shared_ptr<PublishChannel> channel = {};
  std::size_t source = 0;  // TaskInformation::State::source.
};

// Numbers for the tasks of all consumers of one worker.
class TaskIds {
 public:
  TaskId next() { return TaskId{++last_}; }

 private:
  std::uint64_t last_ = 0;
};

struct ConsumerOptions {
  TaskOrigin origin = {};
  MonitorOptions visibility = {};
  double rate_max = 0;  // Messages a second; 0: no limit.
  // How long to wait after a receive that failed; it doubles with each failure in a row.
  std::chrono::milliseconds receive_again{250};
  std::chrono::milliseconds receive_again_max{30'000};
  std::chrono::milliseconds after_nothing{0};  // … and after one that got no message.
  std::chrono::milliseconds remove_again{500};
  std::chrono::milliseconds linger{5};  // How long a delete waits for others.
};

// How many messages may be asked for.
struct PollBudget {
  std::size_t places = 0;     // Messages that can be taken, those of receives under way included.
  std::size_t polls_max = 1;  // Receives at the same time while messages come.
  std::chrono::milliseconds pause{0};  // The least time between the beginnings of two receives.
};

struct ConsumerFigures {
  std::uint64_t received = 0;
  std::uint64_t redelivered = 0;  // Of these, with a receive count above 1.
  std::uint64_t damaged = 0;      // Left in the queue, because their MD5 does not match.
  std::uint64_t extended = 0;
  std::uint64_t given_back = 0;
  std::uint64_t lost = 0;
};

class Consumer {
 public:
  static constexpr std::size_t kReceiveMax = 10;  // Messages of one receive.
  static constexpr std::size_t kRemoveMax = 10;   // Messages of one batch of deletes.

  // The end of a removal: false if the message was not deleted, and is held no more.
  using Removed = std::function<void(const Task& task, bool removed)>;

  // The port and the numbers must outlive the consumer.
  Consumer(ConsumerOptions options, ConsumerPort& port, TaskIds& ids);
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Begins as many receives as the budget allows. The result says when to ask again; nothing: when
  // an answer has come, or when there are more places.
  std::optional<Instant> poll(const PollBudget& budget, Instant now);
  // No receive begins before that time.
  void rest_until(Instant time);
  void cancel_polls();
  std::size_t polls() const { return polls_.size(); }
  // The messages that are held from now on, in their order; none after stop().
  std::vector<Task> received(std::uint64_t poll,
                             client::Outcome<client::ReceiveMessageResult> outcome, Instant now);

  // False: lost, put back or deleted.
  bool holds(TaskId task) const { return monitor_.holds(task); }
  void extended(const std::vector<TaskId>& tasks,
                const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome,
                Instant now);

  // The message joins the next batch of deletes, which goes when it is full, when nothing else will
  // follow soon, or after a short time.
  void remove(const Task& task, Removed then, bool others_follow, Instant now);
  void removed(std::uint64_t batch,
               const client::Outcome<client::DeleteMessageBatchResult>& outcome, Instant now);
  // The message becomes visible after the delay, if it is still held.
  void put_back(const Task& task, std::chrono::seconds delay);
  // Messages that have no outcome of their own become visible, the last one first: while an earlier
  // one of its FIFO group is in flight, none of them is delivered.
  void give_back(std::span<const Task> tasks);

  // Extends, deletes and tries again what is due; when to call it next. Early calls do nothing.
  std::optional<Instant> tick(Instant now);
  // The deletes that wait for others go now.
  void send_removals();
  // Receives nothing more, and gives back what still comes. The rest goes on.
  void stop();

  const ConsumerFigures& figures() const { return figures_; }
  std::chrono::seconds visibility() const { return monitor_.period(); }
  void check_invariants() const;

 private:
  struct Poll {
    client::CallId call{};
    std::size_t count = 0;
  };
  struct Removal {
    Task task;
    Removed then;
  };
  struct Change {
    Task task;
    std::chrono::seconds timeout;
  };

  void receive(std::size_t count);
  Task make_task(client::Message message);
  void not_removed(Removal removal, const client::Error& error, Instant now);
  std::optional<Instant> next_tick() const;

  const ConsumerOptions options_;
  ConsumerPort& port_;
  TaskIds& ids_;
  VisibilityMonitor monitor_;
  RateLimit rate_;

  std::map<std::uint64_t, Poll> polls_;
  std::uint64_t last_poll_ = 0;
  std::size_t reserved_ = 0;  // Places that polls under way may fill.
  bool busy_ = false;         // The last receive had messages.
  bool stopped_ = false;
  int failures_ = 0;  // Of receives, in a row.
  Instant poll_not_before_{};

  std::vector<Removal> removals_;  // Wait for their batch to be full, or to be due.
  Instant removals_due_ = Instant::max();
  std::map<std::uint64_t, std::vector<Removal>> removing_;  // Batches under way.
  std::uint64_t last_batch_ = 0;
  std::multimap<Instant, Removal> removals_again_;
  std::unordered_map<TaskId, Change> after_extension_;

  ConsumerFigures figures_;
};

}  // namespace stanchion::worker
