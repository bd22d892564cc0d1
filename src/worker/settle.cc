// How messages leave the worker, and how they stay invisible until then.
#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "os/entropy.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A delete that found no server is tried again as long as the message is held.
constexpr milliseconds kDeleteAgain{500};
constexpr seconds kDelayMax{43'200};

double random_share() {
  return static_cast<double>(os::SystemEntropy().u64() >> 11) * 0x1p-53;
}

// Whether another try cannot change the answer.
bool is_final(const client::Error& error) {
  return error.fault == client::Fault::kSender && !error.throttled;
}

client::SendMessageRequest copy_of(const TaskInformation& task, const std::string& queue_url) {
  client::SendMessageRequest copy{.queue_url = queue_url,
                                  .message_body = task.body,
                                  .message_attributes = task.message_attributes};
  const auto group = task.attributes.find("MessageGroupId");
  if (group != task.attributes.end()) copy.message_group_id = group->second;
  if (queue_url.ends_with(".fifo")) {
    if (!copy.message_group_id) copy.message_group_id = task.message_id;
    // The same for every delivery, so that a repeated rejection arrives once.
    copy.message_deduplication_id = task.message_id;
  }
  return copy;
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
    case Verdict::Kind::kRetry:
      retry(source, task,
            verdict.backoff
                ? backoff_delay(source.options.backoff, task->receive_count, random_share())
                : verdict.delay);
      return;
  }
}

void Worker::Impl::remove(Source& source, const Task& task, std::uint64_t QueueMetrics::*counter) {
  batcher_->remove(
      {task->queue_url, task->receipt_handle},
      counted([this, &source, task, counter](client::Outcome<client::DeleteMessageResult> outcome) {
        removed(source, task, counter, outcome);
      }));
}

void Worker::Impl::removed(Source& source, const Task& task, std::uint64_t QueueMetrics::*counter,
                           const client::Outcome<client::DeleteMessageResult>& outcome) {
  if (outcome) {
    ++(source.metrics.*counter);
    leave(source, task, false);
    return;
  }
  report(source, "cannot delete message " + task->message_id + ": " + outcome.error().to_string());
  if (is_final(outcome.error()) || lost_.contains(task->id) || closed_) {
    source.monitor.remove(task->id);
    leave(source, task, true);
    return;
  }
  timers_.emplace(Clock::now() + kDeleteAgain,
                  [this, &source, task, counter] { remove(source, task, counter); });
}

void Worker::Impl::reject(Source& source, const Task& task, const std::string& queue_url) {
  const auto backoff = backoff_delay(source.options.backoff, task->receive_count, random_share());
  if (queue_url.empty()) {
    report(source, "message " + task->message_id +
                       " was rejected, but neither the verdict nor QueueOptions::reject_to names "
                       "a queue; it is retried");
    retry(source, task, backoff);
    return;
  }
  batcher_->send(
      copy_of(*task, queue_url),
      counted([this, &source, task, backoff](client::Outcome<client::SendMessageResult> outcome) {
        if (outcome) {
          remove(source, task, &QueueMetrics::rejected);
          return;
        }
        report(source, "cannot send rejected message " + task->message_id + ": " +
                           outcome.error().to_string() + "; it is retried");
        retry(source, task, backoff);
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
  for (auto at = later.rbegin(); at != later.rend(); ++at) {
    ++source.metrics.given_back;
    if (lost_.erase((*at)->id) == 0) put_back(source, *at, seconds(0));
  }
  // One that goes back leaves the monitor in put_back(), which must know of extensions.
  if (!failed) source.monitor.remove(task->id);
  lost_.erase(task->id);
  if (source.hand.has_next()) work_.notify_one();
  wake_keeper();
  if (stopping_) idle_.notify_all();
}

void Worker::Impl::put_back(Source& source, const Task& task, seconds delay) {
  auto send = [this, &source, task, delay] {
    batcher_->change_visibility(
        {task->queue_url, task->receipt_handle, delay.count()},
        counted(
            [this, &source, task](client::Outcome<client::ChangeMessageVisibilityResult> outcome) {
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
      counted([this, &source, tasks = std::move(tasks)](
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
    told_.emplace_back([this, text = source.name + ": " + what] { options_.on_error(text); });
  wake_keeper();
}

void Worker::Impl::wake_keeper() {
  woken_ = true;
  keeper_.notify_one();
}

}  // namespace stanchion::worker
