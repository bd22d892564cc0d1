// Sends twenty messages and handles each of them in a worker, four at the same time.
//
//   AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324 ./work
#include <stanchion/client.h>
#include <stanchion/worker.h>

#include <chrono>
#include <iostream>
#include <latch>
#include <string>

namespace sqs = stanchion::client;
using stanchion::worker::TaskInformation;
using stanchion::worker::Verdict;
using stanchion::worker::Worker;

namespace {

constexpr int kMessages = 20;

int failed(const sqs::Error& error) {
  std::cerr << error.to_string() << "\n";
  return 1;
}

}  // namespace

int main() {
  auto client = sqs::Client::open();
  if (!client) return failed(client.error());
  const auto queue = client->create_queue({.queue_name = "work"});
  if (!queue) return failed(queue.error());
  for (int i = 0; i < kMessages; ++i) {
    const auto sent = client->send_message(
        {.queue_url = queue->queue_url, .message_body = "job " + std::to_string(i)});
    if (!sent) return failed(sent.error());
  }

  std::latch handled(kMessages);
  auto worker = Worker::open(
      *client, {.queues = {{.url = queue->queue_url, .concurrency = 4}},
                .handler =
                    [&](const TaskInformation& task) {
                      if (!task.body.starts_with("job ")) return Verdict::retry_with_backoff();
                      handled.count_down();
                      return Verdict::done();
                    },
                .on_error = [](const std::string& what) { std::cerr << what + "\n"; }});
  if (!worker) return failed(worker.error());
  handled.wait();
  const auto report = (*worker)->stop(std::chrono::seconds(30));
  std::cout << "handled and deleted " << (*worker)->metrics().queues[0].done << ", given back "
            << report.given_back << "\n";
}
