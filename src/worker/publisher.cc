#include "worker/publisher.h"

#include <shared_mutex>
#include <utility>

#include "base/check.h"
#include "worker/copies.h"

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
    const std::string group = group_of(task);
    request.message_group_id = group.empty() ? task.message_id : group;
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
  if (!state->channel) return false;
  const std::shared_lock open(state->channel->mutex);
  return state->channel->publish && state->channel->publish(*this, std::move(publication));
}

Publisher::Publisher(client::Batcher& batcher, NamedQueues& queues, WorkerLoop& loop,
                     Outside outside)
    : batcher_(batcher), queues_(queues), loop_(loop), outside_(std::move(outside)) {
  channel_->publish = [this](const TaskInformation& task, Publication publication) {
    return publish(task, std::move(publication));
  };
}

void Publisher::close() {
  const std::unique_lock closing(channel_->mutex);
  channel_->publish = nullptr;
}

bool Publisher::publish(const TaskInformation& information, Publication publication) {
  // Without the mutex, because it may wait for the queue to be made.
  client::Outcome<std::string> url = publication.queue_url;
  if (publication.queue_url.empty()) url = queues_.find_or_make(publication.queue);

  const std::lock_guard lock(loop_.mutex());
  const Task task = outside_.find_running(information);
  if (!task) return false;
  Publications& made = publications_[task->id];
  CHECK(!made.returned, "PU1: a job publishes before its handler has returned, or its last");
  ++made.published;
  made.last = made.last || publication.last;
  if (!url) {
    made.failed = true;
    outside_.report(*task, "a result of message " + task->message_id + " cannot be sent to " +
                               publication.queue.name + ": " + url.error().to_string());
  } else {
    ++made.under_way;
    batcher_.send(request_of(*task, *url, std::move(publication), made.published),
                  loop_.counted([this, task, to = *url](const Sent& outcome) {
                    published(task, to, outcome);
                  }));
  }
  reconsider(task);
  return true;
}

void Publisher::published(const Task& task, const std::string& queue_url, const Sent& outcome) {
  if (outcome) {
    outside_.published(*task);
  } else {
    outside_.report(*task, "a result of message " + task->message_id + " cannot be sent to " +
                               queue_url + ": " + outcome.error().to_string());
    queues_.forget(queue_url);
  }
  // A message that was given back meanwhile is not known here any more.
  const auto found = publications_.find(task->id);
  if (found == publications_.end()) return;
  CHECK(found->second.under_way > 0, "PU1: a publication is answered once");
  --found->second.under_way;
  found->second.failed = found->second.failed || !outcome;
  reconsider(task);
}

Publisher::Step Publisher::conclude(const Task& task, Verdict& verdict) {
  const auto found = publications_.find(task->id);
  const bool failed = found != publications_.end() && found->second.failed;
  const bool last = found != publications_.end() && found->second.last;
  if (verdict.after_last && !last && !failed) {
    publications_[task->id].verdict = verdict;
    return Step::kWaitForLast;
  }
  if (found == publications_.end()) return Step::kSettle;
  CHECK(!found->second.returned, "PU1: a handler returns once");
  if (failed && deletes(verdict)) verdict = Verdict::retry_with_backoff();
  if (found->second.under_way > 0 && deletes(verdict)) {
    found->second.verdict = verdict;
    found->second.returned = true;
    return Step::kWaitForAnswers;
  }
  publications_.erase(found);
  return Step::kSettle;
}

// After a publication, or an answer to one, of a task whose handler may have returned.
void Publisher::reconsider(const Task& task) {
  const auto found = publications_.find(task->id);
  if (found == publications_.end() || !found->second.verdict) return;
  Publications& made = found->second;
  if (!made.returned) {
    if (made.last || made.failed)
      outside_.conclude(task, *std::exchange(made.verdict, std::nullopt));
    return;
  }
  if (made.under_way > 0 && !made.failed) return;
  const Verdict verdict = made.failed ? Verdict::retry_with_backoff() : *std::move(made.verdict);
  CHECK(!deletes(verdict) || made.under_way == 0, "PU1, WK1: every result is acknowledged");
  publications_.erase(found);
  outside_.settle(task, verdict);
}

void Publisher::send_on(const Task& task, const std::string& queue_url,
                        std::function<void()> sent) {
  batcher_.send(copy_of(*task, queue_url, task->message_id),
                loop_.counted([this, task, queue_url, sent = std::move(sent)](const Sent& outcome) {
                  // PU2.
                  if (outcome) return sent();
                  outside_.report(*task, "cannot send message " + task->message_id + " to " +
                                             queue_url + ": " + outcome.error().to_string() +
                                             "; it is retried");
                  outside_.settle(task, Verdict::retry_with_backoff());
                }));
}

}  // namespace stanchion::worker
