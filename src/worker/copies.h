// Messages as requests: what a worker reads of a message's attributes, and the copy of it that goes
// to another queue.
#pragma once

#include <cstdint>
#include <string>

#include "client/types.h"
#include "worker/task.h"

namespace stanchion::worker {

// A number among the attributes of a message or a queue.
std::int64_t number_in(const client::StringMap& attributes, const char* name,
                       std::int64_t otherwise);

// The FIFO group; empty: the message has none.
std::string group_of(const TaskInformation& task);

// The message as it is sent to another queue. A FIFO queue takes it once for all its deliveries,
// within five minutes. A message without a group gets `group_otherwise` there.
client::SendMessageRequest copy_of(const TaskInformation& task, const std::string& queue_url,
                                   const std::string& group_otherwise);

}  // namespace stanchion::worker
