#include "runner/live_view.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace stanchion::runner {
namespace {

constexpr std::chrono::milliseconds kEvery(500);
// Lines that must be left for what commands print.
constexpr std::size_t kRowsAboveMin = 5;

std::string_view name_in(std::string_view url) {
  return url.substr(url.rfind('/') + 1);
}

}  // namespace

std::vector<std::string> view_lines(const worker::WorkerMetrics& now,
                                    const worker::WorkerMetrics& before,
                                    std::chrono::duration<double> passed,
                                    const JobStatus::Figures& figures) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{:<32} {:>9} {:>8} {:>9} {:>9} {:>10} {:>8} {:>8}", "queue",
                              "in flight", "running", "done/s", "failed/s", "done", "failed",
                              "rejected"));
  for (std::size_t i = 0; i < now.queues.size(); ++i) {
    const worker::QueueMetrics& queue = now.queues[i];
    const worker::QueueMetrics& last = i < before.queues.size() ? before.queues[i] : queue;
    const auto rate = [&](std::uint64_t a, std::uint64_t b) {
      return passed.count() > 0 ? static_cast<double>(a - b) / passed.count() : 0.0;
    };
    lines.push_back(fmt::format("{:<32} {:>9} {:>8} {:>9.1f} {:>9.1f} {:>10} {:>8} {:>8}",
                                cut_to(name_in(queue.queue_url), 32), queue.in_flight,
                                queue.running, rate(queue.done, last.done),
                                rate(queue.retried, last.retried), queue.done, queue.retried,
                                queue.rejected));
  }
  lines.push_back(fmt::format("oldest message in flight: {}; longest job: {} s",
                              figures.age ? fmt::format("{} s", figures.age->count()) : "none",
                              figures.longest.count()));
  for (const JobStatus::Said& said : figures.said)
    lines.push_back(fmt::format("{:%H:%M:%S} {}",
                                fmt::gmtime(static_cast<std::time_t>(said.seconds)), said.what));
  return lines;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  std::size_t characters = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && characters++ == columns) break;
  }
  return std::string(text.substr(0, end));
}

LiveView::LiveView(int terminal, std::function<worker::WorkerMetrics()> metrics,
                   const JobStatus& job_status)
    : terminal_(terminal),
      metrics_(std::move(metrics)),
      job_status_(job_status),
      before_(metrics_()),
      drawn_(std::chrono::steady_clock::now()),
      thread_([this] { run(); }) {}

LiveView::~LiveView() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LiveView::run() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kEvery, [this] { return ended_; })) draw();
  leave();
}

void LiveView::put(const std::string& text) const {
  // What a terminal does not take is drawn again.
  static_cast<void>(!::write(terminal_, text.data(), text.size()));
}

// The terminal scrolls only its upper part, so that commands can print there.
void LiveView::draw() {
  winsize size{};
  if (::ioctl(terminal_, TIOCGWINSZ, &size) != 0) return;
  worker::WorkerMetrics metrics = metrics_();
  const auto now = std::chrono::steady_clock::now();
  const auto lines = view_lines(metrics, before_, now - drawn_, job_status_.figures());
  before_ = std::move(metrics);
  drawn_ = now;
  if (size.ws_row < lines.size() + kRowsAboveMin) return leave();
  std::string out;
  if (rows_ != size.ws_row || lines_ != lines.size()) {
    leave();
    rows_ = size.ws_row;
    lines_ = lines.size();
    out += std::string(lines_, '\n');
    out += fmt::format("\x1b[1;{}r\x1b[{};1H", rows_ - lines_, rows_ - lines_);
  }
  out +=
      "\x1b"
      "7";
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += fmt::format("\x1b[{};1H\x1b[2K{}{}\x1b[0m", rows_ - lines_ + 1 + i,
                       i == 0 ? "\x1b[1m" : "", cut_to(lines[i], size.ws_col));
  out +=
      "\x1b"
      "8";
  put(out);
}

void LiveView::leave() {
  if (rows_ == 0) return;
  put(fmt::format("\x1b[{};1H\x1b[J\x1b[r\x1b[{};1H", rows_ - lines_ + 1, rows_ - lines_));
  rows_ = lines_ = 0;
}

}  // namespace stanchion::runner
