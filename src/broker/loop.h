// The thread that a shard lives on, as the broker sees it: a net reactor in the server, a scheduler
// of virtual events in the simulation.
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <utility>

#include "base/check.h"
#include "base/time.h"

namespace stanchion::broker {

using Task = std::move_only_function<void()>;

// A timer for one deadline, the last one that was set. Owned and used on the loop's thread.
class Alarm {
 public:
  virtual ~Alarm() = default;

  // Calls back once, `from_now` from now or soon after, replacing what was set before.
  virtual void set(Duration from_now) = 0;
};

class Loop {
 public:
  virtual ~Loop() = default;

  // Any thread: runs the task on the loop's thread, never inside this call. Tasks posted by one
  // thread run in their order.
  virtual void post(Task task) = 0;

  // The loop's thread: runs the task after everything that is ready to run now.
  virtual void defer(Task task) = 0;

  // The loop's thread: runs the task in a moment, unless it is no longer wanted by then. Meanwhile
  // the loop does its other work, but does not sleep.
  using Wanted = std::move_only_function<bool()>;
  virtual void linger(Wanted, Task task) { defer(std::move(task)); }

  virtual bool is_current() const = 0;

  virtual std::unique_ptr<Alarm> make_alarm(Task on_due) = 0;
};

// The loop that a part of a shard belongs to, for a check at its entry points. Before start() and
// after stop() no loop runs it: the code that recovers or closes the shard uses it then.
class OwningLoop {
 public:
  void start(const Loop& loop) { loop_ = &loop; }
  void stop() { loop_ = nullptr; }

  void check(std::source_location where = std::source_location::current()) const {
    if (loop_ == nullptr || loop_->is_current()) return;
    check_failed("is_current()", "a shard and its parts are used on its loop", where);
  }

 private:
  const Loop* loop_ = nullptr;
};

}  // namespace stanchion::broker
