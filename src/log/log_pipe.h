// Lines on their way to a file descriptor that may not accept them: a pipe that nobody reads, a
// stopped terminal. Writers never wait; a separate thread passes the lines on.
//
//   write ─▶ bounded buffer ─▶ thread ─▶ descriptor
//               └ full: the line is dropped and counted; the count is reported when there is room
//
// Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace stanchion::log {

class LogPipe {
 public:
  // Formats the line that says how many were dropped.
  using TellDropped = std::function<std::string(std::uint64_t lines)>;

  // The descriptor stays open; the caller closes it.
  LogPipe(int fd, std::size_t waiting_max, TellDropped tell_dropped);
  ~LogPipe();  // As flush(), with a second; what is left then is dropped.
  LogPipe(const LogPipe&) = delete;
  LogPipe& operator=(const LogPipe&) = delete;

  void write(std::string_view line);

  // Waits until everything is written, but no longer than this.
  void flush(std::chrono::milliseconds at_most);

 private:
  void run();
  bool pass_on(std::string_view text);

  const int fd_;
  const std::size_t waiting_max_;
  const TellDropped tell_dropped_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  std::uint64_t dropped_ = 0;
  bool writing_ = false;  // The thread has taken lines that are not written yet.
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace stanchion::log
