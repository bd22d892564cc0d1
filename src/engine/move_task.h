// A message move task: moves the messages of a dead-letter queue back, at a limited rate.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "model/ids.h"
#include "model/reply.h"

namespace stanchion::engine {

struct MoveTask {
  TaskId id;
  std::string destination_arn;      // Empty: each message goes back to where it came from.
  std::int64_t max_per_second = 0;  // 0: as fast as possible.
  std::uint64_t to_move = 0;
  Instant started;
  std::uint64_t moved = 0;
  std::uint64_t in_transit = 0;
  std::int64_t next_micros = 0;  // When the rate permits the next message; microseconds since 1970.
  MoveTaskStatus status = MoveTaskStatus::kRunning;
  std::string failure_reason;

  bool running() const { return status == MoveTaskStatus::kRunning; }

  // Whether the values could be those of a real task; for one that was loaded from the store.
  bool is_possible() const;

  // Whether there are messages that it should move and may move once the rate permits.
  bool wants_more() const;

  // Whether all that it can move has arrived; `visible` is the number of messages that wait in the
  // source.
  bool is_through(std::uint64_t visible) const {
    return in_transit == 0 && (moved >= to_move || visible == 0);
  }

  // How many messages the rate permits at `now`, regardless of those in transit.
  std::uint64_t allowed(Instant now) const;

  // Records that `count` messages left at `now`.
  void went(std::uint64_t count, Instant now);

  // When the rate permits the next message.
  Instant next_allowed() const;
};

}  // namespace stanchion::engine
