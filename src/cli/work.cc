#include "cli/work.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/child_process.h"
#include "cli/exit_codes.h"
#include "cli/program.h"
#include "client/client.h"
#include "worker/worker.h"

namespace stanchion::cli {
namespace {

using std::chrono::seconds;
using worker::TaskInformation;
using worker::Verdict;

struct WorkSettings {
  std::vector<std::string> queue_urls;
  std::string poison_queue_url;
  std::string command;
  std::size_t concurrency = 10;
  int visibility = 0;
  int timeout = 0;
  int reject_code = 0;
  std::string reject_to;
};

Verdict handle(const WorkSettings& settings, const TaskInformation& task) {
  const auto end = run_child(settings.command, task, seconds(settings.timeout));
  if (!end) {
    complain(fmt::format("{}: {}; the message is retried", task.message_id, end.error().message));
    return Verdict::retry_with_backoff();
  }
  if (end->exit_status == 0) return Verdict::done();
  if (settings.reject_code != 0 && end->exit_status == settings.reject_code)
    return Verdict::reject();
  const std::string why =
      end->timed_out ? fmt::format("took longer than --timeout {} and was killed", settings.timeout)
      : end->exit_status == 127 ? "ended with 127: the shell did not find a command"
                                : fmt::format("ended with {}", end->exit_status);
  complain(fmt::format("{}: {}; the message is retried", task.message_id, why));
  return Verdict::retry_with_backoff();
}

worker::WorkerOptions options_of(const WorkSettings& settings) {
  worker::WorkerOptions options;
  options.handler = [&settings](const TaskInformation& task) { return handle(settings, task); };
  options.on_error = [](const std::string& what) { complain(what); };
  worker::QueueOptions queue{.concurrency = settings.concurrency,
                             .visibility = seconds(settings.visibility),
                             .reject_to = settings.reject_to};
  for (const std::string& url : settings.queue_urls) {
    queue.url = url;
    options.queues.push_back(queue);
  }
  if (!settings.poison_queue_url.empty()) {
    queue.url = settings.poison_queue_url;
    queue.poison = true;
    options.queues.push_back(queue);
  }
  return options;
}

// The first SIGTERM or SIGINT finishes what is in hand, the second one gives it back.
void work_until_stopped(worker::Worker& worker, const sigset_t& signals) {
  int signal = 0;
  ::sigwait(&signals, &signal);
  announce("stopping when the jobs in hand have ended; once more to give them back");
  const pthread_t here = ::pthread_self();
  std::thread finishing([&worker, here] {
    worker.stop(std::chrono::hours(24 * 365));
    ::pthread_kill(here, SIGUSR1);
  });
  ::sigwait(&signals, &signal);
  if (signal != SIGUSR1) worker.stop(seconds(0));
  finishing.join();
}

int work(const WorkSettings& settings) {
  if ((settings.reject_code != 0) == settings.reject_to.empty())
    return complain("--reject-code and --reject-to need each other"), kExitSettings;
  // Before the first thread begins, which inherits what is blocked.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto client =
      client::Client::open(client::with_endpoint_of_queue({}, settings.queue_urls.front()));
  if (!client) return complain(client.error().to_string()), kExitSettings;
  auto opened = worker::Worker::open(*client, options_of(settings));
  if (!opened) return complain(opened.error().to_string()), kExitFailed;
  announce("working");
  work_until_stopped(**opened, signals);
  return kExitOk;
}

}  // namespace

void add_work(Program& program) {
  const auto settings = std::make_shared<WorkSettings>();
  CLI::App& command = program.add("work", "Handle the messages of queues by a command",
                                  [settings] { return work(*settings); });
  const auto option = [&](const char* flag, auto& value, const char* kind, const char* help) {
    return command.add_option(flag, value, help)->type_name(kind);
  };
  option("--queue-url", settings->queue_urls, "URL", "A queue; may be repeated")->required();
  option("--exec", settings->command, "COMMAND",
         "Run by /bin/sh for each message, with the body as its input: 0 deletes the message, "
         "any other exit status retries it")
      ->required();
  option("--concurrency", settings->concurrency, "NUMBER", "Processes at the same time, per queue")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  option("--visibility", settings->visibility, "SECONDS",
         "How soon a message comes again after this program dies; extended while its process "
         "runs; 0: the queue's own timeout")
      ->capture_default_str()
      ->check(CLI::Range(0, 43'200));
  option("--timeout", settings->timeout, "SECONDS",
         "Kill a process that takes longer, and retry its message; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0, 43'200));
  option("--reject-code", settings->reject_code, "NUMBER",
         "An exit status that sends the message to --reject-to and deletes it")
      ->check(CLI::Range(1, 255));
  option("--reject-to", settings->reject_to, "URL", "The queue for rejected messages");
  option("--poison-queue-url", settings->poison_queue_url, "URL",
         "A dead-letter queue to handle as well, with SQS_POISON=1");
  command.footer(
      "The environment of the command has SQS_MESSAGE_ID, SQS_QUEUE_NAME, SQS_QUEUE_URL,\n"
      "SQS_QUEUE_ARN, SQS_RECEIPT_HANDLE, SQS_RECEIVE_COUNT, SQS_POISON and, if the message has\n"
      "one, SQS_GROUP_ID. Credentials and region are taken from the environment, as the AWS CLI\n"
      "does. SIGTERM finishes what is in hand; a second one gives it back and ends the processes.\n"
      "Example:\n"
      "  stanchion work --queue-url http://127.0.0.1:9324/000000000000/orders --exec ./handle");
}

}  // namespace stanchion::cli
