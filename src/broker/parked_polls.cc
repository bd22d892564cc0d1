#include "broker/parked_polls.h"

#include "base/check.h"

namespace stanchion::broker {

void ParkedPolls::park(Poll poll) {
  owner_.check();
  const Arrival arrival = next_arrival_++;
  by_queue_[poll.request.queue].insert(arrival);
  by_deadline_.emplace(poll.deadline, arrival);
  by_ticket_.emplace(poll.ticket, arrival);
  polls_.emplace(arrival, std::move(poll));
}

ParkedPolls::Poll* ParkedPolls::first_for(const QueueRef& queue) {
  owner_.check();
  const auto found = by_queue_.find(queue);
  return found == by_queue_.end() ? nullptr : &polls_.at(*found->second.begin());
}

ParkedPolls::Poll ParkedPolls::take_first_for(const QueueRef& queue) {
  return take(*by_queue_.at(queue).begin());
}

std::optional<ParkedPolls::Poll> ParkedPolls::cancel(Ticket ticket) {
  owner_.check();
  const auto found = by_ticket_.find(ticket);
  if (found == by_ticket_.end()) return std::nullopt;
  return take(found->second);
}

std::optional<ParkedPolls::Poll> ParkedPolls::take_expired(SteadyInstant now) {
  if (next_deadline() > now) return std::nullopt;
  return take(by_deadline_.begin()->second);
}

std::vector<ParkedPolls::Poll> ParkedPolls::take_all() {
  std::vector<Poll> all;
  while (!polls_.empty()) all.push_back(take(polls_.begin()->first));
  return all;
}

ParkedPolls::Poll ParkedPolls::take(Arrival arrival) {
  owner_.check();
  auto node = polls_.extract(arrival);
  CHECK(!node.empty(), "PP1");
  Poll poll = std::move(node.mapped());
  const auto queue = by_queue_.find(poll.request.queue);
  queue->second.erase(arrival);
  if (queue->second.empty()) by_queue_.erase(queue);
  by_deadline_.erase({poll.deadline, arrival});
  by_ticket_.erase(poll.ticket);
  return poll;
}

}  // namespace stanchion::broker
