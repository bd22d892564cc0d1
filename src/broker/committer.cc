#include "broker/committer.h"

#include <utility>

#include "base/check.h"

namespace stanchion::broker {
namespace {

// With so few calls waiting for a commit, little is lost if they wait a moment longer.
constexpr std::size_t kFew = 4;

}  // namespace

void Committer::recovered() {
  appended_ = flushed_ = Position(journal_.next_position().value() - 1);
}

void Committer::start(Loop& loop, Task durable, std::function<void(const Failure&)> failed) {
  loop_ = &loop;
  owner_.start(loop);
  auto on_durable = std::make_shared<Task>(std::move(durable));
  const auto wake = [signal = signal_, this, on_durable] {
    if (signal->posted.exchange(true)) return;
    loop_->post([signal, this, on_durable] {
      if (!signal->alive) return;
      // Cleared before the position is read: anything that becomes durable from now on posts again.
      signal->posted = false;
      send_durable();
      (*on_durable)();
    });
  };
  journal_.start({.durable = [wake](Position) { wake(); },
                  .roomier = wake,
                  .failed =
                      [signal = signal_, failed = std::move(failed)](const Failure& failure) {
                        if (signal->alive) failed(failure);
                      }});
}

Position Committer::append(std::string_view record, Haste haste) {
  owner_.check();
  const Position position = journal_.append(record);
  CHECK(position == appended_.next(), "a record comes right behind the one before");
  appended_ = position;
  if (haste == Haste::kNow) hurry_ = true;
  if (std::exchange(round_ends_, true)) return appended_;
  loop_->defer([signal = signal_, this] {
    if (!signal->alive) return;
    round_ends_ = false;
    flush();
  });
  return appended_;
}

void Committer::flush() {
  if (appended_ == flushed_) return;
  if (hurry_ || served_polls_.size() + replies_.size() > kFew) return flush_now();
  if (journal_.durable() < flushed_) return;  // Then go_on() calls this again.
  if (std::exchange(lingering_, true)) return;
  loop_->linger([signal = signal_, this] { return signal->alive && lingering_; },
                [signal = signal_, this] {
                  if (signal->alive) flush_now();
                });
}

void Committer::flush_now() {
  owner_.check();
  hurry_ = false;
  lingering_ = false;
  flushed_ = appended_;
  journal_.flush();
}

void Committer::send_in_line(std::deque<WaitingReply>& line, Task send) {
  owner_.check();
  if (line.empty() && journal_.durable() >= appended_) return send();
  line.push_back({appended_, std::move(send)});
}

void Committer::send_durable() {
  owner_.check();
  const Position durable = journal_.durable();
  CHECK(durable <= appended_, "what was not appended is not durable");
  for (std::deque<WaitingReply>* line : {&served_polls_, &replies_}) {
    while (!line->empty() && line->front().position <= durable) {
      WaitingReply reply = std::move(line->front());
      line->pop_front();
      reply.send();
    }
  }
}

}  // namespace stanchion::broker
