#include "worker/client_consumer.h"

#include <utility>

#include "base/check.h"

namespace stanchion::worker {

using std::chrono::seconds;

ClientConsumer::ClientConsumer(const ConsumerContext& context, seconds wait,
                               ConsumerOptions options, ConsumerEvents events)
    : client_(context.client),
      batcher_(context.batcher),
      loop_(context.loop),
      wait_(wait),
      queue_url_(options.origin.queue_url),
      events_(std::move(events)),
      consumer_(std::move(options), *this, context.ids) {
  CHECK(events_.received && events_.answered && events_.lost && events_.report,
        "the owner of a consumer is told everything");
}

client::CallId ClientConsumer::receive(std::uint64_t poll, std::size_t count) {
  return client_.receive_message(
      {.queue_url = queue_url_,
       .max_number_of_messages = static_cast<std::int64_t>(count),
       .wait_time_seconds = wait_.count(),
       .visibility_timeout = consumer_.visibility().count(),
       .message_system_attribute_names = {"All"},
       .message_attribute_names = {"All"}},
      loop_.counted([this, poll](client::Outcome<client::ReceiveMessageResult> outcome) {
        const std::vector<Task> tasks = consumer_.received(poll, std::move(outcome), Clock::now());
        if (!tasks.empty()) events_.received(tasks);
        events_.answered();
      }));
}

void ClientConsumer::extend(ExtensionBatch batch) {
  CHECK(batch.queue_url == queue_url_, "a consumer extends messages of its own queue");
  CHECK(!batch.extensions.empty() && batch.extensions.size() <= VisibilityMonitor::kBatchMax,
        "a batch has 1 to 10 extensions");
  client::ChangeMessageVisibilityBatchRequest request{.queue_url = std::move(batch.queue_url)};
  std::vector<TaskId> tasks;
  for (Extension& extension : batch.extensions) {
    request.entries.push_back({.receipt_handle = std::move(extension.receipt_handle),
                               .visibility_timeout = extension.timeout.count()});
    tasks.push_back(extension.task);
  }
  client_.change_message_visibility_batch(
      std::move(request),
      loop_.counted(
          [this, tasks = std::move(tasks)](
              const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome) {
            consumer_.extended(tasks, outcome, Clock::now());
          }));
}

void ClientConsumer::remove(std::uint64_t batch, std::vector<std::string> receipt_handles) {
  CHECK(!receipt_handles.empty() && receipt_handles.size() <= Consumer::kRemoveMax,
        "a batch has 1 to 10 deletes");
  client::DeleteMessageBatchRequest request{.queue_url = queue_url_};
  request.entries.reserve(receipt_handles.size());
  for (std::string& receipt_handle : receipt_handles)
    request.entries.push_back({.receipt_handle = std::move(receipt_handle)});
  client_.delete_message_batch(
      std::move(request),
      loop_.counted(
          [this, batch](const client::Outcome<client::DeleteMessageBatchResult>& outcome) {
            consumer_.removed(batch, outcome, Clock::now());
            events_.answered();
          }));
}

void ClientConsumer::change_visibility(const Task& task, seconds timeout) {
  batcher_.change_visibility(
      {queue_url_, task->receipt_handle, timeout.count()},
      loop_.counted([this,
                     task](const client::Outcome<client::ChangeMessageVisibilityResult>& outcome) {
        if (!outcome)
          report("cannot give back message " + task->message_id +
                 ", which comes again when its visibility ends: " + outcome.error().to_string());
      }));
}

}  // namespace stanchion::worker
