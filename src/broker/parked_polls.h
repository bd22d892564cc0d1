// Receives that wait for a message: indexed by queue in order of arrival, by deadline, and by
// ticket.
//
//   PP1  Every parked poll is in all three orders.
//
// How long they wait is measured by the steady clock, whatever date it is. Used on the shard's loop
// only, which is checked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "broker/guard.h"
#include "broker/loop.h"
#include "model/reply.h"
#include "model/request.h"

namespace stanchion::broker {

using Respond = std::move_only_function<void(Reply)>;

// Identifies one submitted request, so that it can be cancelled when its client disconnects.
using Ticket = Strong<struct TicketTag>;

class ParkedPolls {
 public:
  struct Poll {
    ReceiveMessage request;
    Ticket ticket;
    SteadyInstant deadline;
    Respond respond;
    Guard guard;
  };

  void start(const Loop& loop) { owner_.start(loop); }
  void stop() { owner_.stop(); }

  bool empty() const { return polls_.empty(); }
  std::size_t size() const { return polls_.size(); }

  void park(Poll poll);

  // The poll that has waited longest for this queue; nullptr if there is none.
  Poll* first_for(const QueueRef& queue);
  Poll take_first_for(const QueueRef& queue);
  bool anyone_waits_for(const QueueRef& queue) const { return by_queue_.contains(queue); }

  // Removes the poll; nullopt if it is not parked (any more).
  std::optional<Poll> cancel(Ticket ticket);

  // The latest possible instant if nobody waits.
  SteadyInstant next_deadline() const {
    return by_deadline_.empty() ? SteadyInstant::max() : by_deadline_.begin()->first;
  }
  std::optional<Poll> take_expired(SteadyInstant now);
  std::vector<Poll> take_all();

 private:
  using Arrival = std::uint64_t;  // Order of arrival, increasing.

  Poll take(Arrival arrival);

  OwningLoop owner_;
  std::map<Arrival, Poll> polls_;
  std::map<QueueRef, std::set<Arrival>> by_queue_;
  std::set<std::pair<SteadyInstant, Arrival>> by_deadline_;
  std::unordered_map<Ticket, Arrival> by_ticket_;
  Arrival next_arrival_ = 1;
};

}  // namespace stanchion::broker
