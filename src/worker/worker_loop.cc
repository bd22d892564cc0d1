#include "worker/worker_loop.h"

#include <algorithm>

#include "base/check.h"

namespace stanchion::worker {

WorkerLoop::~WorkerLoop() {
  CHECK(!thread_.joinable(), "a loop is closed before it is destroyed");
  CHECK(calls_ == 0, "WL3: a completion would find no loop");
}

void WorkerLoop::start(Tick tick) {
  CHECK(!thread_.joinable() && !closed_, "a loop is started once");
  tick_ = std::move(tick);
  thread_ = std::thread([this] { run(); });
}

void WorkerLoop::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
}

void WorkerLoop::run() {
  Lock lock(mutex_);
  while (!closed_) {
    woken_ = false;
    wakes_ = Instant::max();
    tell_now(lock);
    const Instant now = Clock::now();
    std::optional<Instant> next = run_timers(now);
    next = earlier(next, tick_(lock, now));
    CHECK(lock.owns_lock(), "a tick gives the mutex back");
    const auto changed = [this] { return woken_ || closed_; };
    wakes_ = next.value_or(Instant::max());
    if (next)
      changed_.wait_for(lock, std::max(*next - now, Clock::duration(1)), changed);
    else
      changed_.wait(lock, changed);
  }
  // Jobs that do not learn that they are to stop would keep the destructor waiting.
  tell_now(lock);
}

std::optional<Instant> WorkerLoop::run_timers(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto due = timers_.extract(timers_.begin());
    CHECK(due.key() <= now, "WL2: no timer runs before its time");
    due.mapped()();
  }
  if (timers_.empty()) return std::nullopt;
  return timers_.begin()->first;
}

void WorkerLoop::tell_now(Lock& lock) {
  CHECK(lock.owns_lock(), "WL1: the list is read with the mutex");
  while (!told_.empty()) {
    const auto told = std::exchange(told_, {});
    lock.unlock();
    for (const auto& each : told) each();
    lock.lock();
  }
}

void WorkerLoop::at(Instant time, std::function<void()> then) {
  CHECK(then != nullptr, "WL2: a timer has something to do");
  timers_.emplace(time, std::move(then));
  wake_by(time);
}

void WorkerLoop::tell(std::function<void()> what) {
  CHECK(what != nullptr, "WL1: there is something to tell");
  told_.push_back(std::move(what));
  wake();
}

void WorkerLoop::wake() {
  if (std::exchange(woken_, true)) return;
  changed_.notify_one();
}

void WorkerLoop::wake_by(Instant time) {
  if (time < wakes_) wake();
}

void WorkerLoop::call_ended() {
  CHECK(calls_ > 0, "WL3: a call ends once");
  --calls_;
  settled();
}

void WorkerLoop::settled() {
  if (stopping_) idle_.notify_all();
}

}  // namespace stanchion::worker
