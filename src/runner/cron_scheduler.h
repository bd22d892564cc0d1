// Sends a message to a FIFO queue whenever a periodic task is due.
//
// Every worker with the same cron.yaml does so, and none of them leads. The deduplication id is the
// signature of the task's name and its minute (task_seal.h), which is the same for all of them, so the
// queue keeps the first of these messages and ignores the others for five minutes. A due time that is
// further in the past than kSendWithin is not sent any more, so that a worker whose clock or network
// was away cannot send it again after that.
//
//   CS1  A task and a minute give one message at most, as long as the clocks of the workers differ
//        by less than a minute.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "runner/cron.h"
#include "runner/job_status.h"
#include "runner/task_seal.h"

namespace stanchion::runner {

inline constexpr std::chrono::minutes kDeduplicated(5);
// The last send begins within the minute after this time, and its attempts may take another one.
inline constexpr std::chrono::minutes kSendWithin(2);
static_assert(kSendWithin + std::chrono::minutes(1 + 1 + 1) <= kDeduplicated);

class CronScheduler {
 public:
  // Begins. `tasks`, `client` and `job_status` outlive it.
  CronScheduler(const SealedTasks& tasks, std::string queue_url, client::Client& client,
                JobStatus& job_status);
  ~CronScheduler();
  CronScheduler(const CronScheduler&) = delete;
  CronScheduler& operator=(const CronScheduler&) = delete;

 private:
  struct Due {
    const PeriodicTask* task;
    Minute at;
    bool failed = false;  // Somebody was told.
  };

  void run();
  void collect(Minute now);
  void send_due(std::unique_lock<std::mutex>& lock, Minute now);
  bool send(Due& due);

  const std::vector<PeriodicTask>& tasks_;
  const TaskSeal& seal_;
  const std::string queue_url_;
  const std::string queue_name_;
  client::Client& client_;
  JobStatus& job_status_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::vector<Due> due_;  // Not acknowledged by the queue.
  Minute looked_;         // Due times until here are in due_ or were sent.
  std::thread thread_;
};

}  // namespace stanchion::runner
