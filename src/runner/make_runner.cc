#include "runner/make_runner.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <vector>

#include "net/url.h"
#include "runner/child_process.h"
#include "runner/filter.h"
#include "runner/http_runner.h"
#include "runner/lambda_runner.h"
#include "runner/line_process.h"

namespace stanchion::runner {
namespace {

using std::chrono::seconds;
using worker::TaskInformation;
using worker::Verdict;

// The status with which a shell says that it did not find a command.
constexpr int kNoCommand = 127;

class ExecRunner final : public Runner {
 public:
  ExecRunner(const WorkSettings& settings, JobStatus& job_status)
      : settings_(settings), job_status_(job_status) {}

  void attach(worker::QueueOptions& queue) override {
    queue.handler = [this](const TaskInformation& task) { return handle(task); };
  }

 private:
  Verdict handle(const TaskInformation& task) {
    const auto end = run_child(settings_.exec, task, seconds(settings_.timeout));
    if (!end) {
      job_status_.retried(task, end.error().message);
      return Verdict::retry_with_backoff();
    }
    if (end->exit_status == 0) return Verdict::done();
    if (settings_.reject_code != 0 && end->exit_status == settings_.reject_code)
      return Verdict::reject();
    std::string why = "the command " + end_in_words(end->wait_status);
    if (end->timed_out)
      why = fmt::format("took longer than --timeout {} and was killed", settings_.timeout);
    if (end->exit_status == kNoCommand) why += ": the shell did not find a command";
    job_status_.retried(task, why);
    return Verdict::retry_with_backoff();
  }

  const WorkSettings& settings_;
  JobStatus& job_status_;
};

class LinesRunner final : public Runner {
 public:
  LinesRunner(const WorkSettings& settings, JobStatus& job_status)
      : process_({.command = settings.lines,
                  .timeout = seconds(settings.timeout),
                  .can_reject = !settings.reject_to.empty()},
                 job_status) {}

  Status start() { return process_.start(); }
  void attach(worker::QueueOptions& queue) override {
    queue.async_handler = [this](const worker::Task& task, worker::Answer answer) {
      process_.begin(task, std::move(answer));
    };
  }
  void abandon() override { process_.abandon(); }
  void add_metrics(PrometheusText& text) const override {
    text.family("stanchion_work_restarts_total", PrometheusText::Type::kCounter,
                "Times that the process of --lines was started again.");
    text.sample({}, process_.restarts());
  }

 private:
  LineProcess process_;
};

}  // namespace

Result<std::unique_ptr<Runner>> make_runner(const WorkSettings& settings,
                                            const SealedTasks* periodic, JobStatus& job_status) {
  if (!settings.exec.empty()) return std::make_unique<ExecRunner>(settings, job_status);
  if (!settings.lines.empty()) {
    auto lines = std::make_unique<LinesRunner>(settings, job_status);
    RETURN_IF_FAILED(lines->start());
    return lines;
  }
  const bool lambda = !settings.lambda.empty();
  auto url = net::parse_url(lambda ? settings.lambda : settings.http);
  if (!url) return fail(fmt::format("--{}: {}", lambda ? "lambda" : "http", url.error().message));
  if (!lambda) return std::make_unique<HttpRunner>(settings, std::move(*url), periodic, job_status);
  std::vector<Filter> filters;
  for (const std::string& pattern : settings.filters) {
    auto filter = Filter::parse(pattern);
    if (!filter) return fail(fmt::format("--filter {}: {}", pattern, filter.error().message));
    filters.push_back(std::move(*filter));
  }
  return std::make_unique<LambdaRunner>(settings, invocation_url(std::move(*url)),
                                        std::move(filters), job_status);
}

}  // namespace stanchion::runner
