// Notices that a reader of a log is shown nothing although there is more. librdkafka passes over what
// it cannot parse without a word and asks for it again, for ever: after a byte of what Kafka keeps
// around the entries has changed.
//
//   heard() ─▶ … nothing for the patience ─▶ kAsk ─▶ answered(end) ─┬─ everything was read ─▶ as heard()
//                                             ▲ │                   └─ there is more ─▶ kGiveUp
//                                             └─┘ no answer: the brokers cannot be reached
//
// Pure bookkeeping; time is an argument. One thread at a time.
#pragma once

#include <chrono>
#include <optional>

#include "journal/shared_log.h"

namespace stanchion::kafka {

class SilenceWatch {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kAskAgain{5};

  enum class Step {
    kNone,
    kAsk,     // Where the log ends.
    kGiveUp,  // It goes on, and nothing is shown.
  };

  explicit SilenceWatch(std::chrono::milliseconds patience) : patience_(patience) {}

  // Something was read, if only that this is the end.
  void heard(Instant now);
  void asked(Instant now) { ask_at_ = now + kAskAgain; }
  void answered(journal::LogOffset end) { end_ = end; }

  // Everything before `reached` was read, and the reader waits for more.
  Step look(Instant now, journal::LogOffset reached);

 private:
  const std::chrono::milliseconds patience_;
  std::optional<Instant> since_;  // None: nothing was waited for yet.
  Instant ask_at_{};
  std::optional<journal::LogOffset> end_;
};

}  // namespace stanchion::kafka
