// A worker whose jobs never end, to be killed: stuck_worker ENDPOINT QUEUE-URL VISIBILITY-SECONDS
//
// Prints the body of each message that a job has begun with.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "client/client.h"
#include "worker/worker.h"

namespace {

using namespace stanchion;

// Locked by main, for good.
std::mutex never;

worker::Verdict hang(const worker::TaskInformation& task) {
  std::printf("%s\n", task.body.c_str());
  std::fflush(stdout);
  const std::lock_guard lock(never);
  return worker::Verdict::done();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::lock_guard lock(never);
  auto client = client::Client::open({.endpoint = arguments[1]});
  if (!client) return 1;
  auto opened = worker::Worker::open(
      *client, {.queues = {{.url = arguments[2],
                            .visibility = std::chrono::seconds(std::atoi(arguments[3]))}},
                .handler = hang});
  if (!opened) return 1;
  for (;;) ::pause();
}
