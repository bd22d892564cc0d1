// The pausing of one queue: which of its messages are handled, and which wait in its paused queue.
//
// Reads and writes the tags of the paused queue, on which all workers of the queue agree (PauseWatch),
// and ends a resumption when the paused queue is empty. With the mutex of the loop, all functions but
// set_paused().
//
//   PA1  No message of the queue begins, and none of its paused queue, unless the watch allows it at
//        that moment; after a resumption has ended nothing begins before the paused queue of a FIFO
//        queue was seen to be empty once more.
//   PA2  A group that a job has paused is moved two intervals after its tag was acknowledged, when
//        every worker has seen the tag.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "client/client.h"
#include "worker/pause_watch.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {

class PauseControl {
 public:
  struct Outside {
    std::function<bool()> is_idle;  // No message of the queue or of its paused queue is in flight.
    std::function<void()> stop_coming_back;  // Messages of the paused queue that have not begun go.
    std::function<void()> changed;           // Messages may begin that could not before.
    std::function<void(const std::string& what)> report;
  };

  // `tags`: of the paused queue, as read at `now`.
  PauseControl(client::Client& client, WorkerLoop& loop, std::string paused_queue_url, bool fifo,
               std::chrono::milliseconds interval, const client::StringMap& tags, Instant now,
               Outside outside);

  const std::string& paused_queue_url() const { return url_; }
  // Whether messages of the queue may begin, or be moved.
  bool may_begin(Instant now) const { return !recheck_ && watch_.may_begin(now); }
  // Whether those of the paused queue may.
  bool may_come_back(Instant now) const { return watch_.comes_back() && watch_.may_begin(now); }
  bool comes_back() const { return watch_.comes_back(); }
  // Whether the message goes to the paused queue, and not to its handler.
  bool moves(const TaskInformation& task) const;

  // A job pauses its message. `then` says later, or at once, whether it is to be moved now; if not,
  // it cannot be paused, which was reported.
  void pause(const TaskInformation& task, std::function<void(bool moves)> then);
  // Reads the tags if it is time; when to call it next.
  std::optional<Instant> tick(Instant now);
  // Pauses or resumes the queue, for all its workers, and waits for the server. Without the mutex.
  client::Outcome<PauseMode> set_paused(bool paused);

 private:
  void look();
  void looked(const client::StringMap& tags, Instant asked);
  void check_empty();
  void checked_empty(bool ends, bool empty);
  void change_tag(const char* tag, bool set);
  // Without the mutex.
  std::optional<client::Error> untag_paused();

  client::Client& client_;
  WorkerLoop& loop_;
  const std::string url_;
  const bool fifo_;
  const Outside outside_;
  PauseWatch watch_;
  Instant looked_at_{};  // At the tags, the last time.
  int empty_looks_ = 0;  // How often in a row the paused queue was empty while it is resumed.
  bool recheck_ = false;
};

}  // namespace stanchion::worker
