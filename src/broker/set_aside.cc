#include "broker/set_aside.h"

#include <fmt/format.h>

namespace stanchion::broker {

bool SetAside::add(QueueId queue, const Failure& why) {
  owner_.check();
  return queues_.emplace(queue, why.message).second;
}

std::optional<Error> SetAside::refusal(Action action, QueueId queue) const {
  if (!contains(queue) || traits_of(action).touches != Touches::kMessages) return std::nullopt;
  return refusal(queue);
}

Error SetAside::refusal(QueueId queue) const {
  return {ErrorCode::kInternalFailure,
          fmt::format("This queue is set aside, because messages of it that are on the server's "
                      "disk cannot be read: {}. This request changed nothing. The operator of the "
                      "server can bring back what is readable of it (stanchion repair) or restore "
                      "a backup; purging or deleting the queue gives up its messages.",
                      queues_.at(queue))};
}

}  // namespace stanchion::broker
