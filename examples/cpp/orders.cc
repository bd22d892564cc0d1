// Takes orders from a queue and stores each of them once, as docs/guide/processing-messages-safely.md
// describes. Ends on SIGTERM.
//
//   QUEUE_URL=http://127.0.0.1:9324/000000000000/orders STORE=/var/lib/orders ./orders
#include <stanchion/client.h>
#include <stanchion/worker.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

namespace fs = std::filesystem;
namespace sqs = stanchion::client;
using stanchion::worker::TaskInformation;
using stanchion::worker::Verdict;
using stanchion::worker::Worker;

namespace {

// Idempotent: the name of the file is the order, and a file that is there is complete.
void store(const fs::path& folder, const std::string& order, const std::string& message_id) {
  if (fs::exists(folder / order)) return;
  const fs::path unfinished = folder / ("." + message_id);
  std::ofstream(unfinished) << order << "\n";
  fs::rename(unfinished, folder / order);
}

Verdict handle(const fs::path& folder, const TaskInformation& task) {
  std::cout << "handling " + task.body + ", delivery " + std::to_string(task.receive_count) + "\n"
            << std::flush;
  if (task.body.starts_with("bad")) throw std::invalid_argument("that is no order");
  // Longer than the visibility timeout; the worker holds the message meanwhile.
  if (task.body.starts_with("slow")) std::this_thread::sleep_for(std::chrono::seconds(15));
  store(folder, task.body, task.message_id);
  return Verdict::done();
}

int failed(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

}  // namespace

int main() {
  const char* url = std::getenv("QUEUE_URL");
  const char* folder = std::getenv("STORE");
  if (url == nullptr || folder == nullptr) return failed("set QUEUE_URL and STORE");

  sigset_t signals;  // Blocked before the first thread begins, so that only sigwait() gets them.
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto client = sqs::Client::open(sqs::with_endpoint_of_queue({}, url));
  if (!client) return failed(client.error().to_string());
  auto worker = Worker::open(
      *client, {.queues = {{.url = url, .concurrency = 4, .visibility = std::chrono::seconds(10)}},
                .handler = [&](const TaskInformation& task) { return handle(folder, task); },
                .on_error = [](const std::string& what) { std::cerr << what + "\n"; }});
  if (!worker) return failed(worker.error().to_string());

  int signal = 0;
  sigwait(&signals, &signal);
  (*worker)->stop(std::chrono::seconds(30));
}
