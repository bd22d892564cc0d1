// Queues of a shard whose data on disk cannot all be read. They are set aside: calls that would
// need their messages are refused with the reason, everything else goes on. Purging or deleting
// such a queue ends that state, and a restart tries again.
//
// Used on the shard's loop only, which is checked.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "broker/loop.h"
#include "model/action.h"
#include "model/error.h"
#include "model/ids.h"

namespace stanchion::broker {

class SetAside {
 public:
  void start(const Loop& loop) { owner_.start(loop); }
  void stop() { owner_.stop(); }

  // False if the queue was set aside before: the first reason stays.
  bool add(QueueId queue, const Failure& why);
  bool remove(QueueId queue) {
    owner_.check();
    return queues_.erase(queue) > 0;
  }
  bool contains(QueueId queue) const { return queues_.contains(queue); }
  bool empty() const { return queues_.empty(); }

  // The refusal of an action on this queue; nullopt if the action does not need its messages.
  std::optional<Error> refusal(Action action, QueueId queue) const;
  // The refusal of a request that waits for data that cannot be read.
  Error refusal(QueueId queue) const;

 private:
  OwningLoop owner_;
  std::map<QueueId, std::string> queues_;
};

}  // namespace stanchion::broker
