// The line of the calls that may have large answers, except receives: lists, looks at messages,
// advice. Some of them are under way at a time, and the others wait in order, so that what is
// collected for them is bounded however many are asked. One for each reactor, used on its thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "base/check.h"
#include "net/reactor.h"

namespace stanchion::service {

class AnswerLine {
 public:
  static constexpr std::size_t kPlaces = 4;

  // `later` runs a task soon, on the same thread, but not inside its call.
  using Later = std::function<void(net::Task)>;
  explicit AnswerLine(Later later) : later_(std::move(later)) {}
  AnswerLine(const AnswerLine&) = delete;
  AnswerLine& operator=(const AnswerLine&) = delete;

  // Runs the call, now or when its places are free. REQUIRES: 1 to kPlaces.
  void enter(std::size_t places, net::Task call) {
    CHECK(places >= 1 && places <= kPlaces, "a call that could never run");
    waiting_.push_back({places, std::move(call)});
    if (waiting_.size() == 1) go_on();
  }

  // A call that has run needs its places no longer.
  void leave(std::size_t places) {
    CHECK(places <= taken_, "who leaves has entered");
    taken_ -= places;
    // Not now: the next one may leave at once, and so may thousands behind it.
    if (waiting_.empty() || std::exchange(going_on_, true)) return;
    later_([this] {
      going_on_ = false;
      go_on();
    });
  }

  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Call {
    std::size_t places;
    net::Task run;
  };

  void go_on() {
    while (!waiting_.empty() && taken_ + waiting_.front().places <= kPlaces) {
      Call next = std::move(waiting_.front());
      waiting_.pop_front();
      taken_ += next.places;
      next.run();
    }
  }

  const Later later_;
  std::size_t taken_ = 0;
  bool going_on_ = false;  // go_on() will be called.
  std::deque<Call> waiting_;
};

}  // namespace stanchion::service
