// What has happened in a queue since it was made. Every number only grows.
#pragma once

#include <cstdint>

namespace stanchion {

struct Activity {
  // Functions of the facts and the time: the same after a replay, and kept by checkpoints, so that
  // a crash takes nothing from them that was acknowledged.
  std::uint64_t sent = 0;           // By clients; repetitions that were dropped are not in it.
  std::uint64_t sent_bytes = 0;     // Of bodies and message attributes, as SQS counts them.
  std::uint64_t received = 0;       // Deliveries, repeated ones too.
  std::uint64_t deleted = 0;        // Messages.
  std::uint64_t dead_lettered = 0;  // Have arrived in the dead-letter queue.
  std::uint64_t moved_away = 0;     // By move tasks, and have arrived.
  std::uint64_t moved_here = 0;     // As dead letters or by move tasks.
  std::uint64_t expired = 0;

  // What calls did that changed nothing: no fact says so, and each process counts from 0.
  std::uint64_t deduplicated = 0;
  std::uint64_t empty_receives = 0;
  std::uint64_t deleted_again = 0;  // Successful deletes of messages that were gone.
};

}  // namespace stanchion
