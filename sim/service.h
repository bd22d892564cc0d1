// What clients of a simulated world call: one server, or a fleet.
#pragma once

#include <functional>

#include "model/reply.h"
#include "model/request.h"
#include "sim/auditor.h"

namespace stanchion::sim {

class Service {
 public:
  // The answer, or nothing if none came.
  using Answered = std::move_only_function<void(const Reply*)>;

  virtual ~Service() = default;
  virtual bool takes_calls() const = 0;
  // A client's request: over the network, through the broker, and back.
  virtual CallNo call(Request request, Answered answered) = 0;
  // The client of that call disconnects, and a waiting receive is forgotten. False: too late.
  virtual bool vanish(CallNo call) = 0;
};

}  // namespace stanchion::sim
