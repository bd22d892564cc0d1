// The control log as a node uses it: see control.h.
#pragma once

#include <functional>

#include "base/result.h"
#include "fleet/control.h"

namespace stanchion::fleet {

class ControlLog {
 public:
  virtual ~ControlLog() = default;

  // Reading begins with the first record that the log has. `arrived` is called, on any thread, when
  // read() may find something. Called once, before everything else.
  virtual void follow(std::function<void()> arrived) = 0;
  // Passes what has arrived to `visit`, in order.
  virtual Status read(const std::function<void(const ControlRecord&)>& visit) = 0;
  // Whether read() has passed on everything that was in the log when reading began. A node that
  // decided before would not know what was decided.
  virtual bool has_caught_up() const = 0;
  // Sooner or later, or never if the node ends first.
  virtual void append(ControlRecord record) = 0;
};

}  // namespace stanchion::fleet
