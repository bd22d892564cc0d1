// What jobs publish: a message is deleted only when everything that its job published has been
// acknowledged.
//
//   handler runs ─concluded─▶ settled at once, if nothing is under way or the verdict is a retry
//        │                 ─▶ waits for the publication that is marked as last, and counts as running
//        │                 ─▶ waits for the answers to what was published
//        └─publish─▶ under way ─▶ acknowledged, or failed: then the job is retried
//
// With the mutex of the loop, all functions but close() and what a task calls.
//
//   PU1  A message whose job has published is settled as done, rejected or paused only when nothing
//        of that is under way any more, and nothing has failed (WK1).
//   PU2  A copy is acknowledged by its queue before its message is deleted (WK1).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "client/batcher.h"
#include "client/outcome.h"
#include "worker/named_queues.h"
#include "worker/options.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

class Publisher {
 public:
  struct Outside {
    // The task whose handler runs, or waits for its last publication, and whose message is held;
    // none: nothing is sent for it any more.
    std::function<Task(const TaskInformation& task)> find_running;
    std::function<void(const TaskInformation& task)> published;  // A result was acknowledged.
    std::function<void(const TaskInformation& task, const std::string& what)> report;
    // The last publication is there, or one has failed: the handler counts as returned only now.
    std::function<void(const Task& task, Verdict verdict)> conclude;
    // Everything is acknowledged, or something has failed.
    std::function<void(const Task& task, const Verdict& verdict)> settle;
  };
  // What becomes of a message whose handler has returned.
  enum class Step {
    kSettle,          // By its verdict, now.
    kWaitForAnswers,  // Outside::settle comes later.
    kWaitForLast,     // Outside::conclude comes later. It counts as running until then.
  };

  Publisher(client::Batcher& batcher, NamedQueues& queues, WorkerLoop& loop, Outside outside);

  // The way from tasks to the publisher.
  const std::shared_ptr<PublishChannel>& channel() const { return channel_; }
  // Nothing is published from now on; tasks may outlive their worker. Without the mutex.
  void close();

  // The handler has returned. The verdict becomes a retry if a publication has failed.
  Step conclude(const Task& task, Verdict& verdict);
  // The message was given back, whatever its job has published or will.
  void forget(TaskId task) { publications_.erase(task); }

  // Sends a copy of the message to another queue: `sent` runs when that has acknowledged it.
  // Otherwise the message is retried.
  void send_on(const Task& task, const std::string& queue_url, std::function<void()> sent);

 private:
  // What the job of one message has published.
  struct Publications {
    std::size_t published = 0;
    std::size_t under_way = 0;
    bool failed = false;
    bool last = false;      // The one that is marked as last was published.
    bool returned = false;  // The handler has, and nothing will be published any more.
    // Of a handler that has returned, if the message waits for publications.
    std::optional<Verdict> verdict = {};
  };
  using Sent = client::Outcome<client::SendMessageResult>;

  // On a thread of a job's, without the mutex.
  bool publish(const TaskInformation& information, Publication publication);
  void published(const Task& task, const std::string& queue_url, const Sent& outcome);
  void reconsider(const Task& task);

  client::Batcher& batcher_;
  NamedQueues& queues_;
  WorkerLoop& loop_;
  const Outside outside_;
  const std::shared_ptr<PublishChannel> channel_ = std::make_shared<PublishChannel>();
  std::unordered_map<TaskId, Publications> publications_;  // Of messages whose jobs have published.
};

}  // namespace stanchion::worker
