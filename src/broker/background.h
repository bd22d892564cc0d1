// Where a shard's slow work is done, away from its loop: on threads in the server, as events of the
// virtual world in the simulation.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>

#include "broker/loop.h"

namespace stanchion::broker {

// Reads never wait behind a checkpoint, and neither behind a report for somebody who watches, the
// history of the queues, the copy of a store, or the end of something large: nobody waits for the
// memory of a purged queue or of a written checkpoint, and freeing millions of messages takes long.
enum class Work : std::uint8_t { kCheckpoint, kRead, kReport, kHistory, kCopy, kDiscard };
inline constexpr std::size_t kKindsOfWork = 6;

class Background {
 public:
  virtual ~Background() = default;

  // Any thread. Tasks of one kind run one after the other, in the order in which they were posted.
  virtual void run(Work work, Task task) = 0;
};

// A thread for each kind of work. The destructor finishes the tasks posted before, then ends.
class BackgroundThreads final : public Background {
 public:
  BackgroundThreads();
  ~BackgroundThreads() override;

  void run(Work work, Task task) override;

 private:
  struct Worker {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Task> tasks;
    bool ending = false;
    std::thread thread;
  };
  static void work(Worker& worker);

  std::array<Worker, kKindsOfWork> workers_;
};

}  // namespace stanchion::broker
