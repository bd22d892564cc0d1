// The process of `stanchion work --lines`: long-lived, gets a line for each message and answers with
// a line for each verdict, in any order.
//
//   begin ─▶ line waits ─▶ given to the process ─▶ its verdict
//                                  └ the process dies, hangs or writes nonsense: retried
//
// A process that died is started again, at once the first time and later after longer and longer
// waits; lines that were not given to it yet stay. One thread does everything; the functions below
// may be called on any.
//
//   LP1  A message is answered exactly once.
//   LP2  There is at most one process; the next one begins when its predecessor was reaped.
//   LP3  A line of a message is given to one process only; if a part of it was written, the message
//        counts as given.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/fd.h"
#include "runner/child_process.h"
#include "runner/job_status.h"
#include "worker/options.h"

namespace stanchion::runner {

struct LineProcessOptions {
  std::string command;
  std::chrono::seconds timeout{0};  // For a verdict; 0: any time.
  bool can_reject = false;          // There is a queue for rejected messages.
};

class LineProcess {
 public:
  LineProcess(LineProcessOptions options, JobStatus& job_status);
  // Closes the process's input and waits for its end. A process that does not end within kKillAfter
  // is told by SIGTERM, and killed after the same time again. All messages must have been answered.
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  // Makes what the thread needs.
  Status start();

  void begin(const worker::Task& task, worker::Answer answer);
  // Answers all messages with a retry and ends the process by SIGTERM.
  void abandon();

  std::uint64_t restarts() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Job {
    worker::Task task;
    worker::Answer answer;
    bool given = false;
  };
  struct Line {
    std::string id;
    std::string text;
  };

  void run();
  void wait();
  void close_input();
  void take_new_jobs();
  void start_process();
  void start_later();
  void write_lines();
  void read_answers();
  void take_answer(std::string_view line);
  void answer(const std::string& id, const worker::Verdict& verdict);
  void check_times(Time now);
  void reap();
  void end_process(const std::string& why);
  void retry_given(const std::string& why);
  void retry_all();
  std::optional<Time> next_time() const;
  void wake();

  const LineProcessOptions options_;
  JobStatus& job_status_;
  os::Fd woken_;  // An eventfd.
  std::thread thread_;

  mutable std::mutex mutex_;
  std::vector<std::pair<worker::Task, worker::Answer>> new_jobs_;
  bool closing_ = false;
  bool abandoned_ = false;
  std::uint64_t restarts_ = 0;

  // Of the thread alone, from here on.
  std::uint64_t next_id_ = 0;
  std::unordered_map<std::string, Job> jobs_;
  std::deque<Line> lines_;   // Of those that are not given completely.
  std::size_t written_ = 0;  // Of the first line.
  std::deque<std::pair<Time, std::string>> deadlines_;
  std::optional<Child> child_;
  os::Fd input_;   // Of the process; closed: it is to end.
  os::Fd output_;  // Invalid after its end.
  std::string read_;
  bool told_ = false;            // The process got SIGTERM.
  std::optional<Time> kill_at_;  // When it gets the next signal.
  int failures_ = 0;             // Processes in a row that ended without a verdict.
  RepeatedProblem strangers_;    // Answers to messages that the process does not have.
  Time start_at_{};
  bool abandoning_ = false;
  bool ending_ = false;
};

}  // namespace stanchion::runner
