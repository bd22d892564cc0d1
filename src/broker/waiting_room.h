// Requests that cannot be executed yet: they need something from the store first, or room in memory
// or in the journal. None waits longer than limits::kRoomWaitMax.
//
// Used on the shard's loop only, which is checked.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "broker/loop.h"
#include "broker/parked_polls.h"
#include "engine/engine.h"
#include "model/request.h"

namespace stanchion::broker {

// A request with everything needed to execute it, now or later.
struct Job {
  Request request;
  engine::Neighbours neighbours;
  Ticket ticket;
  SteadyInstant arrived;
  Respond respond;
  Guard guard;
  // For a poll that has already waited: it is parked no longer than this.
  std::optional<SteadyInstant> until = std::nullopt;
  // When it is refused; set when it first has to wait.
  SteadyInstant give_up = SteadyInstant::max();
};

class WaitingRoom {
 public:
  void start(const Loop& loop) { owner_.start(loop); }
  void stop() { owner_.stop(); }

  // Records, the first time, until when the request may wait; false if that time is over.
  bool may_wait(Job& job, SteadyInstant now);

  // Waits until something of the queue was read, and until there is room.
  void wait_for_read(QueueId queue, Job job) {
    owner_.check();
    for_read_[queue].push_back(std::move(job));
  }
  void wait_for_room(Job job) {
    owner_.check();
    for_room_.push_back(std::move(job));
  }

  bool anyone_waits_for(QueueId queue) const { return for_read_.contains(queue); }
  bool anyone_waits_for_room() const { return !for_room_.empty(); }
  // In the order in which they came.
  std::deque<Job> take_those_for(QueueId queue);
  std::deque<Job> take_those_for_room() {
    owner_.check();
    return std::exchange(for_room_, {});
  }

  std::vector<Job> take_all();

  // Requests that have waited too long.
  struct Overdue {
    std::vector<Job> for_read;
    std::vector<Job> for_room;
  };
  Overdue take_overdue(SteadyInstant now);
  SteadyInstant next_deadline() const { return overdue_at_; }

  // A receive whose client has disconnected.
  void cancel(Ticket ticket);

  std::size_t size() const;

 private:
  OwningLoop owner_;
  std::map<QueueId, std::deque<Job>> for_read_;
  std::deque<Job> for_room_;
  SteadyInstant overdue_at_ = SteadyInstant::max();  // No request is overdue before this.
};

}  // namespace stanchion::broker
