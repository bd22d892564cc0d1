#include "broker/background.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace stanchion::broker {
namespace {

// On a single core, a checkpoint gets a quarter of the core beside requests, which is about what it
// needs if everything that is sent stays. Requests wait for reads, so reads get no lower priority.
constexpr int kCheckpointNice = 5;

}  // namespace

BackgroundThreads::BackgroundThreads() {
  for (const Work kind : {Work::kCheckpoint, Work::kRead, Work::kReport, Work::kHistory,
                          Work::kCopy, Work::kDiscard}) {
    Worker& worker = workers_[static_cast<std::size_t>(kind)];
    worker.thread = std::thread([&worker, kind] {
      constexpr std::array<const char*, kKindsOfWork> kNames{"checkpoints", "reads",  "reports",
                                                             "history",     "copies", "discards"};
      pthread_setname_np(pthread_self(), kNames[static_cast<std::size_t>(kind)]);
      // On Linux a thread has its own priority. If it cannot be set, the server is only slower.
      if (kind != Work::kRead)
        static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kCheckpointNice));
      work(worker);
    });
  }
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
    task = nullptr;  // The task's captures are destroyed here, not under the lock.
    lock.lock();
  }
}

}  // namespace stanchion::broker
