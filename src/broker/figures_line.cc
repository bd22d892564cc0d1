#include "broker/figures_line.h"

namespace stanchion::broker {

void FiguresLine::enter(Loop& loop, Begin begin) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (std::exchange(taken_, true)) {
      waiting_.push_back({&loop, std::move(begin)});
      return;
    }
  }
  begin(Turn(shared_from_this()));
}

void FiguresLine::close() {
  std::deque<Waiting> forgotten;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  forgotten.swap(waiting_);
}

void FiguresLine::go_on() {
  const std::lock_guard lock(mutex_);
  taken_ = !waiting_.empty();
  if (!taken_) return;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  // With the mutex held, so that nothing is posted to a loop after close().
  next.loop->post([begin = std::move(next.begin), turn = Turn(shared_from_this())]() mutable {
    begin(std::move(turn));
  });
}

}  // namespace stanchion::broker
