#include "base/repeated_problem.h"

#include <fmt/format.h>

#include <utility>

namespace stanchion {

RepeatedProblem::RepeatedProblem(Tell tell, std::string more, int at_once)
    : tell_(std::move(tell)), more_(std::move(more)), at_once_(at_once) {}

RepeatedProblem::~RepeatedProblem() {
  if (untold_ > 0) tell_untold();
}

void RepeatedProblem::say(std::string_view what, Time now) {
  tell_if_due(now);
  if (!last_ || now >= *last_ + kSayAgain) {
    last_ = now;
    said_ = 0;
  }
  if (said_ >= at_once_) {
    ++untold_;
    return;
  }
  ++said_;
  tell_(what);
}

void RepeatedProblem::tell_if_due(Time now) {
  if (!due() || now < *due()) return;
  last_ = now;
  said_ = 1;
  tell_untold();
}

std::optional<RepeatedProblem::Time> RepeatedProblem::due() const {
  return untold_ == 0 ? std::nullopt : std::optional(*last_ + kSayAgain);
}

void RepeatedProblem::tell_untold() {
  tell_(fmt::format(fmt::runtime(more_), std::exchange(untold_, 0)));
}

}  // namespace stanchion
