// Notices that a reader of a log is shown nothing although there is more. librdkafka passes over what
// it cannot parse without a word and asks for it again, for ever: after a byte of what Kafka keeps
// around the entries has changed.
//
//   heard() ─▶ … nothing for the patience ─▶ kAsk ─▶ answered(end) ─┬─ everything was read ─▶ as heard()
//                                             ▲ │                   └─ there is more, twice ─▶ kGiveUp
//                                             └─┘ no answer: the brokers cannot be reached
//
// Twice, some seconds apart: a process that was stopped for a while hears where the log ends before it is
// shown what has come meanwhile.
//
// Pure bookkeeping; time is an argument. One thread at a time.
#pragma once

#include <algorithm>
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

  explicit SilenceWatch(std::chrono::milliseconds patience)
      : patience_(patience), ask_again_(std::min<std::chrono::milliseconds>(patience, kAskAgain)) {}

  // Something was read, if only that this is the end.
  void heard(Instant now);
  void asked(Instant now) { ask_at_ = now + ask_again_; }
  void answered(journal::LogOffset end) { end_ = end; }

  // Everything before `reached` was read, and the reader waits for more.
  Step look(Instant now, journal::LogOffset reached);

 private:
  const std::chrono::milliseconds patience_;
  const std::chrono::milliseconds ask_again_;
  std::optional<Instant> since_;  // None: nothing was waited for yet.
  Instant ask_at_{};
  std::optional<journal::LogOffset> end_;
  std::optional<Instant>
      behind_since_;  // When an answer said for the first time that there is more.
};

}  // namespace stanchion::kafka
