// The view of `stanchion work` on a terminal: figures of every queue and what was said last, in the
// last lines of the screen. What the commands print scrolls above.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runner/job_status.h"
#include "worker/metrics.h"

namespace stanchion::runner {

// The lines of the view. Rates are those since `before`. Pure.
std::vector<std::string> view_lines(const worker::WorkerMetrics& now,
                                    const worker::WorkerMetrics& before,
                                    std::chrono::duration<double> passed,
                                    const JobStatus::Figures& figures);

// The first `columns` characters, whatever their number of bytes.
std::string cut_to(std::string_view text, std::size_t columns);

class LiveView {
 public:
  // Draws on the terminal that this descriptor is, every half second.
  LiveView(int terminal, std::function<worker::WorkerMetrics()> metrics,
           const JobStatus& job_status);
  // Gives the whole terminal back.
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

 private:
  void run();
  void draw();
  void leave();
  void put(const std::string& text) const;

  const int terminal_;
  const std::function<worker::WorkerMetrics()> metrics_;
  const JobStatus& job_status_;
  worker::WorkerMetrics before_;
  std::chrono::steady_clock::time_point drawn_;
  std::size_t rows_ = 0;   // Of the terminal, when it was divided.
  std::size_t lines_ = 0;  // Of these, the view's.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace stanchion::runner
