#include "cli/work.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "client/client.h"
#include "client/settings.h"
#include "client/small_file.h"
#include "log/log.h"
#include "os/clock.h"
#include "runner/cron_scheduler.h"
#include "runner/job_status.h"
#include "runner/live_view.h"
#include "runner/make_runner.h"
#include "runner/metrics_server.h"
#include "runner/runner.h"
#include "runner/settings.h"
#include "runner/task_seal.h"
#include "worker/worker.h"

namespace stanchion::cli {
namespace {

using std::chrono::seconds;
using worker::TaskInformation;
using worker::Verdict;

// How often the queues are asked for their figures: more often than pages are usually read.
constexpr seconds kMeasureEvery(5);

// Whether the message is older than --max-age.
bool is_expired(const TaskInformation& task, seconds max_age) {
  const auto found = task.attributes.find("SentTimestamp");
  if (found == task.attributes.end()) return false;
  const auto sent = parse_decimal(found->second);
  if (!sent) return false;
  const std::chrono::milliseconds age(to_millis(os::SystemClock().now()) -
                                      static_cast<std::int64_t>(*sent));
  return age > max_age;
}

// Forwards what is too old in place of handling it, and tells the JobStatus what begins and ends.
void wrap_handlers(worker::QueueOptions& queue, const runner::WorkSettings& settings,
                   runner::JobStatus& job_status) {
  const seconds max_age(queue.poison ? 0 : settings.max_age);
  const auto expired = [&job_status, &settings, max_age](const TaskInformation& task) {
    if (max_age.count() == 0 || !is_expired(task, max_age)) return false;
    job_status.problem(
        fmt::format("{}: message {} is older than --max-age {} and goes to --expired-to",
                    task.queue_name, task.message_id, settings.max_age));
    return true;
  };
  if (queue.async_handler) {
    queue.async_handler = [&job_status, &settings, expired, inner = std::move(queue.async_handler)](
                              const worker::Task& task, worker::Answer answer) {
      if (expired(*task)) return answer(Verdict::reject(settings.expired_to));
      job_status.begin(*task);
      inner(task, [&job_status, task, answer = std::move(answer)](Verdict verdict) {
        job_status.end(task->id);
        answer(std::move(verdict));
      });
    };
    return;
  }
  queue.handler = [&job_status, &settings, expired,
                   inner = std::move(queue.handler)](const TaskInformation& task) {
    if (expired(task)) return Verdict::reject(settings.expired_to);
    job_status.begin(task);
    Verdict verdict = inner(task);
    job_status.end(task.id);
    return verdict;
  };
}

worker::WorkerOptions options_of(const runner::WorkSettings& settings, runner::Runner& runner,
                                 runner::JobStatus& job_status) {
  worker::WorkerOptions options;
  // The page has figures of the queues, by which people scale.
  options.watch_load = !settings.metrics.empty();
  options.metrics_every = kMeasureEvery;
  options.on_error = [&job_status](const std::string& what) { job_status.problem(what); };
  if (!settings.lambda.empty()) options.failure_round *= static_cast<int>(settings.batch_size);
  worker::QueueOptions queue{.concurrency = settings.concurrency,
                             .visibility = seconds(settings.visibility),
                             .reject_to = settings.reject_to};
  const auto add = [&](const std::string& url) {
    queue.url = url;
    worker::QueueOptions& added = options.queues.emplace_back(queue);
    runner.attach(added);
    wrap_handlers(added, settings, job_status);
  };
  for (const std::string& url : settings.queue_urls) add(url);
  queue.poison = true;
  if (!settings.poison_queue_url.empty()) add(settings.poison_queue_url);
  queue.poison = false;
  if (!settings.cron_queue_url.empty()) add(settings.cron_queue_url);
  return options;
}

// The first SIGTERM or SIGINT finishes what is in flight, the second one gives it back.
void work_until_stopped(worker::Worker& worker, runner::Runner& runner,
                        runner::JobStatus& job_status, const sigset_t& signals) {
  int signal = 0;
  ::sigwait(&signals, &signal);
  job_status.note(
      "stopping once the running jobs have ended; a second signal gives their messages back");
  const pthread_t here = ::pthread_self();
  std::thread finishing([&worker, here] {
    worker.stop(std::chrono::hours(24 * 365));
    ::pthread_kill(here, SIGUSR1);
  });
  runner.finish();
  ::sigwait(&signals, &signal);
  if (signal != SIGUSR1) {
    worker.stop(seconds(0));
    runner.abandon();
  }
  finishing.join();
}

// Before the first thread begins, which inherits what is blocked.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, each);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A process or an endpoint may go away while it is written to.
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

bool wants_view(const runner::WorkSettings& settings) {
  if (!settings.log.empty()) return settings.log == "view";
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr &&
         terminal != std::string_view("dumb");
}

std::unique_ptr<log::Log> make_log(const runner::WorkSettings& settings) {
  return std::make_unique<log::Log>(log::LogSettings{
      .format = settings.log == "text" ? log::LogFormat::kText : log::LogFormat::kJson});
}

// A message must be forwarded before SQS deletes it.
Status check_retention(client::Client& client, const runner::WorkSettings& settings) {
  if (settings.max_age == 0) return {};
  for (const std::string& url : settings.queue_urls) {
    auto found = client.get_queue_attributes(
        {.queue_url = url, .attribute_names = {"MessageRetentionPeriod"}});
    if (!found) return fail(fmt::format("{}: {}", url, found.error().to_string()));
    const auto retention = parse_decimal(found->attributes["MessageRetentionPeriod"]);
    if (retention && static_cast<std::uint64_t>(settings.max_age) >= *retention)
      return fail(
          fmt::format("{} keeps messages for {} s: with --max-age {} they are deleted before they "
                      "are forwarded",
                      url, *retention, settings.max_age));
  }
  return {};
}

Result<std::vector<runner::PeriodicTask>> read_cron(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(fmt::format("--cron: {} cannot be read", path));
  std::string text(runner::kCronBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  auto tasks = runner::parse_cron_yaml(text);
  if (!tasks) return fail(fmt::format("{}: {}", path, tasks.error().message));
  return tasks;
}

constexpr std::size_t kKeyFileBytesMax = 16 * 1024;

Result<runner::TaskSeal> read_seal(const runner::WorkSettings& settings,
                                   const client::Options& options) {
  if (!settings.cron_key.empty()) {
    const auto text = client::read_small_file(settings.cron_key, kKeyFileBytesMax);
    if (!text) return fail(fmt::format("--cron-key: {}", text.error().message));
    if (!*text) return fail(fmt::format("--cron-key: there is no {}", settings.cron_key));
    auto seal = runner::TaskSeal::of_lines(**text);
    if (!seal)
      return fail(fmt::format("--cron-key: {}: {}", settings.cron_key, seal.error().message));
    return seal;
  }
  const auto found = client::read_settings(options, client::process_environment());
  if (!found) return fail(found.error().to_string());
  const auto credentials = found->credentials();
  if (!credentials) return fail(credentials.error().to_string());
  return runner::TaskSeal::of_credentials(*credentials);
}

// Null without --cron.
Result<std::unique_ptr<runner::SealedTasks>> read_periodic(const runner::WorkSettings& settings,
                                                           const client::Options& options) {
  if (settings.cron.empty()) return nullptr;
  auto tasks = read_cron(settings.cron);
  if (!tasks) return std::unexpected(tasks.error());
  auto seal = read_seal(settings, options);
  if (!seal) return std::unexpected(seal.error());
  return std::make_unique<runner::SealedTasks>(std::move(*tasks), std::move(*seal));
}

std::string metrics_page(const worker::Worker& worker, const runner::Runner& runner) {
  PrometheusText own;
  runner.add_metrics(own);
  return worker.metrics().to_prometheus() + own.take();
}

std::string totals(const worker::Worker& worker) {
  std::uint64_t done = 0;
  std::uint64_t retried = 0;
  for (const auto& queue : worker.metrics().queues) {
    done += queue.done;
    retried += queue.retried;
  }
  return fmt::format("stopped; {} jobs were done, {} retried", done, retried);
}

// What runs beside the worker, until it has stopped.
int work_with(worker::Worker& worker, client::Client& client, const runner::WorkSettings& settings,
              const runner::SealedTasks* periodic, runner::Runner& runner,
              runner::JobStatus& job_status, const sigset_t& signals) {
  std::unique_ptr<runner::MetricsServer> metrics;
  if (!settings.metrics.empty()) {
    auto started = runner::MetricsServer::start(
        settings.metrics, [&worker, &runner] { return metrics_page(worker, runner); });
    if (!started) {
      worker.stop(seconds(0));
      runner.abandon();
      return give_up(started.error().message, kExitFailed);
    }
    metrics = std::move(*started);
    job_status.note(fmt::format("metrics at http://{}/metrics", metrics->address()));
  }
  if (periodic != nullptr && periodic->seal.everybody_can_sign())
    job_status.note(
        "there are no credentials to derive a key from: anybody who may send to --cron-queue-url "
        "can trigger the tasks of --cron at any time; --cron-key FILE prevents that");
  std::optional<runner::CronScheduler> scheduler;
  if (periodic != nullptr)
    scheduler.emplace(*periodic, settings.cron_queue_url, client, job_status);
  std::optional<runner::LiveView> view;
  if (wants_view(settings))
    view.emplace(
        STDERR_FILENO, [&worker] { return worker.metrics(); }, job_status);
  job_status.note("working");
  work_until_stopped(worker, runner, job_status, signals);
  if (view) {
    view.reset();
    complain(totals(worker));
  }
  job_status.note(totals(worker));
  return kExitOk;
}

int work(const runner::WorkSettings& settings) {
  if (const std::string mistake = runner::mistake_in(settings); !mistake.empty())
    return give_up("work: " + mistake, kExitSettings);
  const client::Options options = client::with_endpoint_of_queue({}, settings.queue_urls.front());
  const auto periodic = read_periodic(settings, options);
  if (!periodic) return give_up(periodic.error().message, kExitSettings);
  const sigset_t signals = block_signals();
  auto client = client::Client::open(options);
  if (!client) return give_up(client.error().to_string(), kExitSettings);
  if (const auto kept = check_retention(*client, settings); !kept)
    return give_up(kept.error().message, kExitFailed);
  runner::JobStatus job_status(wants_view(settings) ? nullptr : make_log(settings));
  auto runner = runner::make_runner(settings, periodic->get(), job_status);
  if (!runner) return give_up(runner.error().message, kExitSettings);
  auto opened = worker::Worker::open(*client, options_of(settings, **runner, job_status));
  if (!opened) return give_up(opened.error().to_string(), kExitFailed);
  return work_with(**opened, *client, settings, periodic->get(), **runner, job_status, signals);
}

constexpr const char* kNotes =
    "The environment of --exec has SQS_MESSAGE_ID, SQS_QUEUE_NAME, SQS_QUEUE_URL,\n"
    "SQS_QUEUE_ARN, SQS_RECEIPT_HANDLE, SQS_RECEIVE_COUNT, SQS_POISON and, if the message has\n"
    "one, SQS_GROUP_ID. Credentials and region come from the environment, as for the AWS\n"
    "CLI. On a terminal, the command shows its work live; elsewhere the log is JSON on standard\n"
    "error. SIGTERM finishes running jobs; a second one gives their messages back and ends the\n"
    "processes.\n"
    "Examples:\n"
    "  stanchion work --queue-url http://127.0.0.1:9324/000000000000/orders --exec ./handle\n"
    "  stanchion work --queue-url \"$URL\" --http http://127.0.0.1:8080/orders\n"
    "  stanchion work --queue-url \"$URL\" --lambda http://127.0.0.1:9000 --batch-size 5";

// Adds the flags of one command, each with its value's name and its help.
class Flags {
 public:
  Flags(const Command& command, runner::WorkSettings& settings) : command_(command), s_(settings) {}

  void add() {
    add_common();
    add_http();
    add_lambda();
    option("--metrics", s_.metrics, "HOST:PORT", "Serve figures for Prometheus at /metrics there");
    option("--log", s_.log, "json|text|view",
           "The output on standard error: a log, or a live view on a terminal");
  }

 private:
  Option option(const char* flag, auto& value, const char* kind, const char* help) {
    return command_.option(flag, value, help).value(kind);
  }
  void number(const char* flag, auto& value, const char* kind, int least, int most,
              const char* help) {
    option(flag, value, kind, help).with_default().between(least, most);
  }

  void add_common();
  void add_http();
  void add_lambda();

  const Command& command_;
  runner::WorkSettings& s_;
};

void Flags::add_common() {
  constexpr int kSecondsMax = 43'200;
  constexpr int kRetentionMax = 1'209'600;
  option("--queue-url", s_.queue_urls, "URL", "A queue; may be repeated").required();
  option("--exec", s_.exec, "COMMAND",
         "Run by /bin/sh for each message, with the body as its input: exit status 0 deletes the "
         "message, any other retries it");
  option("--lines", s_.lines, "COMMAND",
         "Run by /bin/sh once, and again if it ends: reads a line of JSON for each message and "
         "answers each with a line such as {\"id\":\"7\",\"verdict\":\"done\"}");
  option("--http", s_.http, "URL",
         "Post each message there, as the worker daemon of Elastic Beanstalk does: status 200 "
         "deletes the message, any other retries it");
  option("--lambda", s_.lambda, "URL",
         "Invoke a function with batches, as Lambda's event source mapping does: a runtime "
         "interface (http://127.0.0.1:9000) or any URL that takes the event");
  number("--concurrency", s_.concurrency, "NUMBER", 1, 10'000,
         "Messages to handle at the same time, per queue; for --lambda: invocations");
  number("--visibility", s_.visibility, "SECONDS", 0, kSecondsMax,
         "How soon a message becomes visible again if this program dies; extended while it is "
         "handled; 0: the queue's own timeout");
  number("--timeout", s_.timeout, "SECONDS", 0, kSecondsMax,
         "Kill a process or give up a call that takes longer, and retry its message; 0: never for "
         "a process, 299 for --http, 900 for --lambda");
  option("--reject-code", s_.reject_code, "NUMBER",
         "The exit status of --exec, or the HTTP status, that moves the message to --reject-to")
      .between(1, 599);
  option("--reject-to", s_.reject_to, "URL", "The queue for rejected messages");
  option("--max-age", s_.max_age, "SECONDS",
         "Send older messages to --expired-to instead of handling them, before SQS deletes them")
      .between(1, kRetentionMax);
  option("--expired-to", s_.expired_to, "URL", "The queue for messages that are too old");
  option("--poison-queue-url", s_.poison_queue_url, "URL",
         "A dead-letter queue to consume as well, with SQS_POISON=1");
}

void Flags::add_http() {
  option("--mime-type", s_.mime_type, "TYPE", "The Content-Type of --http").with_default();
  number("--error-visibility", s_.error_visibility, "SECONDS", 0, 43'200,
         "How long a message stays invisible after a status other than 200");
  option("--cron", s_.cron, "FILE",
         "A cron.yaml of periodic tasks, which are posted to their paths at --http");
  option("--cron-queue-url", s_.cron_queue_url, "URL",
         "The FIFO queue of periodic tasks, so that only one of several workers posts each");
  option("--cron-key", s_.cron_key, "FILE",
         "The key with which workers sign periodic tasks, the same for all of them; unless given, "
         "it is derived from the secret access key");
}

void Flags::add_lambda() {
  number("--batch-size", s_.batch_size, "NUMBER", 1, 10'000, "Messages of one invocation, at most");
  number("--batch-window", s_.batch_window, "SECONDS", 0, 300,
         "How long a batch may wait to fill up");
  option("--filter", s_.filters, "PATTERN",
         "A JSON pattern like Lambda's filters; may be repeated. Messages that no pattern matches "
         "are deleted");
  command_.flag("--whole-batch{false}", s_.partial_response,
                "Any answer of the function that is not an error deletes the batch; otherwise "
                "the function may name failed messages (batchItemFailures)");
}

}  // namespace

void add_work(Program& program) {
  const auto settings = std::make_shared<runner::WorkSettings>();
  Command command =
      program.add("work", "Handle the messages of queues with a command or an endpoint",
                  [settings] { return work(*settings); });
  Flags(command, *settings).add();
  command.notes(kNotes);
}

}  // namespace stanchion::cli
