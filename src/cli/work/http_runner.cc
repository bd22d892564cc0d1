#include "cli/work/http_runner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.h"
#include "cli/work/cron.h"

namespace stanchion::cli {
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
                                const std::string& mime_type, bool scheduled) {
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
  if (scheduled) {
    add("X-Aws-Sqsd-Taskname", text_attribute(task, kTaskNameAttribute));
    add("X-Aws-Sqsd-Scheduled-At", text_attribute(task, kTaskTimeAttribute));
    if (const std::string path = text_attribute(task, kTaskPathAttribute); path.starts_with('/'))
      request.url.path = path;
    return request;
  }
  for (const auto& [name, value] : task.message_attributes)
    if (value.string_value && is_header_name(name))
      add("X-Aws-Sqsd-Attr-" + name, *value.string_value);
  return request;
}

HttpRunner::HttpRunner(const WorkSettings& settings, net::Url url, Board& board)
    : settings_(settings),
      url_(std::move(url)),
      board_(board),
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
  const bool scheduled = !settings_.cron.empty() && task->queue_url == settings_.cron_queue_url;
  const std::uint64_t number = ++next_;
  const auto call = calls_.emplace(number, Call{task, std::move(answer)}).first;
  call->second.id = loop_.call(
      sqsd_request(*task, url_, settings_.mime_type, scheduled),
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
  board_.retried(
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

}  // namespace stanchion::cli
