// The threads of a worker that run handlers.
//
// A thread takes the next message of a queue, in turn, and releases the loop's mutex while the handler
// runs. With the mutex, all functions but the destructor and join().
//
//   HP1  While a message may begin, a thread that is free is awake, or one is on its way.
//   HP2  A handler is answered for once: what an asynchronous one says a second time is not heard.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker/options.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

// How a job has ended.
struct Ended {
  Verdict verdict = {};
  std::optional<std::string> thrown = {};  // What it threw, in place of a verdict.
  std::chrono::duration<double> took{0};
};

// A queue whose messages have handlers. With the mutex, all functions.
class HandledQueue {
 public:
  virtual ~HandledQueue() = default;

  virtual const QueueOptions& options() const = 0;
  virtual bool may_begin() const = 0;
  // The next message; none: it needs no handler any more. REQUIRES: may_begin().
  virtual Task begin() = 0;
  virtual void ended(const Task& task, const Ended& end) = 0;
};

class HandlerPool {
 public:
  explicit HandlerPool(WorkerLoop& loop) : loop_(loop) {}
  ~HandlerPool();  // REQUIRES: join(), and no job is unanswered.
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  // The queue, which must outlive the pool's threads, and how many of these it brings.
  void add(HandledQueue& queue, std::size_t threads);
  void start();
  // Messages may begin that could not before.
  void wake();
  void close();  // The threads end when their handlers have returned.
  void join();   // REQUIRES: close().
  // Jobs of asynchronous handlers that have not ended.
  std::size_t unanswered() const { return unanswered_; }

 private:
  void run();
  HandledQueue* runnable();
  void handle(WorkerLoop::Lock& lock, HandledQueue& queue, const Task& task);
  // Without the mutex.
  void handle_async(HandledQueue& queue, const Task& task);

  WorkerLoop& loop_;
  std::condition_variable work_;  // A message may begin, or the pool is closed.
  bool closed_ = false;
  bool waking_ = false;  // A thread was woken, and is not there yet.
  std::size_t idle_ = 0;
  std::size_t turn_ = 0;  // Of the queues.
  std::size_t unanswered_ = 0;
  std::size_t threads_wanted_ = 0;
  std::vector<HandledQueue*> queues_;
  std::vector<std::thread> threads_;
};

}  // namespace stanchion::worker
