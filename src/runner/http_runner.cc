#include "runner/http_runner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "runner/cron.h"

namespace stanchion::runner {
namespace {

using std::chrono::seconds;
using worker::TaskInformation;
using worker::Verdict;

// The time for an answer unless --timeout says another: sqsd's InactivityTimeout.
constexpr seconds kAnswerTime(299);
constexpr seconds kConnectTime(5);
// An answer's body is not used, except for its beginning in a message about an error.
constexpr std::size_t kAnswerBytesMax = 1 << 20;

// What may stand in a header: control characters would end it.
std::string header_value(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

bool is_header_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string attribute(const TaskInformation& task, const char* name) {
  const auto found = task.attributes.find(name);
  return found == task.attributes.end() ? std::string() : found->second;
}

std::string text_attribute(const TaskInformation& task, const char* name) {
  const auto found = task.message_attributes.find(name);
  return found == task.message_attributes.end() ? std::string()
                                                : found->second.string_value.value_or("");
}

// "2026-11-16T12:00:00Z" of milliseconds since 1970; empty if they are none.
std::string iso_time(const std::string& millis) {
  const auto number = parse_decimal(millis);
  if (!number) return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(*number / 1000)));
}

}  // namespace

net::ClientRequest sqsd_request(const TaskInformation& task, const net::Url& url,
                                const std::string& mime_type, const PeriodicTask* periodic) {
  net::ClientRequest request{.method = "POST", .url = url, .body = task.body};
  const auto add = [&](std::string name, const std::string& value) {
    if (!value.empty()) request.headers.emplace_back(std::move(name), header_value(value));
  };
  add("User-Agent", "aws-sqsd/1.1");
  add("Content-Type", mime_type);
  add("X-Aws-Sqsd-Msgid", task.message_id);
  add("X-Aws-Sqsd-Queue", task.queue_name);
  add("X-Aws-Sqsd-First-Received-At",
      iso_time(attribute(task, "ApproximateFirstReceiveTimestamp")));
  add("X-Aws-Sqsd-Receive-Count", fmt::to_string(task.receive_count));
  add("X-Aws-Sqsd-Sender-Id", attribute(task, "SenderId"));
  if (periodic != nullptr) {
    add("X-Aws-Sqsd-Taskname", periodic->name);
    add("X-Aws-Sqsd-Scheduled-At", text_attribute(task, kTaskTimeAttribute));
    request.url.path = periodic->path;
    request.body = kTaskBody;  // Which is not signed.
    return request;
  }
  for (const auto& [name, value] : task.message_attributes)
    if (value.string_value && is_header_name(name))
      add("X-Aws-Sqsd-Attr-" + name, *value.string_value);
  return request;
}

HttpRunner::HttpRunner(const WorkSettings& settings, net::Url url, const SealedTasks* periodic,
                       JobStatus& job_status)
    : settings_(settings),
      url_(std::move(url)),
      periodic_(periodic),
      job_status_(job_status),
      forged_(job_status.problem_teller(),
              "--cron-queue-url: {} more messages that no worker has signed, or sent in time, were "
              "left out"),
      loop_({.connect_timeout = kConnectTime,
             .request_timeout = settings.timeout > 0 ? seconds(settings.timeout) : kAnswerTime,
             .limits = {.body_bytes = kAnswerBytesMax},
             .idle_max = settings.concurrency}) {}

void HttpRunner::attach(worker::QueueOptions& queue) {
  queue.async_handler = [this](const worker::Task& task, worker::Answer answer) {
    loop_.post(
        [this, task, answer = std::move(answer)]() mutable { begin(task, std::move(answer)); });
  };
}

void HttpRunner::begin(const worker::Task& task, worker::Answer answer) {
  if (periodic_ != nullptr && task->queue_url == settings_.cron_queue_url)
    return begin_periodic(task, std::move(answer));
  post(task, nullptr, std::move(answer));
}

// If one that is not posted came again, it would keep the tasks of its group waiting.
void HttpRunner::leave_out(const worker::TaskInformation& task, std::string_view why,
                           const worker::Answer& answer) {
  const bool kept = !settings_.reject_to.empty();
  forged_.say(fmt::format("{}: message {}: {}, and is not posted but {}", task.queue_name,
                          task.message_id, why, kept ? "sent to --reject-to" : "deleted"),
              std::chrono::steady_clock::now());
  answer(kept ? Verdict::reject() : Verdict::done());
}

void HttpRunner::begin_periodic(const worker::Task& task, worker::Answer answer) {
  const std::string name = text_attribute(*task, kTaskNameAttribute);
  const std::string time = text_attribute(*task, kTaskTimeAttribute);
  if (!periodic_->seal.is_signed(task->queue_name, name, time,
                                 text_attribute(*task, kSignatureAttribute)))
    return leave_out(*task, "is not signed by a worker with this one's key (--cron-key)", answer);
  if (was_sent_too_late(time, attribute(*task, "SentTimestamp")))
    return leave_out(*task, "was sent more than a day after its time, by no worker", answer);
  const PeriodicTask* const periodic = periodic_->find(name);
  if (periodic == nullptr) {
    // Signed by a worker that has another file; perhaps that one gets it next.
    job_status_.retried(*task, fmt::format("the periodic task \"{}\" is not in {}", in_short(name),
                                           settings_.cron));
    return answer(Verdict::retry_with_backoff());
  }
  post(task, periodic, std::move(answer));
}

void HttpRunner::post(const worker::Task& task, const PeriodicTask* periodic,
                      worker::Answer answer) {
  const std::uint64_t number = ++next_;
  const auto call = calls_.emplace(number, Call{task, std::move(answer)}).first;
  call->second.id = loop_.call(
      sqsd_request(*task, url_, settings_.mime_type, periodic),
      [this, number](const Result<net::ClientResponse>& response) { end(number, response); });
}

void HttpRunner::end(std::uint64_t number, const Result<net::ClientResponse>& response) {
  auto call = calls_.extract(number);
  if (!call) return;
  call.mapped().answer(verdict_of(*call.mapped().task, response));
}

Verdict HttpRunner::verdict_of(const TaskInformation& task,
                               const Result<net::ClientResponse>& response) {
  if (response && response->status == 200) return Verdict::done();
  if (response && settings_.reject_code != 0 && response->status == settings_.reject_code)
    return Verdict::reject();
  job_status_.retried(
      task, response ? "the endpoint " + answer_in_words(*response) : response.error().message);
  return Verdict::retry(seconds(settings_.error_visibility));
}

void HttpRunner::abandon() {
  loop_.post([this] {
    for (auto& [number, call] : std::exchange(calls_, {})) {
      loop_.cancel(call.id);
      call.answer(Verdict::retry());
    }
  });
}

}  // namespace stanchion::runner
