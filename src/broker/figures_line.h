// The line of those who want figures of queues for the same purpose: what is collected for one of them
// is destroyed before it is collected for the next one. So all who ask, on however many threads, hold
// figures once, and not once each.
//
//   FL1  At most one turn exists. Turns are given in the order in which they were asked for.
//   FL2  A turn that was waited for begins on the loop of who asked, never inside another call.
//
// Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "broker/loop.h"

namespace stanchion::broker {

class FiguresLine : public std::enable_shared_from_this<FiguresLine> {
 public:
  // Ends when it is destroyed, wherever that is.
  class Turn {
   public:
    Turn() = default;
    explicit Turn(std::shared_ptr<FiguresLine> line) : line_(std::move(line)) {}
    Turn(Turn&& other) noexcept = default;
    Turn& operator=(Turn&& other) noexcept {
      std::swap(line_, other.line_);
      return *this;
    }
    ~Turn() {
      if (line_) line_->go_on();
    }

   private:
    std::shared_ptr<FiguresLine> line_;  // Null: it is none.
  };
  using Begin = std::move_only_function<void(Turn)>;

  // On the thread of `loop`: begins at once if nobody has a turn.
  void enter(Loop& loop, Begin begin);

  // Those that wait are forgotten, and nobody begins any more. Loops need not live on after this.
  void close();

 private:
  struct Waiting {
    Loop* loop;
    Begin begin;
  };
  void go_on();

  std::mutex mutex_;
  // Guarded by mutex_:
  std::deque<Waiting> waiting_;
  bool taken_ = false;
  bool closed_ = false;
};

// What figures are for. For each purpose those of queues exist once, however many ask. No purpose waits
// for another one, so that a disk that hangs under the history, or many who ask for advice, do not
// silence the metrics.
enum class Purpose : std::uint8_t { kAdvice, kConsole, kHistory, kMetrics, kServer };

// A line for each purpose but kServer, for which no queues are wanted: nobody waits then. Closes them
// at the end, which turns may outlive.
class FiguresLines {
 public:
  FiguresLines() {
    for (auto& line : lines_) line = std::make_shared<FiguresLine>();
  }
  FiguresLines(const FiguresLines&) = delete;
  FiguresLines& operator=(const FiguresLines&) = delete;
  ~FiguresLines() {
    for (const auto& line : lines_) line->close();
  }

  void enter(Purpose purpose, Loop& loop, FiguresLine::Begin begin) {
    if (purpose == Purpose::kServer) return begin({});
    lines_[static_cast<std::size_t>(purpose)]->enter(loop, std::move(begin));
  }

 private:
  std::array<std::shared_ptr<FiguresLine>, static_cast<std::size_t>(Purpose::kServer)> lines_;
};

}  // namespace stanchion::broker
