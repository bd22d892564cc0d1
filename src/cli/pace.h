// How long a server is waited for that is asked many times. A limit for each call is not enough: a
// server that answers each by drops would be waited for without end.
//
// There is kSlack at first; each thing that was gained adds kEach, up to kSlack again.
#pragma once

#include <algorithm>
#include <chrono>

namespace stanchion::cli {

class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kSlack{60};
  static constexpr std::chrono::seconds kEach{1};

  explicit Pace(Time now) : end_(now + kSlack) {}

  void gain(Time now) { end_ = std::min(end_ + kEach, now + kSlack); }
  // Zero or less: the server is too slow.
  std::chrono::milliseconds left(Time now) const {
    return std::chrono::ceil<std::chrono::milliseconds>(end_ - now);
  }

 private:
  Time end_;
};

}  // namespace stanchion::cli
