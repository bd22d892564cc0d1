#include "broker/background.h"

namespace stanchion::broker {

BackgroundThreads::BackgroundThreads() {
  for (Worker& worker : workers_) worker.thread = std::thread([&worker] { work(worker); });
}

BackgroundThreads::~BackgroundThreads() {
  for (Worker& worker : workers_) {
    {
      const std::lock_guard lock(worker.mutex);
      worker.ending = true;
    }
    worker.wake.notify_one();
    worker.thread.join();
  }
}

void BackgroundThreads::run(Work work, Task task) {
  Worker& worker = workers_[static_cast<std::size_t>(work)];
  {
    const std::lock_guard lock(worker.mutex);
    worker.tasks.push_back(std::move(task));
  }
  worker.wake.notify_one();
}

void BackgroundThreads::work(Worker& worker) {
  std::unique_lock lock(worker.mutex);
  for (;;) {
    worker.wake.wait(lock, [&] { return worker.ending || !worker.tasks.empty(); });
    if (worker.tasks.empty()) return;
    Task task = std::move(worker.tasks.front());
    worker.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // What it holds is let go of here, not under the lock.
    lock.lock();
  }
}

}  // namespace stanchion::broker
