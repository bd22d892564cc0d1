// How clients have used a queue in the last minutes: what advice is made of. No fact says any of
// this, and no decision depends on it; each process begins with nothing.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace stanchion::engine {

// A count of which half is forgotten every ten minutes.
class RecentCount {
 public:
  void add(std::uint64_t amount, Instant now);
  std::uint64_t at(Instant now) const;

 private:
  std::uint64_t left(Instant now) const;

  std::uint64_t parts_ = 0;  // Small parts of one, so that halving a few does not lose them.
  std::int64_t epoch_ = 0;
};

struct Habits {
  RecentCount single_sends;    // Messages of SendMessage …
  RecentCount batched_sends;   // … and of SendMessageBatch.
  RecentCount full_receives;   // Receives that got something.
  RecentCount empty_polls;     // Those that got nothing and did not want to wait.
  RecentCount deletes;         // Messages that were deleted in time …
  RecentCount late_deletes;    // … and after they had become visible again.
  RecentCount often_received;  // Deliveries of messages that came back again and again.

  // The longest time for which a message was held that was deleted late.
  Duration held_longest{};
  Instant held_longest_at{};

  void deleted_late(Duration held, Instant now);
};

// The same at one moment.
struct HabitsAt {
  HabitsAt() = default;
  HabitsAt(const Habits& habits, Instant now);

  std::uint64_t single_sends = 0;
  std::uint64_t batched_sends = 0;
  std::uint64_t full_receives = 0;
  std::uint64_t empty_polls = 0;
  std::uint64_t deletes = 0;
  std::uint64_t late_deletes = 0;
  std::uint64_t often_received = 0;
  Duration held_longest{};
};

}  // namespace stanchion::engine
