#include "tests/model/peek_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace stanchion::reference {
namespace {

PeekedState shown(Message::Where where) {
  switch (where) {
    case Message::Where::kDelayed:
      return PeekedState::kDelayed;
    case Message::Where::kReady:
      return PeekedState::kVisible;
    case Message::Where::kInFlight:
      return PeekedState::kInFlight;
  }
  return PeekedState::kVisible;
}

bool wants(const StanchionPeek& request, const Message& message) {
  static constexpr std::array<std::string_view, 3> kNames{"Visible", "Delayed", "InFlight"};
  const auto state = static_cast<std::size_t>(shown(message.where));
  if (request.group_id && *request.group_id != message.group) return false;
  if (request.search && message.body.find(*request.search) == std::string::npos &&
      message.group.find(*request.search) == std::string::npos &&
      message.deduplication_id.find(*request.search) == std::string::npos)
    return false;
  return request.states.empty() || std::ranges::count(request.states, kNames[state]) > 0;
}

void check_one(const Queue& queue, const Message& wanted, const PeekedMessage& is) {
  const auto same = [&](const char* what, bool equal) {
    require(equal,
            fmt::format("a peek of {} shows another {} of {}", queue.name, what, wanted.body));
  };
  same("body", is.content->body() == wanted.body);
  same("state", is.state == shown(wanted.where));
  same("receive count", is.receive_count == wanted.receive_count);
  same("time of arrival", is.entered == wanted.entered);
  same("time of sending", is.content->sent() == wanted.sent);
  same("source", is.content->source_arn() == wanted.source_arn);
  same("expiry", is.expires == wanted.retained_from + std::chrono::seconds(queue.retention));
  if (wanted.id) same("id", is.content->id() == *wanted.id);
  if (wanted.where != Message::Where::kReady) same("due time", is.due == wanted.due);
  if (wanted.where == Message::Where::kInFlight) same("receive", is.received == wanted.received);
  if (wanted.receive_count > 0) same("first receive", is.first_received == wanted.first_received);
}

}  // namespace

std::vector<std::uint64_t> check_whole_peek(const Queue& queue, const StanchionPeek& request,
                                            const std::vector<PeekedMessage>& seen) {
  std::map<std::string, std::vector<const Message*>, std::less<>> groups;
  std::size_t count = 0;
  for (const Message& message : queue.messages) {
    if (!wants(request, message)) continue;
    groups[message.group].push_back(&message);
    ++count;
  }
  require(seen.size() == count, fmt::format("a peek of {} shows {} messages instead of {}",
                                            queue.name, seen.size(), count));
  // Group after group, each in order.
  std::set<std::string, std::less<>> visited;
  std::vector<std::uint64_t> places;
  for (std::size_t i = 0; i < seen.size();) {
    const std::string group(seen[i].content->group());
    require(visited.insert(group).second, "a peek comes back to a group");
    for (const Message* wanted : groups[group]) {
      require(i < seen.size() && seen[i].content->group() == group, "a peek leaves a group early");
      check_one(queue, *wanted, seen[i++]);
      places.push_back(wanted->place);
    }
  }
  if (count > 0) note("a peek");
  if (!request.states.empty() && count > 0) note("a peek of some states");
  if (request.search && count > 0) note("a peek that searched");
  return places;
}

void check_groups(const Queue& queue, const std::vector<Passage>& passages,
                  const std::vector<StanchionGroupsResult::Group>& groups) {
  struct Wanted {
    std::uint64_t waiting = 0, delayed = 0, in_flight = 0;
  };
  std::map<std::string, Wanted> wanted;
  for (const Message& message : queue.messages) {
    Wanted& group = wanted[message.group];
    using enum Message::Where;
    const bool waits = message.where == kReady || (message.where == kDelayed && queue.fifo);
    group.waiting += waits;
    group.delayed += message.where == kDelayed && !waits;
    group.in_flight += message.where == kInFlight;
  }
  // What is on its way to another queue still locks its FIFO group.
  if (queue.fifo)
    for (const Passage& passing : passages)
      if (passing.source == queue.number && passing.message.place >= queue.first_kept)
        ++wanted[passing.message.group].in_flight;
  require(groups.size() == wanted.size(),
          fmt::format("{} has {} groups instead of {}", queue.name, groups.size(), wanted.size()));
  for (const auto& group : groups) {
    const Wanted& is = wanted[group.id];
    require(is.waiting == group.waiting && is.delayed == group.delayed &&
                is.in_flight == group.in_flight,
            fmt::format("the group {} of {} has other messages", group.id, queue.name));
    require(group.lock.has_value() == (queue.fifo && is.in_flight > 0),
            fmt::format("the lock of group {} is wrong", group.id));
  }
}

PeekWalk::PeekWalk(const Queue& queue) : number_(queue.number) {
  for (const Message& message : queue.messages) at_begin_.insert(message.place);
}

PeekWalk::Key PeekWalk::key_of(const Message& message) {
  return {to_millis(message.entered), message.group, message.body};
}

void PeekWalk::look(const Queue& queue) {
  for (const Message& message : queue.messages) lived_.emplace(message.place, key_of(message));
}

void PeekWalk::take(const StanchionPeekResult& page) {
  for (const PeekedMessage& message : page.messages)
    ++seen_[{to_millis(message.entered), std::string(message.content->group()),
             std::string(message.content->body())}];
  token_ = page.next_token;
}

void PeekWalk::check_end(const Queue& queue) const {
  std::map<Key, std::size_t> least, most;
  for (const Message& message : queue.messages)
    if (at_begin_.contains(message.place) && !message.came_back) ++least[key_of(message)];
  for (const auto& [place, key] : lived_) ++most[key];
  const auto count = [](const std::map<Key, std::size_t>& counts, const Key& key) {
    const auto found = counts.find(key);
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [key, times] : least)
    require(count(seen_, key) >= times,
            fmt::format("pages of a peek left out {} of {}", std::get<2>(key), queue.name));
  if (!restarted_)
    for (const auto& [key, times] : seen_)
      require(times <= count(most, key),
              fmt::format("pages of a peek show {} of {} twice", std::get<2>(key), queue.name));
  if (!least.empty()) note("a peek page by page");
}

}  // namespace stanchion::reference
