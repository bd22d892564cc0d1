// Invokes a function with batches of messages, as Lambda's event source mapping does.
//
//   begin ─▶ filter ─▶ waits for a batch ─▶ invocation ─▶ its answer: deleted, or retried
//              └ no pattern matches: deleted
//
// A batch is sent when it is full, when its first message has waited for the window, or when it is as
// large as an invocation may be; at most `concurrency` at the same time for each queue. Everything
// happens on the loop's thread.
//
//   LR1  A message is in one batch at most, and is answered exactly once.
//   LR2  The messages of a FIFO group are in one batch that is under way at most, in order. After a
//        failure, the later ones of the group go back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "net/url.h"
#include "runner/filter.h"
#include "runner/http_loop.h"
#include "runner/job_status.h"
#include "runner/runner.h"
#include "runner/settings.h"

namespace stanchion::runner {

class LambdaRunner final : public Runner {
 public:
  LambdaRunner(const WorkSettings& settings, net::Url url, std::vector<Filter> filters,
               JobStatus& job_status);

  void attach(worker::QueueOptions& queue) override;
  void finish() override;
  void abandon() override;
  void add_metrics(PrometheusText& text) const override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Job {
    worker::Task task;
    worker::Answer answer;
    std::string record;  // As JSON.
    std::string group;   // Of a FIFO queue.
    Time since;
  };
  struct Batch {
    std::vector<Job> jobs;
    HttpLoop::CallId call = 0;
  };
  // A queue, as an event source mapping has one.
  struct Mapping {
    bool fifo = false;
    std::deque<Job> waiting;
    std::unordered_set<std::string> busy_groups;
    std::map<std::uint64_t, Batch> batches;  // Under way.
    bool timed = false;                      // A timer will look at it.
  };

  void begin(Mapping& mapping, const worker::Task& task, worker::Answer answer);
  void invoke_what_is_ready(Mapping& mapping);
  // The positions in `waiting` of the messages that the next batch would have.
  std::vector<std::size_t> next_batch(const Mapping& mapping, bool& full) const;
  void drop_lost(Mapping& mapping);
  void look_later(Mapping& mapping, std::chrono::milliseconds delay);
  void invoke(Mapping& mapping, const std::vector<std::size_t>& chosen);
  void end(Mapping& mapping, std::uint64_t number, const Result<net::ClientResponse>& response);
  void settle(Mapping& mapping, std::vector<Job> jobs, const std::set<std::string>& failed);
  std::vector<Job> take_waiting_of(Mapping& mapping, const std::unordered_set<std::string>& groups);

  const WorkSettings& settings_;
  const net::Url url_;
  const std::vector<Filter> filters_;
  JobStatus& job_status_;
  std::vector<std::unique_ptr<Mapping>> mappings_;
  bool finishing_ = false;
  std::uint64_t next_ = 0;
  std::atomic<std::uint64_t> invocations_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<std::uint64_t> filtered_{0};
  HttpLoop loop_;  // The last member: its thread uses the others.
};

// A URL without a path is one of a runtime interface, and gets the path at which that listens,
// unless it is a function URL of AWS.
net::Url invocation_url(net::Url url);

}  // namespace stanchion::runner
