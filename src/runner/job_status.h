// What `stanchion work` tells people: its log, and the figures of the jobs in flight.
//
// Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/repeated_problem.h"
#include "worker/task.h"

namespace stanchion::log {
class Log;
}

namespace stanchion::runner {

// The beginning of what a process, an endpoint or a file said, safe to print: shown() of
// base/terminal.h.
std::string in_short(std::string_view text);

class JobStatus {
 public:
  // Null: nothing is logged, because a live view shows what is said.
  explicit JobStatus(std::unique_ptr<log::Log> log);
  ~JobStatus();
  JobStatus(const JobStatus&) = delete;
  JobStatus& operator=(const JobStatus&) = delete;

  void begin(const worker::TaskInformation& task);
  void end(worker::TaskId task);

  void note(std::string_view what);
  // Something went wrong that somebody should look at.
  void problem(std::string_view what);
  // The same for those that may come again and again. This outlives it.
  RepeatedProblem::Tell problem_teller() {
    return [this](std::string_view what) { problem(what); };
  }
  // … with one message, which is retried.
  void retried(const worker::TaskInformation& task, std::string_view why);

  struct Said {
    std::int64_t seconds;  // Since 1970.
    std::string what;
  };
  struct Figures {
    std::chrono::seconds longest{0};          // For how long the longest job has run.
    std::optional<std::chrono::seconds> age;  // Of the oldest message in flight, since its send.
    std::deque<Said> said;                    // The last notes and problems, the newest last.
  };
  Figures figures() const;

 private:
  struct Job {
    std::chrono::steady_clock::time_point began;
    std::int64_t sent_millis = 0;  // 0: unknown.
  };

  void keep(std::string text);

  const std::unique_ptr<log::Log> log_;
  mutable std::mutex mutex_;
  std::unordered_map<worker::TaskId, Job> jobs_;
  std::deque<Said> said_;
};

}  // namespace stanchion::runner
