// Who executes a request, what it must know of queues that live elsewhere, and how the answers of
// several shards become one. How a queue's name becomes the number of a shard is the broker's.
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

// The queue by which a request is routed: the shard in which it lives executes the request. nullopt
// if the request names none that can be parsed (any shard will refuse it) or concerns all shards.
std::optional<QueueRef> home_of(const Request& request);

// What a request must know of queues that may live in other shards.
struct Needs {
  std::optional<QueueRef> target;             // Of a redrive policy or a move task.
  std::optional<QueueRef> dead_letter_queue;  // Is it one? And how many move tasks run?

  bool any() const { return target || dead_letter_queue; }
};
Needs needs_of(const Request& request);

// What the other shards know; each adds its part (see Engine::contribute).
struct Neighbours {
  std::optional<QueueSummary> target;
  bool is_dead_letter_queue = false;
  std::size_t move_tasks_running = 0;
  // False: only the sources of a dead-letter queue that live here are asked for.
  bool is_home = true;
};

// The answers of several shards to ListQueues or ListDeadLetterSourceQueues as one.
Reply merge_lists(std::vector<Reply> parts, std::optional<std::int64_t> max_results);

}  // namespace stanchion::engine
