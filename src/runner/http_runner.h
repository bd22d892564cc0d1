// Posts each message to an HTTP endpoint, as the worker daemon of Elastic Beanstalk does (sqsd).
//
//   begin ─▶ POST ─▶ 200: deleted; --reject-code: rejected; anything else, or nothing: retried
//
// A message of the queue of periodic tasks is posted only if a worker has signed it, and to the path
// that this worker's own cron.yaml has for the task: what the message says itself could be anybody's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "net/url.h"
#include "runner/http_loop.h"
#include "runner/job_status.h"
#include "runner/runner.h"
#include "runner/settings.h"
#include "runner/task_seal.h"

namespace stanchion::runner {

class HttpRunner final : public Runner {
 public:
  // Null: there are no periodic tasks.
  HttpRunner(const WorkSettings& settings, net::Url url, const SealedTasks* periodic,
             JobStatus& job_status);

  void attach(worker::QueueOptions& queue) override;
  void abandon() override;

 private:
  struct Call {
    worker::Task task;
    worker::Answer answer;
    HttpLoop::CallId id = 0;
  };

  // On the loop.
  void begin(const worker::Task& task, worker::Answer answer);
  void post(const worker::Task& task, const PeriodicTask* periodic, worker::Answer answer);
  void leave_out(const worker::TaskInformation& task, std::string_view why,
                 const worker::Answer& answer);
  void begin_periodic(const worker::Task& task, worker::Answer answer);
  void end(std::uint64_t number, const Result<net::ClientResponse>& response);
  worker::Verdict verdict_of(const worker::TaskInformation& task,
                             const Result<net::ClientResponse>& response);

  const WorkSettings& settings_;
  const net::Url url_;
  const SealedTasks* const periodic_;
  JobStatus& job_status_;
  RepeatedProblem forged_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Call> calls_;
  HttpLoop loop_;  // The last member: its thread uses the others.
};

// The request that sqsd makes of a message. `periodic`: the task for which it stands, or null.
net::ClientRequest sqsd_request(const worker::TaskInformation& task, const net::Url& url,
                                const std::string& mime_type, const PeriodicTask* periodic);

}  // namespace stanchion::runner
