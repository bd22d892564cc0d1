// The mutex of a worker or of a distributor, the one thread that keeps its timers, and how many of
// its calls are under way.
//
//   completion of a call ─┐
//   thread of a handler ──┼─▶ mutex ─▶ state ─▶ wake, wake_by ─▶ loop's thread: tell, timers, tick
//   caller ───────────────┘
//
// What the callers of this class guard with the mutex is theirs. Functions are called with the mutex
// held unless their comment says otherwise.
//
//   WL1  What is told runs in order, once, without the mutex.
//   WL2  A timer or a tick runs when its time has come or later, on the loop's thread; whoever makes
//        it due earlier than the loop knows wakes the loop.
//   WL3  Nothing of the loop is destroyed while a completion of a counted call is still to come.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "worker/task.h"

namespace stanchion::worker {

// The earlier one of two times, each of which may be none.
inline std::optional<Instant> earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

class WorkerLoop {
 public:
  using Lock = std::unique_lock<std::mutex>;
  // What is due, and when the next thing is. May release the lock meanwhile.
  using Tick = std::function<std::optional<Instant>(Lock& lock, Instant now)>;

  WorkerLoop() = default;
  // Without the mutex. REQUIRES: close() if it was started, and no call is under way.
  ~WorkerLoop();
  WorkerLoop(const WorkerLoop&) = delete;
  WorkerLoop& operator=(const WorkerLoop&) = delete;

  std::mutex& mutex() { return mutex_; }

  void start(Tick tick);
  // Ends the thread, which tells what there is to be told. Without the mutex.
  void close();
  // For what is to be told after close().
  void tell_now(Lock& lock);

  // `then` runs at that time, with the mutex.
  void at(Instant time, std::function<void()> then);
  // `what` runs soon, without the mutex: jobs and callers may take their time, and may call the worker.
  void tell(std::function<void()> what);
  void wake();
  // The loop ticks at that time at the latest.
  void wake_by(Instant time);

  // A completion that takes the mutex; until it has run, the call counts as under way.
  template <class Body>
  auto counted(Body body) {
    ++calls_;
    return [this, body = std::move(body)](auto outcome) {
      const std::lock_guard lock(mutex_);
      body(std::move(outcome));
      call_ended();
    };
  }
  std::size_t calls() const { return calls_; }

  // From now on settled() ends waits.
  void begin_to_stop() { stopping_ = true; }
  bool is_stopping() const { return stopping_; }
  // Something has ended for which a stop may wait.
  void settled();
  template <class Done>
  void wait_until_settled(Lock& lock, std::chrono::steady_clock::time_point end, Done done) {
    idle_.wait_until(lock, end, done);
  }
  template <class Done>
  void wait_until_settled(Lock& lock, Done done) {
    idle_.wait(lock, done);
  }

 private:
  void run();
  std::optional<Instant> run_timers(Instant now);
  void call_ended();

  std::mutex mutex_;
  std::condition_variable changed_;  // The loop's thread is to look.
  std::condition_variable idle_;     // Something was settled while the worker stops.
  bool woken_ = false;
  bool stopping_ = false;
  bool closed_ = false;
  Instant wakes_ = Instant::max();  // When the thread looks by itself; max: it is looking now.
  std::size_t calls_ = 0;
  std::multimap<Instant, std::function<void()>> timers_;
  std::vector<std::function<void()>> told_;
  Tick tick_;
  std::thread thread_;
};

}  // namespace stanchion::worker
