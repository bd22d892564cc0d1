#include "runner/line_process.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "runner/line_protocol.h"

namespace stanchion::runner {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using worker::Verdict;

constexpr milliseconds kStartAgain(200);
constexpr milliseconds kStartAgainMax(30'000);
constexpr int kReadsAtOnceMax = 64;

struct Pipe {
  os::Fd reading;
  os::Fd writing;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("cannot make a pipe", errno);
  return Pipe{os::Fd(ends[0]), os::Fd(ends[1])};
}

void set_nonblocking(const os::Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

LineProcess::LineProcess(LineProcessOptions options, JobStatus& job_status)
    : options_(std::move(options)),
      job_status_(job_status),
      woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      strangers_(job_status.problem_teller(),
                 "the process answered {} more times a message that it does not have") {}

LineProcess::~LineProcess() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake();
  thread_.join();
}

Status LineProcess::start() {
  if (!woken_.valid()) return fail("cannot make an event", errno);
  thread_ = std::thread([this] { run(); });
  return {};
}

void LineProcess::begin(const worker::Task& task, worker::Answer answer) {
  {
    const std::lock_guard lock(mutex_);
    new_jobs_.emplace_back(task, std::move(answer));
  }
  wake();
}

void LineProcess::abandon() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  wake();
}

std::uint64_t LineProcess::restarts() const {
  const std::lock_guard lock(mutex_);
  return restarts_;
}

void LineProcess::wake() {
  ::eventfd_write(woken_.get(), 1);
}

void LineProcess::run() {
  while (true) {
    take_new_jobs();
    if (!child_ && !ending_ && !abandoning_ && SteadyClock::now() >= start_at_) start_process();
    if (!child_ && ending_) return retry_all();
    write_lines();
    wait();
    read_answers();
    check_times(SteadyClock::now());
    reap();
  }
}

void LineProcess::take_new_jobs() {
  std::vector<std::pair<worker::Task, worker::Answer>> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(new_jobs_);
    abandoning_ = abandoned_;
    ending_ = closing_;
  }
  for (auto& [task, answer] : taken) {
    std::string id = fmt::to_string(++next_id_);
    lines_.push_back({id, line_of(id, *task)});
    jobs_.emplace(std::move(id), Job{std::move(task), std::move(answer)});
  }
  if (abandoning_) {
    retry_all();
    if (child_ && !told_) end_process({});
  }
  if (ending_ && child_ && input_.valid()) close_input();
}

void LineProcess::start_process() {
  const auto failed = [this](const Failure& failure) {
    start_later();
    job_status_.problem(fmt::format("cannot start the process: {}", failure.message));
  };
  auto in = make_pipe();
  if (!in) return failed(in.error());
  auto out = make_pipe();
  if (!out) return failed(out.error());
  auto child = spawn_shell(options_.command, {}, in->reading.get(), out->writing.get());
  if (!child) return failed(child.error());
  child_ = std::move(*child);
  input_ = std::move(in->writing);
  output_ = std::move(out->reading);
  set_nonblocking(input_);
  set_nonblocking(output_);
  read_.clear();
  told_ = false;
  kill_at_.reset();
}

void LineProcess::write_lines() {
  while (child_ && input_.valid() && !lines_.empty()) {
    Line& line = lines_.front();
    const auto job = jobs_.find(line.id);
    const ssize_t count =
        ::write(input_.get(), line.text.data() + written_, line.text.size() - written_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) return close_input();
    if (count <= 0) return;
    if (job != jobs_.end() && !job->second.given) {
      job->second.given = true;
      if (options_.timeout.count() > 0)
        deadlines_.emplace_back(SteadyClock::now() + options_.timeout, line.id);
    }
    written_ += static_cast<std::size_t>(count);
    if (written_ < line.text.size()) continue;
    lines_.pop_front();
    written_ = 0;
  }
}

// Most often the process is about to end.
void LineProcess::close_input() {
  input_ = os::Fd();
  if (!kill_at_) kill_at_ = SteadyClock::now() + kKillAfter;
}

void LineProcess::wait() {
  std::vector<pollfd> events{{woken_.get(), POLLIN, 0}};
  if (child_) {
    events.push_back({child_->handle.get(), POLLIN, 0});
    if (output_.valid()) events.push_back({output_.get(), POLLIN, 0});
    if (input_.valid() && !lines_.empty()) events.push_back({input_.get(), POLLOUT, 0});
  }
  int left = -1;
  if (const auto next = next_time()) {
    const auto time = std::chrono::ceil<milliseconds>(*next - SteadyClock::now()).count();
    left = static_cast<int>(std::clamp<std::int64_t>(time, 0, 1'000'000));
  }
  // A wait that is interrupted is repeated by the caller.
  static_cast<void>(::poll(events.data(), events.size(), left));
  eventfd_t count = 0;
  ::eventfd_read(woken_.get(), &count);
}

std::optional<LineProcess::Time> LineProcess::next_time() const {
  std::optional<Time> next = kill_at_;
  const auto at = [&](Time time) { next = next ? std::min(*next, time) : time; };
  if (!child_ && !ending_ && !abandoning_) at(start_at_);
  if (!deadlines_.empty()) at(deadlines_.front().first);
  if (const auto due = strangers_.due()) at(*due);
  return next;
}

void LineProcess::read_answers() {
  char buffer[16 * 1024];
  // A process that writes without end must not keep us from looking at the time and at new jobs.
  for (int reads = 0; child_ && output_.valid() && reads < kReadsAtOnceMax; ++reads) {
    const ssize_t count = ::read(output_.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      output_ = os::Fd();
      return close_input();
    }
    if (told_) continue;  // Its messages were answered.
    read_.append(buffer, static_cast<std::size_t>(count));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = read_.find('\n', begin)) != std::string::npos;) {
      take_answer(std::string_view(read_).substr(begin, end - begin));
      begin = end + 1;
      if (told_) break;
    }
    read_.erase(0, begin);
    if (read_.size() > kAnswerBytesMax && !told_)
      end_process(fmt::format("wrote a line of more than {} bytes", kAnswerBytesMax));
  }
}

void LineProcess::take_answer(std::string_view line) {
  if (line.empty()) return;
  const auto read = read_answer(line);
  if (!read) return end_process(read.error().message);
  const auto job = jobs_.find(read->id);
  if (job == jobs_.end() || !job->second.given) {
    strangers_.say(fmt::format("the process answered a message that it does not have: id \"{}\"",
                               in_short(read->id)),
                   SteadyClock::now());
    return;
  }
  failures_ = 0;
  const worker::Task task = job->second.task;
  if (!read->verdict) {
    job_status_.retried(*task, read->reason);
    return answer(read->id, Verdict::retry_with_backoff());
  }
  if (read->verdict->kind == Verdict::Kind::kReject && !options_.can_reject) {
    job_status_.retried(*task, "was rejected, but --reject-to names no queue");
    return answer(read->id, Verdict::retry_with_backoff());
  }
  if (read->verdict->kind == Verdict::Kind::kRetry)
    job_status_.retried(*task,
                        read->reason.empty() ? "the process answered with a retry" : read->reason);
  answer(read->id, *read->verdict);
}

void LineProcess::answer(const std::string& id, const Verdict& verdict) {
  auto job = jobs_.extract(id);
  if (job) job.mapped().answer(verdict);
}

void LineProcess::check_times(Time now) {
  strangers_.tell_if_due(now);
  while (!deadlines_.empty() &&
         (deadlines_.front().first <= now || !jobs_.contains(deadlines_.front().second))) {
    const bool late = jobs_.contains(deadlines_.front().second);
    deadlines_.pop_front();
    if (!late) continue;
    end_process(fmt::format("gave no verdict within --timeout {}", options_.timeout.count()));
  }
  if (!child_ || !kill_at_ || now < *kill_at_) return;
  if (!told_) return end_process(ending_ ? "" : "closed its input or output");
  child_->signal_group(SIGKILL);
  kill_at_ = now + kKillAfter;
}

void LineProcess::end_process(const std::string& why) {
  if (!child_ || told_) return;
  told_ = true;
  kill_at_ = SteadyClock::now() + kKillAfter;
  input_ = os::Fd();
  child_->signal_group(SIGTERM);
  if (!why.empty()) retry_given(fmt::format("the process {} and is ended", why));
}

void LineProcess::reap() {
  int status = 0;
  if (!child_ || ::waitpid(child_->id, &status, WNOHANG) != child_->id) return;
  // What it wrote before its end counts.
  if (output_.valid()) read_answers();
  const bool expected = told_ || ending_;
  // What it has started itself would go on with messages that others get.
  child_->signal_group(SIGKILL);
  child_.reset();
  input_ = os::Fd();
  output_ = os::Fd();
  kill_at_.reset();
  if (expected && ending_) return;
  if (!expected) retry_given(fmt::format("the process {}", end_in_words(status)));
  start_later();
  const std::lock_guard lock(mutex_);
  ++restarts_;
}

void LineProcess::start_later() {
  const int doublings = std::min(failures_++, 10);
  const milliseconds delay =
      doublings == 0 ? milliseconds(0) : std::min(kStartAgainMax, kStartAgain * (1 << doublings));
  start_at_ = SteadyClock::now() + delay;
}

void LineProcess::retry_given(const std::string& why) {
  std::vector<std::string> given;
  for (const auto& [id, job] : jobs_)
    if (job.given) given.push_back(id);
  job_status_.problem(given.empty() ? why
                                    : fmt::format("{}; the {} messages that it had are retried",
                                                  why, given.size()));
  for (const std::string& id : given) answer(id, Verdict::retry_with_backoff());
  if (written_ > 0) {
    lines_.pop_front();
    written_ = 0;
  }
}

void LineProcess::retry_all() {
  lines_.clear();
  written_ = 0;
  while (!jobs_.empty()) answer(std::string(jobs_.begin()->first), Verdict::retry_with_backoff());
}

}  // namespace stanchion::runner
