// The threads of a worker's pool, which run handlers, and what its loop does in turn.
#include <algorithm>
#include <atomic>
#include <exception>

#include "os/clock.h"
#include "worker/copies.h"
#include "worker/impl.h"

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

}  // namespace

std::optional<Instant> Worker::Impl::tick(Instant now) {
  std::optional<Instant> next = load_.tick(now);
  for (const auto& source : sources_) {
    next = earlier(next, source->consumer->tick(now));
    if (source->pause) next = earlier(next, source->pause->tick(now));
    next = earlier(next, poll(*source, now));
  }
  return next;
}

void Worker::Impl::run() {
  std::unique_lock lock(loop_.mutex());
  while (!closed_) {
    Source* const source = runnable();
    if (source == nullptr) {
      ++idle_threads_;
      work_.wait(lock);
      --idle_threads_;
      waking_ = false;
      continue;
    }
    const Task task = next_task(*source);
    // Before the handler runs, because it may take its time.
    wake_pool();
    if (!task) continue;
    if (source->pause && source->pause->moves(*task)) {
      source->running.erase(task->id);
      move(*source, task);
    } else {
      handle(lock, *source, task);
    }
  }
}

Source* Worker::Impl::runnable() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    turn_ = (turn_ + 1) % sources_.size();
    if (sources_[turn_]->may_begin()) return sources_[turn_].get();
  }
  return nullptr;
}

// A thread that has taken a task wakes the next one, so that a handler that returns at once does
// not cost a switch of threads: the thread takes the next task before the other one is there.
void Worker::Impl::wake_pool() {
  if (waking_ || idle_threads_ == 0) return;
  if (std::ranges::none_of(sources_, [](const auto& source) { return source->may_begin(); }))
    return;
  waking_ = true;
  work_.notify_one();
}

// Nothing if the message was lost while it waited.
Task Worker::Impl::next_task(Source& source) {
  Task task = source.hand.next();
  if (!source.consumer->holds(task->id)) {
    leave(source, task, true);
    return nullptr;
  }
  source.running.emplace(task->id, task);
  const std::int64_t now = to_millis(os::SystemClock().now());
  const std::int64_t sent = number_in(task->attributes, "SentTimestamp", now);
  const std::chrono::milliseconds age(std::max<std::int64_t>(0, now - sent));
  source.metrics.age.add(static_cast<double>(age.count()) / 1000);
  load_.began(source.number, age);
  return task;
}

void Worker::Impl::handle(std::unique_lock<std::mutex>& lock, Source& source, const Task& task) {
  if (source.options.async_handler) {
    ++unanswered_;
    lock.unlock();
    run_async_handler(source, task);
    lock.lock();
    return;
  }
  lock.unlock();
  const Ended end = run_handler(source, task);
  lock.lock();
  ended(source, task, end);
}

Ended Worker::Impl::run_handler(const Source& source, const Task& task) {
  const auto began = std::chrono::steady_clock::now();
  Ended end;
  try {
    end.verdict = source.options.handler(*task);
  } catch (...) {
    end.thrown = text_of_exception();
  }
  end.took = std::chrono::steady_clock::now() - began;
  return end;
}

void Worker::Impl::run_async_handler(Source& source, const Task& task) {
  const auto began = std::chrono::steady_clock::now();
  const auto answered = std::make_shared<std::atomic<bool>>(false);
  const auto end = [this, &source, task, began, answered](Ended with) {
    if (answered->exchange(true)) return;
    with.took = std::chrono::steady_clock::now() - began;
    const std::lock_guard lock(loop_.mutex());
    ended(source, task, with);
    --unanswered_;
    loop_.settled();
    wake_pool();
  };
  try {
    source.options.async_handler(task,
                                 [end](Verdict verdict) { end({.verdict = std::move(verdict)}); });
  } catch (...) {
    end({.thrown = text_of_exception()});
  }
}

void Worker::Impl::ended(Source& source, const Task& task, const Ended& end) {
  source.metrics.duration.add(end.took.count());
  Verdict verdict = end.verdict;
  if (end.thrown) {
    ++source.metrics.thrown;
    verdict = Verdict::retry_with_backoff();
    report(source, "the handler of message " + task->message_id + " threw: " + *end.thrown);
  }
  conclude(source, task, std::move(verdict));
}

}  // namespace stanchion::worker
