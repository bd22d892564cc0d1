#include "runner/job_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "base/terminal.h"
#include "base/text.h"
#include "log/log.h"
#include "os/clock.h"

namespace stanchion::runner {
namespace {

constexpr std::size_t kKept = 5;
constexpr std::size_t kBytesMax = 2'000;

std::int64_t sent_millis_of(const worker::TaskInformation& task) {
  const auto found = task.attributes.find("SentTimestamp");
  if (found == task.attributes.end()) return 0;
  return static_cast<std::int64_t>(parse_decimal(found->second).value_or(0));
}

}  // namespace

std::string in_short(std::string_view text) {
  return shown(text);
}

JobStatus::JobStatus(std::unique_ptr<log::Log> log) : log_(std::move(log)) {}
JobStatus::~JobStatus() = default;

void JobStatus::begin(const worker::TaskInformation& task) {
  const std::lock_guard lock(mutex_);
  jobs_[task.id] = {std::chrono::steady_clock::now(), sent_millis_of(task)};
}

void JobStatus::end(worker::TaskId task) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(task);
}

void JobStatus::note(std::string_view what) {
  keep(std::string(what));
  if (log_) log_->info(what);
}

void JobStatus::problem(std::string_view what) {
  const std::string text = printable(what.substr(0, kBytesMax));
  keep(text);
  if (log_) log_->error(text);
}

void JobStatus::keep(std::string text) {
  const std::lock_guard lock(mutex_);
  said_.push_back({to_seconds(os::SystemClock().now()), std::move(text)});
  if (said_.size() > kKept) said_.pop_front();
}

void JobStatus::retried(const worker::TaskInformation& task, std::string_view why) {
  problem(fmt::format("{}: message {}: {}; the message is retried", task.queue_name,
                      task.message_id, why));
}

JobStatus::Figures JobStatus::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures;
  figures.said = said_;
  const auto now = std::chrono::steady_clock::now();
  const std::int64_t wall = to_millis(os::SystemClock().now());
  for (const auto& [id, job] : jobs_) {
    figures.longest = std::max(figures.longest,
                               std::chrono::duration_cast<std::chrono::seconds>(now - job.began));
    if (job.sent_millis == 0) continue;
    const std::chrono::seconds age(std::max<std::int64_t>(0, wall - job.sent_millis) / 1000);
    figures.age = std::max(figures.age.value_or(age), age);
  }
  return figures;
}

}  // namespace stanchion::runner
