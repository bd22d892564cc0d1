// Says one kind of problem, and then at most once in kSayAgain how many more there were: what others
// can cause as often as they like must not fill the disk of the log.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stanchion {

class RepeatedProblem {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Tell = std::function<void(std::string_view)>;
  static constexpr std::chrono::seconds kSayAgain{10};

  // `more`: how the later ones are told, with {} for their number. `at_once`: so many in kSayAgain are
  // said themselves.
  RepeatedProblem(Tell tell, std::string more, int at_once = 1);
  // Tells of those that were not told yet.
  ~RepeatedProblem();
  RepeatedProblem(const RepeatedProblem&) = delete;
  RepeatedProblem& operator=(const RepeatedProblem&) = delete;

  void say(std::string_view what, Time now);
  void tell_if_due(Time now);
  // When something is to be told; nothing: not before the next one is said.
  std::optional<Time> due() const;

 private:
  void tell_untold();

  const Tell tell_;
  const std::string more_;
  const int at_once_;
  int said_ = 0;  // Since last_.
  std::uint64_t untold_ = 0;
  std::optional<Time> last_;
};

}  // namespace stanchion
