// One event loop on one thread, and the pool that runs one per core.
//
//   other threads ── post ──▶ inbox ─┐
//   sockets, timers ─────────────────┴─▶ the reactor's thread runs one callback at a time
//
// Everything that lives on a reactor (sockets, timers, shards) is touched only by its thread, so
// none of it is locked. Other threads may only call post().
//
//   R1  Callbacks of one reactor never run at the same time, and post() keeps the order of each
//       posting thread.
//   R2  However many callbacks are posted before the loop comes around, it is woken once. It runs
//       some of them at a time: sockets, timers and what is deferred have their turns in between.
//   R3  Tasks still in the inbox when the loop stops are destroyed with the reactor, not run.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"

namespace boost::asio {
class io_context;
}

namespace stanchion::net {

using Task = std::move_only_function<void()>;
using SteadyTime = std::chrono::steady_clock::time_point;

class Reactor {
 public:
  explicit Reactor(std::size_t index);
  ~Reactor();
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  // Any thread: runs `task` on the reactor's thread, never inside this call. The inbox itself has
  // no bound; code that posts for clients must bound what is under way.
  void post(Task task);

  // Reactor thread only: runs `task` when the current round ends, or else soon, but never inside
  // this call. A task deferred by such a task comes after everything that is ready by then.
  void defer(Task task);

  // Reactor thread only: runs `task` in a moment if it is still `wanted` then. Meanwhile the loop
  // does its other work, but does not sleep.
  using Wanted = std::move_only_function<bool()>;
  void linger(Wanted wanted, Task task);

  // While it lives, the callbacks that run belong to one round.
  class Round {
   public:
    explicit Round(Reactor& reactor);
    ~Round();
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    Reactor& reactor_;
  };

  // The reactor whose thread this is, or null.
  static Reactor* current();
  bool is_current() const { return current() == this; }

  // Position in the pool, from 0.
  std::size_t index() const { return index_; }

  // Reactor thread only, or before the loop runs.
  boost::asio::io_context& context();

  // Runs the loop on the calling thread until stop(). Called by the pool.
  void run();
  // Any thread: the loop ends after the callback that is running now.
  void stop();

 private:
  struct Impl;
  std::size_t index_;
  std::unique_ptr<Impl> impl_;
};

// A callback at a point in time, for objects that keep one next deadline and move it often.
//
// Reactor thread only. Moving the deadline later costs nothing: the timer wakes at the old one,
// sees that it is early and goes back to sleep without calling.
class Timer {
 public:
  Timer(Reactor& reactor, Task on_due);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls on_due once at `when` or soon after, replacing any deadline set before.
  void arm(SteadyTime when);
  void cancel();
  bool armed() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

struct ReactorPoolOptions {
  std::size_t reactors = 0;  // 0: one per CPU that this process may use.
  bool pin_threads = false;  // Reactor i stays on the i-th CPU that this process may use.
};

// The reactors and their threads. Outlives everything that lives on them.
class ReactorPool {
 public:
  explicit ReactorPool(ReactorPoolOptions options = {});
  ~ReactorPool();
  ReactorPool(const ReactorPool&) = delete;
  ReactorPool& operator=(const ReactorPool&) = delete;

  // Starts the threads and ignores SIGPIPE, because a client may disconnect while it is written to.
  Status start();
  // Stops the loops and joins the threads. Not from a reactor's thread. May be called twice.
  void stop();
  bool running() const { return !threads_.empty(); }

  std::size_t size() const { return reactors_.size(); }
  Reactor& operator[](std::size_t index) { return *reactors_[index]; }

 private:
  Status pin(std::thread& thread, std::size_t index);

  ReactorPoolOptions options_;
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::vector<std::thread> threads_;
};

}  // namespace stanchion::net
