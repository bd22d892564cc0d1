// Says whether the caller of a request may do what it asks with the queue. The service makes guards;
// the shard that executes the request asks them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/error.h"
#include "model/request.h"

namespace stanchion::broker {

// What a guard sees of a queue.
struct GuardedQueue {
  const std::string& arn;
  const std::string& policy;  // Empty: none.
  const StringMap& tags;
};

class RequestGuard {
 public:
  virtual ~RequestGuard() = default;

  // On the shard's loop; `queue` is null if there is no such queue. Called again each time that the
  // request has waited, because permissions may have changed meanwhile.
  virtual std::optional<Error> check(const GuardedQueue* queue) = 0;

  // As bytes, not empty, for the node of a fleet that serves the queue.
  virtual std::string pack() const = 0;
};

using Guard = std::unique_ptr<RequestGuard>;  // Null: nothing is checked.

// Makes a guard of packed bytes, one that refuses if they cannot be understood; never null. Any
// thread.
using UnpackGuard = std::function<Guard(std::string_view packed)>;

}  // namespace stanchion::broker
