#include "broker/waiting_room.h"

#include <algorithm>
#include <utility>

#include "broker/admission.h"
#include "broker/held_bytes.h"
#include "engine/routing.h"
#include "model/action.h"
#include "model/limits.h"

namespace stanchion::broker {

bool WaitingRoom::may_wait(Job& job, SteadyInstant now) {
  owner_.check();
  if (job.give_up == SteadyInstant::max()) {
    job.give_up = now + limits::kRoomWaitMax;
    job.bytes = held_bytes(job.request);
  }
  overdue_at_ = std::min(overdue_at_, job.give_up);
  return job.give_up > now;
}

void WaitingRoom::enter(std::deque<Job>& line, Job job) {
  ++size_;
  bytes_ += job.bytes;
  line.push_back(std::move(job));
}

Job WaitingRoom::take_first(std::deque<Job>& line) {
  Job job = std::move(line.front());
  line.pop_front();
  --size_;
  bytes_ -= job.bytes;
  return job;
}

template <class Container>
void WaitingRoom::move_all(std::deque<Job>& line, Container& into) {
  while (!line.empty()) into.push_back(take_first(line));
}

void WaitingRoom::wait_for_room(Job job) {
  owner_.check();
  Line line = line_of(job);
  enter(for_room_[std::move(line)], std::move(job));
}

WaitingRoom::Line WaitingRoom::line_of(const Job& job) {
  const Action action = action_of(job.request);
  if (action == Action::kReceiveMessage) return {true, engine::home_of(job.request)};
  if (is_send(action)) return {false, engine::home_of(job.request)};
  return {};
}

std::deque<Job> WaitingRoom::take_those_for(QueueId queue) {
  owner_.check();
  auto found = for_read_.extract(queue);
  std::deque<Job> all;
  if (found) move_all(found.mapped(), all);
  return all;
}

std::deque<Job> WaitingRoom::take_those_for_room() {
  owner_.check();
  std::deque<Job> all;
  for (auto& [queue, line] : std::exchange(for_room_, {})) move_all(line, all);
  return all;
}

std::optional<Job> WaitingRoom::take_next(const std::function<bool(const Job&)>& may_go,
                                          std::size_t& looks) {
  owner_.check();
  for (; looks > 0 && is_asking(); --looks) {
    auto line = for_room_.lower_bound(turn_);
    if (line == for_room_.end()) line = for_room_.begin();
    const auto next = std::next(line);
    turn_ = next == for_room_.end() ? Line() : next->first;
    if (!may_go(line->second.front())) {
      ++refused_in_a_row_;
      continue;
    }
    refused_in_a_row_ = 0;
    Job job = take_first(line->second);
    if (line->second.empty()) for_room_.erase(line);
    --looks;
    return job;
  }
  return std::nullopt;
}

std::vector<Job> WaitingRoom::take_all() {
  owner_.check();
  std::vector<Job> all;
  for (auto& [queue, line] : std::exchange(for_read_, {})) move_all(line, all);
  for (auto& [queue, line] : std::exchange(for_room_, {})) move_all(line, all);
  return all;
}

// Those whose time is over, wherever they stand in the line.
void WaitingRoom::take_from(std::deque<Job>& line, SteadyInstant now, std::vector<Job>& into) {
  for (std::size_t left = line.size(); left > 0; --left) {
    Job job = take_first(line);
    if (job.give_up <= now) {
      into.push_back(std::move(job));
    } else {
      overdue_at_ = std::min(overdue_at_, job.give_up);
      enter(line, std::move(job));
    }
  }
}

WaitingRoom::Overdue WaitingRoom::take_overdue(SteadyInstant now) {
  owner_.check();
  Overdue overdue;
  if (now < overdue_at_) return overdue;
  overdue_at_ = SteadyInstant::max();
  for (auto& [key, line] : for_room_) {
    if (!key.queue || key.receives) {
      take_from(line, now, overdue.for_room);
      continue;
    }
    while (!line.empty() && line.front().give_up <= now)
      overdue.for_room.push_back(take_first(line));
    if (!line.empty()) overdue_at_ = std::min(overdue_at_, line.front().give_up);
  }
  for (auto& [queue, line] : for_read_) take_from(line, now, overdue.for_read);
  drop_empty_lines();
  return overdue;
}

// The lines that were refused in a row are not known, only how many there were: when one is gone, all
// are asked again.
void WaitingRoom::drop_empty_lines() {
  const auto is_empty = [](const auto& entry) { return entry.second.empty(); };
  if (std::erase_if(for_room_, is_empty) > 0) ask_again();
  std::erase_if(for_read_, is_empty);
}

void WaitingRoom::cancel(Ticket ticket) {
  owner_.check();
  const auto remove_from = [&](std::deque<Job>& line) {
    size_ -= std::erase_if(line, [&](const Job& job) {
      const bool is_it = job.ticket == ticket && action_of(job.request) == Action::kReceiveMessage;
      if (is_it) bytes_ -= job.bytes;
      return is_it;
    });
  };
  for (auto& [queue, line] : for_read_) remove_from(line);
  for (auto at = for_room_.lower_bound({.receives = true}); at != for_room_.end(); ++at)
    remove_from(at->second);
  drop_empty_lines();
}

}  // namespace stanchion::broker
