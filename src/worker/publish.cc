// What jobs publish: a message is deleted only when everything that its job published has been
// acknowledged.
#include <shared_mutex>
#include <utility>

#include "worker/impl.h"

namespace stanchion::worker {
namespace {

client::SendMessageRequest request_of(const TaskInformation& task, std::string queue_url,
                                      Publication publication, std::size_t number) {
  client::SendMessageRequest request{.queue_url = std::move(queue_url),
                                     .message_body = std::move(publication.body),
                                     .delay_seconds = publication.delay_seconds,
                                     .message_attributes = std::move(publication.attributes),
                                     .message_deduplication_id = publication.deduplication_id,
                                     .message_group_id = publication.group_id};
  if (!request.queue_url.ends_with(".fifo")) return request;
  if (!request.message_group_id) {
    const auto group = task.attributes.find("MessageGroupId");
    request.message_group_id =
        group == task.attributes.end() ? task.message_id : std::string(group->second);
  }
  if (!request.message_deduplication_id)
    request.message_deduplication_id = task.message_id + "-" + std::to_string(number);
  return request;
}

// Whether the input is deleted after this verdict, and so must not go before its results.
bool deletes(const Verdict& verdict) {
  return verdict.kind != Verdict::Kind::kRetry;
}

}  // namespace

bool TaskInformation::publish(Publication publication) const {
  if (!state->outlet) return false;
  const std::shared_lock open(state->outlet->mutex);
  return state->outlet->publish && state->outlet->publish(*this, std::move(publication));
}

bool Worker::Impl::publish(const TaskInformation& information, Publication publication) {
  // Without the mutex, because it may wait for the queue to be made.
  client::Outcome<std::string> url = publication.queue_url;
  if (publication.queue_url.empty()) url = queues_.find_or_make(publication.queue);

  const std::lock_guard lock(loop_.mutex());
  Source& source = *sources_[information.state->source];
  const auto running = source.running.find(information.id);
  if (running == source.running.end() || !source.consumer->holds(information.id)) return false;
  const Task task = running->second;
  Ledger& ledger = ledgers_[task->id];
  ++ledger.published;
  ledger.last = ledger.last || publication.last;
  if (!url) {
    ledger.failed = true;
    report(source, "a result of message " + task->message_id + " cannot be sent to " +
                       publication.queue.name + ": " + url.error().to_string());
  } else {
    ++ledger.under_way;
    batcher_->send(request_of(*task, *url, std::move(publication), ledger.published),
                   counted(source, [this, &source, task, to = *url](
                                       const client::Outcome<client::SendMessageResult>& outcome) {
                     published(source, task, to, outcome);
                   }));
  }
  reconsider(source, task);
  return true;
}

void Worker::Impl::published(Source& source, const Task& task, const std::string& queue_url,
                             const client::Outcome<client::SendMessageResult>& outcome) {
  if (outcome) {
    ++source.metrics.published;
  } else {
    report(source, "a result of message " + task->message_id + " cannot be sent to " + queue_url +
                       ": " + outcome.error().to_string());
    queues_.forget(queue_url);
  }
  // A message that was given back meanwhile has no ledger any more.
  const auto ledger = ledgers_.find(task->id);
  if (ledger == ledgers_.end()) return;
  --ledger->second.under_way;
  ledger->second.failed = ledger->second.failed || !outcome;
  reconsider(source, task);
}

void Worker::Impl::conclude(Source& source, const Task& task, Verdict verdict) {
  // At the deadline of a stop the message was given back.
  if (!source.running.contains(task->id)) return;
  const auto found = ledgers_.find(task->id);
  const bool failed = found != ledgers_.end() && found->second.failed;
  const bool last = found != ledgers_.end() && found->second.last;
  if (verdict.after_last && !last && !failed) {
    ledgers_[task->id].verdict = std::move(verdict);
    return;
  }
  source.running.erase(task->id);
  if (failed && deletes(verdict)) verdict = Verdict::retry_with_backoff();
  const std::size_t allowed = source.throttle.allowed(source.options.concurrency);
  source.throttle.record(verdict.kind == Verdict::Kind::kRetry);
  if (source.throttle.allowed(source.options.concurrency) > allowed) wake_pool();
  if (found != ledgers_.end() && found->second.under_way > 0 && deletes(verdict)) {
    found->second.verdict = std::move(verdict);
    return;
  }
  ledgers_.erase(task->id);
  settle(source, task, verdict);
}

// After a publication, or an answer to one, of a task whose handler may have returned.
void Worker::Impl::reconsider(Source& source, const Task& task) {
  const auto found = ledgers_.find(task->id);
  if (found == ledgers_.end() || !found->second.verdict) return;
  if (source.running.contains(task->id)) {
    if (found->second.last || found->second.failed)
      conclude(source, task, *std::exchange(found->second.verdict, std::nullopt));
    return;
  }
  if (found->second.under_way > 0 && !found->second.failed) return;
  const Verdict verdict =
      found->second.failed ? Verdict::retry_with_backoff() : *std::move(found->second.verdict);
  ledgers_.erase(found);
  settle(source, task, verdict);
}

}  // namespace stanchion::worker
