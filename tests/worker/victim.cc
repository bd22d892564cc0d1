// A worker or a distributor in a process of its own, to be killed:
//
//   victim worker|pausable ENDPOINT QUEUE-URL VISIBILITY-SECONDS EFFECTS
//   victim distributor ENDPOINT WORK-QUEUE-URL TENANT-URL...
//
// A worker appends to the file EFFECTS what its jobs do, one line each: "PID begins|ends|fails
// GROUP BODY RECEIVE-COUNT". What the body says decides about the job: "hang…" never ends, "throw…"
// fails the first time, "poison…" always, "slow…" takes two periods of visibility, "publish…" sends
// two results to "results.fifo" and then hangs the first time; all others end at once.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include "client/client.h"
#include "worker/distributor.h"
#include "worker/worker.h"

namespace {

using namespace stanchion;
using std::chrono::seconds;
using worker::TaskInformation;
using worker::Verdict;

int effects = -1;
seconds visibility{0};

void record(const char* what, const TaskInformation& task) {
  const auto group = task.attributes.find("MessageGroupId");
  const std::string line = std::to_string(::getpid()) + " " + what + " " +
                           (group == task.attributes.end() ? "-" : group->second) + " " +
                           task.body + " " + std::to_string(task.receive_count) + "\n";
  // One write to the end of the file is not mixed with others.
  if (::write(effects, line.data(), line.size()) < 0) std::abort();
}

// Until the time is over, or the message is lost.
void wait(const TaskInformation& task, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any told;
  std::unique_lock lock(mutex);
  told.wait_for(lock, task.stop(), time, [] { return false; });
}

Verdict handle(const TaskInformation& task) {
  record("begins", task);
  const bool first = task.receive_count == 1;
  const auto is = [&](const char* kind) { return task.body.starts_with(kind); };
  if (is("publish")) {
    for (const char* part : {"-a", "-b"})
      task.publish({.queue = {.name = "results.fifo"}, .body = task.body + part});
  }
  if (is("hang") || (is("publish") && first)) wait(task, std::chrono::hours(1));
  if (is("poison") || (is("throw") && first)) {
    record("fails", task);
    throw std::runtime_error("as its body says");
  }
  if (is("slow")) wait(task, 2 * visibility);
  record(task.loss() ? "fails" : "ends", task);
  return task.loss() ? Verdict::retry() : Verdict::done();
}

int work(client::Client& client, bool pausable, char** arguments) {
  visibility = seconds(std::atoi(arguments[1]));
  effects = ::open(arguments[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  auto opened = worker::Worker::open(client, {.queues = {{.url = arguments[0],
                                                          .concurrency = 8,
                                                          .visibility = visibility,
                                                          .wait = seconds(2),
                                                          .backoff = {.base = seconds(0)},
                                                          .pausable = pausable}},
                                              .handler = handle,
                                              .failure_share_max = 1.1,
                                              .pause_check = std::chrono::milliseconds(500)});
  if (!opened) return 1;
  for (;;) ::pause();
}

int distribute(client::Client& client, char** arguments) {
  worker::DistributorOptions options{
      .work_queue_url = arguments[0], .window = 1'000'000, .visibility = seconds(1)};
  for (char** tenant = arguments + 1; *tenant != nullptr; ++tenant)
    options.tenants.push_back({.queue_url = *tenant});
  auto opened = worker::MessageDistributor::open(client, std::move(options));
  if (!opened) return 1;
  for (;;) ::pause();
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const std::string what = arguments[1];
  auto client = client::Client::open({.endpoint = arguments[2]});
  if (!client) return 1;
  if ((what == "worker" || what == "pausable") && count == 6)
    return work(*client, what == "pausable", arguments + 3);
  if (what == "distributor") return distribute(*client, arguments + 3);
  return 2;
}
