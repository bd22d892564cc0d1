// What a job sends on, and the queues that are made for it if they are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/types.h"

namespace stanchion::worker {

// A queue by name. If it does not exist, it is made, and before it its dead-letter queue.
struct QueueRecipe {
  std::string name = {};  // Ends with .fifo for a FIFO queue.
  // Of the queue, if it is made: VisibilityTimeout and the like.
  client::StringMap attributes = {};
  // Empty: the name with "-dead" added, before ".fifo". Both are used only if the queue is made.
  std::string dead_letter_name = {};
  std::int64_t max_receive_count = 5;  // 0: without a dead-letter queue.
};

struct Publication {
  // Where to: a URL, or a queue that is made if it is missing.
  std::string queue_url = {};
  QueueRecipe queue = {};

  std::string body = {};
  client::MessageAttributes attributes = {};
  std::optional<std::int64_t> delay_seconds = {};
  // For FIFO queues. Without a group it is that of the job's message, else its message id.
  std::optional<std::string> group_id = {};
  // Without an id it is made of the job's message id and the number of the publication, so that a
  // job that is repeated, and publishes in the same order, does not double its results.
  std::optional<std::string> deduplication_id = {};
  // Nothing will be published after this one; see Verdict::done_after_last().
  bool last = false;
};

}  // namespace stanchion::worker
