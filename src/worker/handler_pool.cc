#include "worker/handler_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "base/check.h"

namespace stanchion::worker {
namespace {

// REQUIRES: an exception is being handled.
std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

Ended run_handler(const Handler& handler, const Task& task) {
  const auto began = std::chrono::steady_clock::now();
  Ended end;
  try {
    end.verdict = handler(*task);
  } catch (...) {
    end.thrown = text_of_exception();
  }
  end.took = std::chrono::steady_clock::now() - began;
  return end;
}

}  // namespace

HandlerPool::~HandlerPool() {
  CHECK(threads_.empty(), "the threads have ended before their pool");
  CHECK(unanswered_ == 0, "HP2: a job that ends would find no pool");
}

void HandlerPool::add(HandledQueue& queue, std::size_t threads) {
  CHECK(threads_.empty(), "queues are added before the threads run");
  queues_.push_back(&queue);
  threads_wanted_ += threads;
}

void HandlerPool::start() {
  CHECK(threads_.empty() && !closed_, "a pool is started once");
  for (std::size_t i = 0; i < threads_wanted_; ++i) threads_.emplace_back([this] { run(); });
}

void HandlerPool::close() {
  closed_ = true;
  work_.notify_all();
}

void HandlerPool::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HandlerPool::run() {
  WorkerLoop::Lock lock(loop_.mutex());
  while (!closed_) {
    HandledQueue* const queue = runnable();
    if (queue == nullptr) {
      ++idle_;
      work_.wait(lock);
      CHECK(idle_ > 0, "HP1: a thread is free once");
      --idle_;
      waking_ = false;
      continue;
    }
    const Task task = queue->begin();
    // Before the handler runs, because it may take its time.
    wake();
    if (task) handle(lock, *queue, task);
  }
}

HandledQueue* HandlerPool::runnable() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    turn_ = (turn_ + 1) % queues_.size();
    if (queues_[turn_]->may_begin()) return queues_[turn_];
  }
  return nullptr;
}

// A thread that has taken a task wakes the next one, so that a handler that returns at once does
// not cost a switch of threads: the thread takes the next task before the other one is there.
void HandlerPool::wake() {
  if (waking_ || idle_ == 0) return;
  if (std::ranges::none_of(queues_, [](const auto* queue) { return queue->may_begin(); })) return;
  waking_ = true;
  work_.notify_one();
}

void HandlerPool::handle(WorkerLoop::Lock& lock, HandledQueue& queue, const Task& task) {
  if (queue.options().async_handler) {
    ++unanswered_;
    lock.unlock();
    handle_async(queue, task);
    lock.lock();
    return;
  }
  lock.unlock();
  const Ended end = run_handler(queue.options().handler, task);
  lock.lock();
  queue.ended(task, end);
}

void HandlerPool::handle_async(HandledQueue& queue, const Task& task) {
  const auto began = std::chrono::steady_clock::now();
  const auto answered = std::make_shared<std::atomic<bool>>(false);
  const auto end = [this, &queue, task, began, answered](Ended with) {
    if (answered->exchange(true)) return;
    with.took = std::chrono::steady_clock::now() - began;
    const std::lock_guard lock(loop_.mutex());
    queue.ended(task, with);
    CHECK(unanswered_ > 0, "HP2: a job ends once");
    --unanswered_;
    loop_.settled();
    wake();
  };
  try {
    queue.options().async_handler(task,
                                  [end](Verdict verdict) { end({.verdict = std::move(verdict)}); });
  } catch (...) {
    end({.thrown = text_of_exception()});
  }
}

}  // namespace stanchion::worker
