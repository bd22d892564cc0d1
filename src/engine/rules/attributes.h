// Queue attributes as clients write and read them: strings by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "model/ids.h"
#include "model/queue_attributes.h"
#include "model/request.h"

namespace stanchion::engine {

class Queue;

// Name and kind of a queue to be created; an error if the name or FifoQueue is wrong.
Answer<bool> fifo_of_new_queue(std::string_view name, const StringMap& attributes);

// Whether FifoQueue, if it is among the attributes, matches the queue.
Answer<void> check_fifo_of_queue(bool fifo, const StringMap& attributes);

// `base` with the given attributes set. FifoQueue is set only by creation and is ignored here.
Answer<QueueAttributes> with_attributes(QueueAttributes base, const StringMap& attributes);

// The name of the first of `attributes` whose value in `existing` differs.
Answer<std::optional<std::string>> first_difference(const QueueAttributes& existing,
                                                    const StringMap& attributes);

// The attributes with these names ("All" for all) that have a value.
Answer<StringMap> read_attributes(const Queue& queue, const std::vector<std::string>& names);

// What other shards know about a dead-letter queue.
struct QueueSummary {
  QueueRef ref;
  bool fifo = false;
  std::optional<RedriveAllowPolicy> redrive_allow;
};

// The target named by a RedrivePolicy among `attributes`, if there is one that can be parsed.
std::optional<QueueRef> redrive_target(const StringMap& attributes);

// Whether `source` may use the target of its redrive policy; `target` is nullopt if it does not
// exist.
Answer<void> check_redrive_target(const QueueRef& source, bool fifo, const RedrivePolicy& policy,
                                  const std::string& policy_text,
                                  const std::optional<QueueSummary>& target);

}  // namespace stanchion::engine
