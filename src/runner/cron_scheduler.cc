#include "runner/cron_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "os/clock.h"

namespace stanchion::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using WallTime = std::chrono::sys_time<milliseconds>;

constexpr seconds kSendAgain(5);
// A clock that is set is noticed after this time.
constexpr seconds kWaitMax(30);

WallTime wall_time() {
  return WallTime(milliseconds(to_millis(os::SystemClock().now())));
}

Minute minute_of(WallTime time) {
  return std::chrono::floor<std::chrono::minutes>(time);
}

client::MessageAttributeValue text(std::string value) {
  return client::MessageAttributeValue::text(std::move(value));
}

}  // namespace

CronScheduler::CronScheduler(const SealedTasks& tasks, std::string queue_url,
                             client::Client& client, JobStatus& job_status)
    : tasks_(tasks.tasks),
      seal_(tasks.seal),
      queue_url_(std::move(queue_url)),
      queue_name_(queue_url_.substr(queue_url_.rfind('/') + 1)),
      client_(client),
      job_status_(job_status),
      looked_(minute_of(wall_time())),
      thread_([this] { run(); }) {}

CronScheduler::~CronScheduler() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CronScheduler::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const Minute now = minute_of(wall_time());
    collect(now);
    send_due(lock, now);
    milliseconds wait = due_.empty() ? kWaitMax : kSendAgain;
    for (const PeriodicTask& task : tasks_)
      if (const auto next = task.schedule.next(looked_))
        wait = std::min<milliseconds>(wait, *next - wall_time());
    changed_.wait_for(lock, std::max(wait, milliseconds(10)), [this] { return ended_; });
  }
}

void CronScheduler::collect(Minute now) {
  // A clock that was set back: what comes again was sent, or is too old for that to matter.
  if (now < looked_ - kDeduplicated) looked_ = now;
  if (now > looked_ + kSendWithin) {
    job_status_.problem(fmt::format(
        "the clock went from {} to {}: periodic tasks that were due between are left out",
        iso_time(looked_), iso_time(now)));
    looked_ = now - kSendWithin;
  }
  for (; looked_ < now;) {
    looked_ += std::chrono::minutes(1);
    for (const PeriodicTask& task : tasks_)
      if (task.schedule.is_due(looked_)) due_.push_back({&task, looked_});
  }
}

void CronScheduler::send_due(std::unique_lock<std::mutex>& lock, Minute now) {
  std::vector<Due> sending = std::exchange(due_, {});
  lock.unlock();
  std::vector<Due> left;
  for (Due& due : sending) {
    if (now - due.at > kSendWithin) {
      job_status_.problem(fmt::format("periodic task {} of {} could not be sent and is left out",
                                      due.task->name, iso_time(due.at)));
    } else if (!send(due)) {
      left.push_back(due);
    }
  }
  lock.lock();
  due_ = std::move(left);
}

bool CronScheduler::send(Due& due) {
  const std::string time = iso_time(due.at);
  const std::string signature = seal_.sign(queue_name_, due.task->name, time);
  const auto sent =
      client_.send_message({.queue_url = queue_url_,
                            .message_body = kTaskBody,
                            .message_attributes = {{kTaskNameAttribute, text(due.task->name)},
                                                   {kTaskPathAttribute, text(due.task->path)},
                                                   {kTaskTimeAttribute, text(time)},
                                                   {kSignatureAttribute, text(signature)}},
                            .message_deduplication_id = signature,
                            .message_group_id = due.task->name});
  if (sent) return true;
  if (!std::exchange(due.failed, true))
    job_status_.problem(fmt::format("periodic task {} of {} cannot be sent and is tried again: {}",
                                    due.task->name, iso_time(due.at), sent.error().to_string()));
  return false;
}

}  // namespace stanchion::runner
