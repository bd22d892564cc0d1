// Which shard executes a request, what the request must know about queues of other shards, and how
// the answers of several shards are merged. The broker maps a queue's name to the number of a
// shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/rules/attributes.h"
#include "model/ids.h"
#include "model/reply.h"
#include "model/request.h"

namespace stanchion::engine {

// The queue by which a request is routed: the shard that owns it executes the request. nullopt if
// the request names none that can be parsed (any shard will refuse it) or concerns all shards.
std::optional<QueueRef> home_of(const Request& request);

// What a request must know about queues that may live in other shards.
struct Needs {
  std::optional<QueueRef> target;             // The target of a redrive policy or a move task.
  std::optional<QueueRef> dead_letter_queue;  // Is it one? How many move tasks run?

  bool any() const { return target || dead_letter_queue; }
};
Needs needs_of(const Request& request);

// What the other shards know; each adds its part (see Engine::contribute).
struct Neighbours {
  std::optional<QueueSummary> target;
  bool is_dead_letter_queue = false;
  std::size_t move_tasks_running = 0;
  // False: only this shard's sources of a dead-letter queue are asked for.
  bool is_home = true;
  // How many bytes the settings of the account's queues may still grow by.
  std::uint64_t settings_bytes_left = UINT64_MAX;
};

// Merges the answers of several shards to ListQueues or ListDeadLetterSourceQueues.
Reply merge_lists(std::vector<Reply> parts, std::optional<std::int64_t> max_results);

}  // namespace stanchion::engine
