// Creates a queue, sends to it, receives and deletes: once waiting for each answer, once with many
// calls under way.
//
//   AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324 ./hello
#include <stanchion/client.h>

#include <atomic>
#include <iostream>
#include <string>

namespace sqs = stanchion::client;

namespace {

int failed(const sqs::Error& error) {
  std::cerr << error.to_string() << "\n";
  return 1;
}

// Sends one after the other, each in a batch with others that are sent at the same time.
int send_many(sqs::Client& client, const std::string& queue_url, int count) {
  std::atomic<int> sent = 0;
  {
    sqs::Batcher batcher(client);
    for (int i = 0; i < count; ++i)
      batcher.send({.queue_url = queue_url, .message_body = "number " + std::to_string(i)},
                   [&](sqs::Outcome<sqs::SendMessageResult> outcome) {
                     if (outcome) ++sent;
                   });
  }  // Waits until all are answered.
  return sent;
}

}  // namespace

int main() {
  auto client = sqs::Client::open();
  if (!client) return failed(client.error());

  const auto queue = client->create_queue({.queue_name = "hello"});
  if (!queue) return failed(queue.error());

  const auto sent = client->send_message(
      {.queue_url = queue->queue_url,
       .message_body = "hello",
       .message_attributes = {{"language", sqs::MessageAttributeValue::text("C++")}}});
  if (!sent) return failed(sent.error());
  std::cout << "sent " << send_many(*client, queue->queue_url, 25) + 1 << "\n";

  int received = 0;
  while (received < 26) {
    const auto batch = client->receive_message({.queue_url = queue->queue_url,
                                                .max_number_of_messages = 10,
                                                .wait_time_seconds = 5,
                                                .message_attribute_names = {"All"}});
    if (!batch) return failed(batch.error());
    if (batch->messages.empty()) break;
    sqs::DeleteMessageBatchRequest done{.queue_url = queue->queue_url};
    for (const sqs::Message& message : batch->messages)
      done.entries.push_back({.receipt_handle = message.receipt_handle});
    const auto deleted = client->delete_message_batch(done);
    if (!deleted) return failed(deleted.error());
    received += static_cast<int>(deleted->successful.size());
  }
  std::cout << "received and deleted " << received << "\n";
  return received == 26 ? 0 : 1;
}
