// The thread that a shard lives on, as the broker sees it: a net reactor in the server, a scheduler
// of virtual events in the simulation.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/time.h"

namespace stanchion::broker {

using Task = std::move_only_function<void()>;

// One callback at the latest deadline that was set. Owned and used on the loop's thread.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Calls back once, `from_now` from now or soon after, instead of when it was last told to.
  virtual void set(Duration from_now) = 0;
};

class Loop {
 public:
  virtual ~Loop() = default;

  // Any thread: runs the task on the loop's thread, never inside this call. Tasks posted by one
  // thread run in their order.
  virtual void post(Task task) = 0;

  // The loop's thread: runs the task after what is ready to run now.
  virtual void defer(Task task) = 0;

  // The loop's thread: runs the task in a moment, during which the loop does what it has to do but
  // does not sleep, unless it is no longer wanted by then.
  using Wanted = std::move_only_function<bool()>;
  virtual void linger(Wanted, Task task) { defer(std::move(task)); }

  virtual bool is_current() const = 0;

  virtual std::unique_ptr<Alarm> make_alarm(Task on_due) = 0;
};

}  // namespace stanchion::broker
