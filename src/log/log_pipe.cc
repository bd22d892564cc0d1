#include "log/log_pipe.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace stanchion::log {
namespace {

// How often the thread checks whether it is to end while the descriptor accepts nothing.
constexpr int kLookMillis = 100;
constexpr std::chrono::milliseconds kLastMoment(1000);

}  // namespace

LogPipe::LogPipe(int fd, std::size_t waiting_max, TellDropped tell_dropped)
    : fd_(fd), waiting_max_(waiting_max), tell_dropped_(std::move(tell_dropped)) {
  // The thread blocks all signals: other threads wait for those, and a closed pipe is no reason to
  // end.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogPipe::~LogPipe() {
  flush(kLastMoment);
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LogPipe::write(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (waiting_.size() + line.size() > waiting_max_) {
    ++dropped_;
    return;
  }
  if (dropped_ > 0) waiting_.append(tell_dropped_(std::exchange(dropped_, 0)));
  const bool idle = waiting_.empty();
  waiting_.append(line);
  if (idle) changed_.notify_all();
}

void LogPipe::flush(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return waiting_.empty() && !writing_; });
}

void LogPipe::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string lines = std::exchange(waiting_, {});
    writing_ = true;
    lock.unlock();
    const bool written = pass_on(lines);
    lock.lock();
    writing_ = false;
    if (waiting_.empty() && dropped_ > 0) waiting_ = tell_dropped_(std::exchange(dropped_, 0));
    if (!written) return;
    changed_.notify_all();
  }
}

// False if the thread has to end before everything is written.
bool LogPipe::pass_on(std::string_view text) {
  while (!text.empty()) {
    pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, kLookMillis) == 0) {
      const std::lock_guard lock(mutex_);
      if (ended_) return false;
      continue;
    }
    // A descriptor that is ready accepts this much without blocking.
    const ssize_t n = ::write(fd_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    // Nobody will ever read it, or there is no such file: then nothing is lost.
    if (n < 0 && errno != EAGAIN && errno != EINTR) return true;
  }
  return true;
}

}  // namespace stanchion::log
