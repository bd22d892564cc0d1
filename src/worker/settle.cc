// How messages leave the worker.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "os/entropy.h"
#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::seconds;

constexpr seconds kDelayMax{43'200};

double random_share() {
  return static_cast<double>(os::SystemEntropy().u64() >> 11) * 0x1p-53;
}

}  // namespace

void Worker::Impl::conclude(Source& source, const Task& task, Verdict verdict) {
  // At the deadline of a stop the message was given back.
  if (!source.running.contains(task->id)) return;
  const Publisher::Step step = publisher_.conclude(task, verdict);
  if (step == Publisher::Step::kWaitForLast) return;
  source.running.erase(task->id);
  const std::size_t allowed = source.throttle.allowed(source.options.concurrency);
  source.throttle.record(verdict.kind == Verdict::Kind::kRetry);
  if (source.throttle.allowed(source.options.concurrency) > allowed) wake_pool();
  if (step == Publisher::Step::kSettle) settle(source, task, verdict);
}

void Worker::Impl::settle(Source& source, const Task& task, const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::kDone:
      remove(source, task, &QueueMetrics::done);
      return;
    case Verdict::Kind::kReject:
      reject(source, task,
             verdict.reject_to.empty() ? source.options.reject_to : verdict.reject_to);
      return;
    case Verdict::Kind::kPause:
      pause_task(source, task);
      return;
    case Verdict::Kind::kRetry:
      retry(source, task,
            verdict.backoff
                ? backoff_delay(source.options.backoff, task->receive_count, random_share())
                : verdict.delay);
      return;
  }
}

void Worker::Impl::remove(Source& source, const Task& task, std::uint64_t QueueMetrics::*counter) {
  CHECK(!source.running.contains(task->id), "WK1: its handler has returned");
  const bool others_follow = !source.running.empty() || source.hand.has_next();
  source.consumer->remove(
      task,
      [this, &source, counter](const Task& removed, bool deleted) {
        if (deleted) ++(source.metrics.*counter);
        leave(source, removed, !deleted);
      },
      others_follow, Clock::now());
}

void Worker::Impl::reject(Source& source, const Task& task, const std::string& queue_url) {
  if (!queue_url.empty()) return send_on(source, task, queue_url, &QueueMetrics::rejected);
  report(source, "message " + task->message_id +
                     " was rejected, but neither the verdict nor QueueOptions::reject_to names "
                     "a queue; it is retried");
  settle(source, task, Verdict::retry_with_backoff());
}

// Sends a copy to another queue, and deletes the message when that is acknowledged.
void Worker::Impl::send_on(Source& source, const Task& task, const std::string& queue_url,
                           std::uint64_t QueueMetrics::*counter) {
  publisher_.send_on(task, queue_url,
                     [this, &source, task, counter] { remove(source, task, counter); });
}

void Worker::Impl::pause_task(Source& source, const Task& task) {
  if (!source.pause) {
    report(source, "message " + task->message_id +
                       (source.main != nullptr
                            ? " was paused while its queue is being resumed; it is retried"
                            : " was paused, but its queue cannot be; set QueueOptions::pausable"));
    settle(source, task, Verdict::retry_with_backoff());
    return;
  }
  source.pause->pause(*task, [this, &source, task](bool moves) {
    if (moves)
      move(source, task);
    else
      settle(source, task, Verdict::retry_with_backoff());
  });
}

void Worker::Impl::move(Source& source, const Task& task) {
  send_on(source, task, source.pause->paused_queue_url(), &QueueMetrics::paused);
}

void Worker::Impl::retry(Source& source, const Task& task, seconds delay) {
  ++source.metrics.retried;
  // The later ones first: while this one is in flight, its group stays locked.
  leave(source, task, true);
  source.consumer->put_back(task, std::clamp(delay, seconds(0), kDelayMax));
}

void Worker::Impl::leave(Source& source, const Task& task, bool failed) {
  const auto later = source.hand.end(task, failed);
  if (failed && source.options.groups_together && source.name.ends_with(".fifo"))
    for (const auto& [id, other] : source.running)
      if (id > task->id && group_of(*other) == group_of(*task)) {
        // It has begun and would overtake the failed one. The mark is there at once; callbacks run
        // without the mutex.
        int none = -1;
        other->state->loss.compare_exchange_strong(none, static_cast<int>(Loss::kStopped));
        loop_.tell([stopped = other] { stopped->state->stop.request_stop(); });
      }
  source.consumer->give_back(later);
  wake_pool();
  // A message that is deleted leaves in a completion, which receives the next ones itself.
  if (failed) loop_.wake();
  loop_.settled();
}

void Worker::Impl::report(Source& source, const std::string& what) {
  ++source.metrics.errors;
  if (options_.on_error)
    loop_.tell([this, text = source.name + ": " + what] { options_.on_error(text); });
  loop_.wake();
}

}  // namespace stanchion::worker
