// How fast a worker is whose handler does nothing: fills a queue, and then measures how long the
// worker takes to receive and delete what is in it.
//
//   worker_bench ENDPOINT [MESSAGES [IN-FLIGHT]]
//
// Prints one line of JSON. bench/compare worker sets it beside the cycle of `stanchion bench`.
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "client/batcher.h"
#include "client/client.h"
#include "worker/worker.h"

namespace {

using namespace stanchion;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kBodySize = 100;  // As of `stanchion bench`.

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool fill(client::Client& client, const std::string& url, std::size_t messages) {
  std::atomic<bool> failed = false;
  client::Batcher batcher(client, {.waiting_max = messages});
  for (std::size_t i = 0; i < messages; ++i)
    batcher.send({.queue_url = url, .message_body = std::string(kBodySize, 'x')},
                 [&](const auto& sent) {
                   if (!sent) failed = true;
                 });
  batcher.drain();
  return !failed;
}

int measure(client::Client& client, const std::string& url, std::size_t messages,
            std::size_t in_flight) {
  std::mutex mutex;
  std::condition_variable all;
  std::atomic<std::size_t> handled = 0;
  const auto began = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds();
  auto worker = worker::Worker::open(client, {.queues = {{.url = url, .concurrency = in_flight}},
                                              .handler = [&](const worker::TaskInformation&) {
                                                if (++handled == messages) {
                                                  const std::lock_guard lock(mutex);
                                                  all.notify_one();
                                                }
                                                return worker::Verdict::done();
                                              }});
  if (!worker) return std::fprintf(stderr, "%s\n", worker.error().to_string().c_str()), 1;
  {
    std::unique_lock lock(mutex);
    all.wait(lock, [&] { return handled >= messages; });
  }
  // The last deletes count as well.
  (*worker)->stop(std::chrono::seconds(60));
  const Seconds took = std::chrono::steady_clock::now() - began;
  const auto metrics = (*worker)->metrics().queues.at(0);
  if (metrics.done != messages || metrics.errors != 0)
    return std::fprintf(stderr, "%llu of %zu messages are done\n",
                        static_cast<unsigned long long>(metrics.done), messages),
           1;
  std::printf("{\"messages\": %zu, \"in_flight\": %zu, \"result\": %.0f, \"client_cpu\": %.2f}\n",
              messages, in_flight, static_cast<double>(messages) / took.count(),
              (cpu_seconds() - cpu_before) / took.count());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const auto number = [&](int at, std::size_t otherwise) {
    return count > at ? static_cast<std::size_t>(std::atoll(arguments[at])) : otherwise;
  };
  if (count < 2) return std::fprintf(stderr, "worker_bench ENDPOINT [MESSAGES [IN-FLIGHT]]\n"), 2;
  const std::size_t messages = number(2, 300'000);
  auto client = client::Client::open({.endpoint = arguments[1]});
  if (!client) return std::fprintf(stderr, "%s\n", client.error().to_string().c_str()), 1;
  const auto queue = client->create_queue({.queue_name = "worker-bench"});
  if (!queue) return std::fprintf(stderr, "%s\n", queue.error().to_string().c_str()), 1;
  if (!fill(*client, queue->queue_url, messages)) {
    std::fprintf(stderr, "the queue cannot be filled\n");
    return 1;
  }
  return measure(*client, queue->queue_url, messages, number(3, 64));
}
