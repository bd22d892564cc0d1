// A message move task: brings the messages of a dead-letter queue back, at a pace.
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
  std::int64_t max_per_second = 0;  // 0: as fast as it goes.
  std::uint64_t to_move = 0;
  Instant started;
  std::uint64_t moved = 0;
  std::uint64_t in_transit = 0;
  std::int64_t next_micros = 0;  // When the pace lets the next message go; microseconds since 1970.
  MoveTaskStatus status = MoveTaskStatus::kRunning;
  std::string failure_reason;

  bool running() const { return status == MoveTaskStatus::kRunning; }

  // It can have been started and paced; for one that was read back.
  bool is_possible() const;

  // There are messages that it should move and may move once the pace allows.
  bool wants_more() const;

  // All that it can move has arrived; `visible` is what waits in the source.
  bool is_through(std::uint64_t visible) const {
    return in_transit == 0 && (moved >= to_move || visible == 0);
  }

  // How many messages the pace lets go at `now`, in transit or not considered.
  std::uint64_t allowed(Instant now) const;

  // `count` messages went at `now`.
  void went(std::uint64_t count, Instant now);

  // When the pace lets the next message go.
  Instant next_allowed() const;
};

}  // namespace stanchion::engine
