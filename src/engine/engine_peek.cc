// Handlers of the actions that only look: they write no fact and change nothing.
#include <fmt/format.h>

#include <charconv>
#include <ranges>
#include <span>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/rules/validation.h"
#include "model/limits.h"
#include "model/message_position.h"

namespace stanchion::engine {
namespace {

std::unexpected<Error> bad_token() {
  return refuse(ErrorCode::kInvalidParameterValue,
                "Value for parameter NextToken is invalid. Reason: It is not one that this queue "
                "has given; begin without one.");
}

// A token names a position in a queue: numbers, the first of which is that of the queue.
std::string make_token(QueueId queue, std::initializer_list<Seq> seqs) {
  std::string text = fmt::format("{:x}", queue.value());
  for (const Seq seq : seqs) text += fmt::format(".{:x}", seq.value());
  return to_base64(text);
}

bool parse_token(std::string_view token, QueueId queue, std::span<Seq> seqs) {
  const auto text = from_base64(token);
  if (!text) return false;
  std::size_t count = 0;
  for (const auto part : std::views::split(*text, '.')) {
    const std::string_view digits(part.begin(), part.end());
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    if (count == 0 && number != queue.value()) return false;
    if (count > seqs.size()) return false;
    if (count > 0) seqs[count - 1] = Seq(number);
    ++count;
  }
  return count == seqs.size() + 1;
}

Answer<std::size_t> page_size(const std::optional<std::int64_t>& asked, std::int64_t otherwise,
                              std::int64_t most) {
  const std::int64_t size = asked.value_or(otherwise);
  if (size >= 1 && size <= most) return static_cast<std::size_t>(size);
  return refuse(ErrorCode::kInvalidParameterValue,
                fmt::format("Value {} for parameter MaxResults is invalid. Reason: Must be between "
                            "1 and {}, if provided.",
                            size, most));
}

Answer<void> take_states(const std::vector<std::string>& names, Peek& peek) {
  if (names.empty()) return {};
  peek.ready = peek.delayed = peek.in_flight = false;
  for (const std::string& name : names) {
    if (name == "Visible") {
      peek.ready = true;
    } else if (name == "Delayed") {
      peek.delayed = true;
    } else if (name == "InFlight") {
      peek.in_flight = true;
    } else {
      return refuse(ErrorCode::kInvalidParameterValue,
                    "Value for parameter States is invalid. Reason: Must be Visible, Delayed or "
                    "InFlight.");
    }
  }
  return {};
}

Answer<Peek> peek_of(const StanchionPeek& request, QueueId queue) {
  Peek peek;
  const auto size =
      page_size(request.max_results, limits::kPeekMessagesDefault, limits::kPeekMessagesMax);
  if (!size) return std::unexpected(size.error());
  peek.messages_max = *size;
  if (const auto ok = take_states(request.states, peek); !ok) return std::unexpected(ok.error());
  peek.group = request.group_id;
  peek.search = request.search.value_or("");
  if (peek.search.size() > limits::kPeekSearchSizeMax)
    return refuse(ErrorCode::kInvalidParameterValue,
                  fmt::format("Value for parameter Search is invalid. Reason: Must not be longer "
                              "than {} bytes.",
                              limits::kPeekSearchSizeMax));
  if (request.next_token && !request.next_token->empty()) {
    std::array<Seq, 2> seqs;
    if (!parse_token(*request.next_token, queue, seqs)) return bad_token();
    peek.at = {seqs[0], seqs[1]};
  }
  return peek;
}

PeekedState shown(State state) {
  switch (state) {
    case State::kDelayed:
      return PeekedState::kDelayed;
    case State::kReady:
      return PeekedState::kVisible;
    case State::kInFlight:
      return PeekedState::kInFlight;
  }
  check_failed("state", "no such state", std::source_location::current());
}

StanchionGroupsResult::Group describe(const Lane& lane, const Queue& queue, Instant now) {
  const LaneSet& lanes = queue.stock().lanes();
  const std::size_t in_flight = queue.counts().in_flight;
  StanchionGroupsResult::Group group{.id = lane.group,
                                     .waiting = lane.waiting,
                                     .delayed = lane.delayed,
                                     .in_flight = lane.locks,
                                     .lock = std::nullopt};
  if (const Message* first = lane.first_blocker) {
    group.lock = {first->seq, std::nullopt, first->received, first->due, first->receive_count};
    if (first->content) group.lock->message = first->content->id();
  }
  if (queue.fifo()) return group;
  group.in_flight_percent =
      in_flight == 0 ? 0 : static_cast<std::uint32_t>(std::uint64_t{lane.locks} * 100 / in_flight);
  group.busy_percent = lanes.busy_percent(lane, now);
  group.noisy = lanes.is_noisy(lane);
  return group;
}

}  // namespace

Reply Engine::on(const StanchionPeek& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  auto peek = peek_of(request, queue.id);
  if (!peek) return std::unexpected(peek.error());
  queue.stock().residency().peek(*peek);
  decision.blocked = peek->blocked;
  StanchionPeekResult result;
  if (peek->blocked) return result;
  const Duration retention = std::chrono::seconds(queue.attributes().retention_seconds);
  for (Sighting& one : peek->found) {
    std::string position = format_position(
        {queue.id, one.seq, one.content->id(), std::string(one.content->group())}, receipt_key_);
    result.messages.push_back(
        {.content = std::move(one.content),
         .state = shown(one.state),
         .entered = one.entered,
         .expires = one.retained_from + retention,
         .due = one.due,
         .received = one.received,
         .first_received = one.first_received,
         .receive_count = one.receive_count,
         .sequence_number = queue.fifo() ? std::optional(one.seq) : std::nullopt,
         .position = std::move(position)});
  }
  if (!peek->finished) result.next_token = make_token(queue.id, {peek->at.lane, peek->at.after});
  return result;
}

Reply Engine::on(const StanchionGroups& request, Queue& queue, const Neighbours&,
                 Decision& decision) {
  const auto size = page_size(request.max_results, limits::kGroupsDefault, limits::kGroupsMax);
  if (!size) return std::unexpected(size.error());
  std::array<Seq, 1> from{};
  if (request.next_token && !request.next_token->empty() &&
      !parse_token(*request.next_token, queue.id, from))
    return bad_token();
  StanchionGroupsResult result;
  result.fifo = queue.fifo();
  const LaneSet& lanes = queue.stock().lanes();
  for (const Lane* lane = lanes.first_born_from(from[0]); lane != nullptr;
       lane = lanes.next_born(*lane)) {
    if (lane->idle()) continue;
    if (result.groups.size() == *size) {
      result.next_token = make_token(queue.id, {lane->born});
      break;
    }
    result.groups.push_back(describe(*lane, queue, decision.now));
  }
  return result;
}

// Advice needs the queues of all shards.
Reply Engine::on(const StanchionAdvice&, const Neighbours&, Decision&) {
  return refuse(ErrorCode::kInternalFailure, "Advice is not given by a shard.");
}

void Engine::forget_peeked(QueueId id) {
  if (Queue* queue = find_by_id(id)) queue->stock().residency().forget_peeked();
}

}  // namespace stanchion::engine
