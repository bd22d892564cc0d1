// Requests that cannot be executed yet: they need something from the store first, or room in memory
// or in the journal. None waits longer than limits::kRoomWaitMax.
//
// Those that wait for room stand in lines: the sends to one queue in one line, because a queue with a
// large backlog waits while another may go on, its receives in another, because they wait for other
// things, and everything else in one more. The lines take
// turns. So whether there is room is asked once a line, however many stand in it, and the line of a
// small queue is not behind that of a large one.
//
//   W1  size() counts everything that waits, and bytes() about what it takes.
//   W2  No line is empty, and within a line of sends requests are in the order in which their time
//       ends.
//
// Used on the shard's loop only, which is checked.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
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
  // It was let in, and waits for what it has asked the store for.
  bool has_asked = false;
  // When it is refused, and about what it takes; set when it first has to wait.
  SteadyInstant give_up = SteadyInstant::max();
  std::size_t bytes = 0;
};

class WaitingRoom {
 public:
  void start(const Loop& loop) { owner_.start(loop); }
  void stop() { owner_.stop(); }

  // Records, the first time, until when the request may wait, and its size; false if that time is
  // over.
  bool may_wait(Job& job, SteadyInstant now);

  // Waits until something of the queue was read, and until there is room.
  void wait_for_read(QueueId queue, Job job) {
    owner_.check();
    enter(for_read_[queue], std::move(job));
  }
  void wait_for_room(Job job);

  bool anyone_waits_for(QueueId queue) const { return for_read_.contains(queue); }
  bool anyone_waits_for_room() const { return !for_room_.empty(); }
  // In the order in which they came.
  std::deque<Job> take_those_for(QueueId queue);
  std::deque<Job> take_those_for_room();

  // Perhaps there is room: every line may be asked again.
  void ask_again() { refused_in_a_row_ = 0; }
  // The next request that may go on, of the lines in turn; nullopt if `looks`, which is decremented
  // for each request that is asked about, is used up, or if no line may go on: see is_asking().
  std::optional<Job> take_next(const std::function<bool(const Job&)>& may_go, std::size_t& looks);
  // Some line was not asked since ask_again().
  bool is_asking() const { return refused_in_a_row_ < for_room_.size(); }

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

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }

 private:
  // Without a queue: the line of those that are neither sends nor receives.
  struct Line {
    bool receives = false;
    std::optional<QueueRef> queue{};
    friend auto operator<=>(const Line&, const Line&) = default;
  };
  static Line line_of(const Job& job);
  using Lines = std::map<Line, std::deque<Job>>;
  // Every request comes and goes by these.
  void enter(std::deque<Job>& line, Job job);
  Job take_first(std::deque<Job>& line);
  template <class Container>
  void move_all(std::deque<Job>& line, Container& into);
  void take_from(std::deque<Job>& line, SteadyInstant now, std::vector<Job>& into);
  void drop_empty_lines();

  OwningLoop owner_;
  std::map<QueueId, std::deque<Job>> for_read_;
  Lines for_room_;
  Line turn_;  // The line to be asked next, or the one behind.
  std::size_t refused_in_a_row_ = 0;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  SteadyInstant overdue_at_ = SteadyInstant::max();  // No request is overdue before this.
};

}  // namespace stanchion::broker
