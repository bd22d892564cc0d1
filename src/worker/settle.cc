// How messages leave the worker, and how they stay invisible until then.
#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "os/entropy.h"
#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A delete that found no server is tried again as long as the message is held.
constexpr milliseconds kDeleteAgain{500};
constexpr std::size_t kBatchMax = 10;
constexpr milliseconds kLinger{5};  // How long a delete waits for others.
constexpr seconds kDelayMax{43'200};

double random_share() {
  return static_cast<double>(os::SystemEntropy().u64() >> 11) * 0x1p-53;
}

// Whether another try cannot change the answer.
bool is_final(const client::Error& error) {
  return error.fault == client::Fault::kSender && !error.throttled;
}

}  // namespace

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
  source.removals.push_back({task, counter});
  if (source.removals.size() == kBatchMax || (source.running.empty() && !source.hand.has_next()))
    return send_removals(source);
  if (source.removals.size() > 1) return;
  source.removals_due = Clock::now() + kLinger;
  loop_.wake_by(source.removals_due);
}

void Worker::Impl::send_removals(Source& source) {
  source.removals_due = Instant::max();
  if (source.removals.empty()) return;
  std::vector<Removal> removals = std::exchange(source.removals, {});
  client::DeleteMessageBatchRequest request{.queue_url = source.options.url};
  request.entries.reserve(removals.size());
  for (const Removal& removal : removals)
    request.entries.push_back({.receipt_handle = removal.task->receipt_handle});
  client_.delete_message_batch(
      std::move(request),
      counted(source, [this, &source, removals = std::move(removals)](
                          client::Outcome<client::DeleteMessageBatchResult> outcome) {
        removed(source, removals, outcome);
      }));
}

void Worker::Impl::removed(Source& source, const std::vector<Removal>& removals,
                           const client::Outcome<client::DeleteMessageBatchResult>& outcome) {
  if (!outcome) {
    for (const Removal& removal : removals) not_removed(source, removal, outcome.error());
    return;
  }
  // An entry that the answer does not name is tried again.
  std::vector<std::optional<client::Error>> errors(
      removals.size(), client::Error{.code = client::code::kBadAnswer,
                                     .message = "the answer to the batch does not name it",
                                     .may_have_happened = true});
  const auto place_of = [&](const std::string& id) -> std::optional<client::Error>* {
    const auto at = parse_decimal(id);
    return at && *at < errors.size() ? &errors[static_cast<std::size_t>(*at)] : nullptr;
  };
  for (const auto& entry : outcome->successful)
    if (auto* const error = place_of(entry.id)) error->reset();
  for (const auto& entry : outcome->failed)
    if (auto* const error = place_of(entry.id))
      *error = client::Error{
          .code = entry.code,
          .message = entry.message,
          .http_status = 200,
          .request_id = outcome.info().request_id,
          .fault = entry.sender_fault ? client::Fault::kSender : client::Fault::kReceiver};
  for (std::size_t i = 0; i < removals.size(); ++i) {
    if (errors[i]) {
      not_removed(source, removals[i], *errors[i]);
    } else {
      ++(source.metrics.*removals[i].counter);
      leave(source, removals[i].task, false);
    }
  }
}

void Worker::Impl::not_removed(Source& source, const Removal& removal, const client::Error& error) {
  const Task& task = removal.task;
  report(source, "cannot delete message " + task->message_id + ": " + error.to_string());
  if (is_final(error) || lost_.contains(task->id) || closed_) {
    source.monitor.remove(task->id);
    leave(source, task, true);
    return;
  }
  loop_.at(Clock::now() + kDeleteAgain,
           [this, &source, removal] { remove(source, removal.task, removal.counter); });
}

void Worker::Impl::reject(Source& source, const Task& task, const std::string& queue_url) {
  if (!queue_url.empty()) return send_on(source, task, queue_url, &QueueMetrics::rejected);
  report(source, "message " + task->message_id +
                     " was rejected, but neither the verdict nor QueueOptions::reject_to names "
                     "a queue; it is retried");
  settle(source, task, Verdict::retry_with_backoff());
}

void Worker::Impl::send_on(Source& source, const Task& task, const std::string& queue_url,
                           std::uint64_t QueueMetrics::*counter) {
  batcher_->send(copy_of(*task, queue_url, task->message_id),
                 counted(source, [this, &source, task, queue_url, counter](
                                     const client::Outcome<client::SendMessageResult>& outcome) {
                   if (outcome) {
                     remove(source, task, counter);
                     return;
                   }
                   report(source, "cannot send message " + task->message_id + " to " + queue_url +
                                      ": " + outcome.error().to_string() + "; it is retried");
                   settle(source, task, Verdict::retry_with_backoff());
                 }));
}

void Worker::Impl::retry(Source& source, const Task& task, seconds delay) {
  ++source.metrics.retried;
  const bool held = !lost_.contains(task->id);
  // The later ones first: while this one is in flight, its group stays locked.
  leave(source, task, true);
  if (held) put_back(source, task, std::clamp(delay, seconds(0), kDelayMax));
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
  for (auto at = later.rbegin(); at != later.rend(); ++at) {
    ++source.metrics.given_back;
    if (lost_.erase((*at)->id) == 0) put_back(source, *at, seconds(0));
  }
  // One that goes back leaves the monitor in put_back(), which must know of extensions.
  if (!failed) source.monitor.remove(task->id);
  lost_.erase(task->id);
  wake_pool();
  // A message that is deleted leaves in a completion, which receives the next ones itself.
  if (failed) loop_.wake();
  loop_.settled();
}

void Worker::Impl::put_back(Source& source, const Task& task, seconds delay) {
  auto send = [this, &source, task, delay] {
    batcher_->change_visibility(
        {task->queue_url, task->receipt_handle, delay.count()},
        counted(source, [this, &source,
                         task](client::Outcome<client::ChangeMessageVisibilityResult> outcome) {
          if (!outcome)
            report(source, "cannot give back message " + task->message_id +
                               ", which comes again when its visibility ends: " +
                               outcome.error().to_string());
        }));
  };
  if (source.monitor.remove(task->id))
    after_extension_.emplace(task->id, std::move(send));
  else
    send();
}

void Worker::Impl::extend(Source& source, const ExtensionBatch& batch) {
  client::ChangeMessageVisibilityBatchRequest request{.queue_url = batch.queue_url};
  std::vector<TaskId> tasks;
  for (const Extension& extension : batch.extensions) {
    request.entries.push_back({.receipt_handle = extension.receipt_handle,
                               .visibility_timeout = extension.timeout.count()});
    tasks.push_back(extension.task);
  }
  client_.change_message_visibility_batch(
      std::move(request),
      counted(source, [this, &source, tasks = std::move(tasks)](
                          client::Outcome<client::ChangeMessageVisibilityBatchResult> outcome) {
        extended(source, tasks, outcome);
      }));
}

void Worker::Impl::extended(
    Source& source, const std::vector<TaskId>& tasks,
    const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome) {
  std::vector<Extended> results(tasks.size(), Extended::kFailed);
  const auto set = [&](const std::string& id, Extended result) {
    const auto at = parse_decimal(id);
    if (at && *at < results.size()) results[static_cast<std::size_t>(*at)] = result;
  };
  if (outcome) {
    for (const auto& entry : outcome->successful) set(entry.id, Extended::kYes);
    for (const auto& entry : outcome->failed)
      if (entry.sender_fault) set(entry.id, Extended::kRefused);
  } else {
    report(source, "cannot extend the visibility of " + std::to_string(tasks.size()) +
                       " messages: " + outcome.error().to_string());
    if (outcome.error().code == "QueueDoesNotExist")
      results.assign(tasks.size(), Extended::kRefused);
  }
  const Instant now = Clock::now();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (results[i] == Extended::kYes) ++source.metrics.extended;
    source.monitor.answered(tasks[i], results[i], now);
    if (auto waiting = after_extension_.extract(tasks[i])) waiting.mapped()();
  }
}

void Worker::Impl::report(Source& source, const std::string& what) {
  ++source.metrics.errors;
  if (options_.on_error)
    loop_.tell([this, text = source.name + ": " + what] { options_.on_error(text); });
  loop_.wake();
}

}  // namespace stanchion::worker
