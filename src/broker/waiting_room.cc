#include "broker/waiting_room.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/action.h"
#include "model/limits.h"

namespace stanchion::broker {

bool WaitingRoom::may_wait(Job& job, SteadyInstant now) {
  owner_.check();
  if (job.give_up == SteadyInstant::max()) job.give_up = now + limits::kRoomWaitMax;
  overdue_at_ = std::min(overdue_at_, job.give_up);
  return job.give_up > now;
}

std::deque<Job> WaitingRoom::take_those_for(QueueId queue) {
  owner_.check();
  auto found = for_read_.extract(queue);
  return found ? std::move(found.mapped()) : std::deque<Job>();
}

std::vector<Job> WaitingRoom::take_all() {
  owner_.check();
  std::vector<Job> all;
  for (auto& [queue, line] : for_read_) std::ranges::move(line, std::back_inserter(all));
  for_read_.clear();
  std::ranges::move(std::exchange(for_room_, {}), std::back_inserter(all));
  return all;
}

WaitingRoom::Overdue WaitingRoom::take_overdue(SteadyInstant now) {
  owner_.check();
  Overdue overdue;
  if (now < overdue_at_) return overdue;
  overdue_at_ = SteadyInstant::max();
  const auto sort_out = [&](std::deque<Job>& line, std::vector<Job>& into) {
    std::deque<Job> left;
    for (Job& job : line) {
      if (job.give_up <= now) {
        into.push_back(std::move(job));
      } else {
        overdue_at_ = std::min(overdue_at_, job.give_up);
        left.push_back(std::move(job));
      }
    }
    line = std::move(left);
  };
  sort_out(for_room_, overdue.for_room);
  for (auto& [queue, line] : for_read_) sort_out(line, overdue.for_read);
  std::erase_if(for_read_, [](const auto& entry) { return entry.second.empty(); });
  return overdue;
}

void WaitingRoom::cancel(Ticket ticket) {
  owner_.check();
  for (auto& [queue, line] : for_read_)
    std::erase_if(line, [&](const Job& job) {
      return job.ticket == ticket && action_of(job.request) == Action::kReceiveMessage;
    });
  std::erase_if(for_read_, [](const auto& entry) { return entry.second.empty(); });
}

std::size_t WaitingRoom::size() const {
  std::size_t count = for_room_.size();
  for (const auto& [queue, line] : for_read_) count += line.size();
  return count;
}

}  // namespace stanchion::broker
