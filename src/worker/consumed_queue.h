// One queue of a worker: what becomes of each of its messages.
//
//   received ─▶ waits for a handler ─begin─▶ handler ─ended─▶ concluded ─▶ settled by its verdict:
//     done: deleted · reject, pause: a copy is acknowledged, deleted · retry: put back
//
// It joins the parts: the consumer holds and deletes, JobQueue says which message may begin, the
// publisher when its job is done with publishing, PauseControl what is moved. With the mutex of the
// loop, all functions but the constructor and set_paused().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/batcher.h"
#include "client/client.h"
#include "worker/client_consumer.h"
#include "worker/handler_pool.h"
#include "worker/job_queue.h"
#include "worker/load_reporter.h"
#include "worker/metrics.h"
#include "worker/options.h"
#include "worker/pause_control.h"
#include "worker/publisher.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// What the queues of a worker share.
struct WorkerParts {
  const WorkerOptions& options;
  client::Client& client;
  client::Batcher& batcher;
  WorkerLoop& loop;
  TaskIds& ids;
  HandlerPool& pool;
  Publisher& publisher;
  LoadReporter& load;
};

class ConsumedQueue final : public HandledQueue {
 public:
  // `number`: among the queues of the worker; also of its load.
  ConsumedQueue(const WorkerParts& parts, QueueOptions options, std::size_t number,
                const std::string& arn);
  ConsumedQueue(const ConsumedQueue&) = delete;
  ConsumedQueue& operator=(const ConsumedQueue&) = delete;

  const std::string& name() const { return name_; }
  bool is_fifo() const { return name_.ends_with(".fifo"); }
  // Its messages can wait in `paused`, whose tags were read at `now`.
  void pause_with(ConsumedQueue& paused, const client::StringMap& tags, Instant now);
  bool is_paused_queue() const { return main_ != nullptr; }
  // Nothing if the queue cannot be paused. Without the mutex.
  PauseControl* pause() const { return pause_.get(); }

  // Begins receives for all places that are free; when to ask again.
  std::optional<Instant> poll(Instant now);
  std::optional<Instant> tick(Instant now);
  // Receives nothing more, and gives back what has not begun.
  void stop();
  // Gives back the messages of handlers that have not returned, and says how many those are. Their
  // jobs are told.
  std::size_t abandon_running();
  bool is_settled() const { return jobs_.size() == 0; }
  std::uint64_t given_back() const { return consumer_->figures().given_back; }
  std::uint64_t completed() const { return counts_.done + counts_.rejected + counts_.paused; }
  QueueMetrics metrics() const;

  const QueueOptions& options() const override { return options_; }
  bool may_begin() const override;
  Task begin() override;
  void ended(const Task& task, const Ended& end) override;

  // The handler has returned: settles the message, now or when its publications allow it.
  void conclude(const Task& task, Verdict verdict);
  void settle(const Task& task, const Verdict& verdict);
  // The task of a handler that has not returned, while its message is held.
  Task find_running(TaskId task) const;
  void published() { ++counts_.published; }
  void report(const std::string& what);

 private:
  using Counter = std::uint64_t QueueMetrics::*;

  ConsumerOptions consumer_options(std::size_t number, const std::string& arn) const;
  ConsumerEvents consumer_events();
  void poll_now();
  void count_age(const Task& task);
  // `counter`: of what the message counts as once it is deleted.
  void remove(const Task& task, Counter counter);
  void reject(const Task& task, const std::string& queue_url);
  void pause_task(const Task& task);
  void send_on(const Task& task, const std::string& queue_url, Counter counter);
  void retry(const Task& task, std::chrono::seconds delay);
  // The message is in flight no more; if it failed, the later ones of its group go back.
  void leave(const Task& task, bool failed);
  void stop_coming_back();

  const WorkerParts parts_;
  const QueueOptions options_;
  const std::string name_;
  const std::size_t number_;
  JobQueue jobs_;
  ClientConsumer consumer_;
  std::unique_ptr<PauseControl> pause_;  // Of a queue that can be paused.
  ConsumedQueue* main_ = nullptr;        // Of a paused queue: the one that is paused.
  QueueMetrics counts_;                  // Of what is counted here; metrics() has the rest.
};

}  // namespace stanchion::worker
