#include "engine/message_states.h"

#include "base/check.h"

namespace stanchion::engine {

std::size_t& MessageStates::count_of(State state) {
  switch (state) {
    case State::kDelayed:
      return counts_.delayed;
    case State::kReady:
      return counts_.visible;
    case State::kInFlight:
      return counts_.in_flight;
  }
  check_failed("state", "no such state", std::source_location::current());
}

// Messages expire in order of Seq, except those whose retention began before they came (dead
// letters).
void MessageStates::note_early(Message& message) {
  if (message.retained_from < message.entered)
    early_.push(message, {message.retained_from, message.seq});
}

void MessageStates::forget_early(Message& message) {
  if (early_.holds(message)) early_.remove(message);
}

void MessageStates::enter(Message& message) {
  ++count_of(message.state);
  if (message.state != State::kReady) timers_.push(message, {message.due, message.seq});
  note_early(message);
}

void MessageStates::leave(Message& message) {
  std::size_t& count = count_of(message.state);
  CHECK(count > 0, "Q1: a message that leaves was counted");
  --count;
  if (message.state != State::kReady) timers_.remove(message);
  forget_early(message);
}

void MessageStates::change(Message& message, State state, Instant due) {
  std::size_t& count = count_of(message.state);
  CHECK(count > 0, "Q1: a message that changes was counted");
  --count;
  ++count_of(state);
  if (message.state != State::kReady) timers_.remove(message);
  message.state = state;
  message.due = due;
  if (state != State::kReady) timers_.push(message, {due, message.seq});
}

void MessageStates::reschedule(Message& message, Instant due) {
  CHECK(message.state == State::kInFlight, "only a message in flight has a visibility timeout");
  message.due = due;
  timers_.set(message, {due, message.seq});
}

void MessageStates::remove_cold(std::size_t messages) {
  CHECK(messages <= counts_.visible, "Q1: the members of cold chunks are counted");
  counts_.visible -= messages;
}

void MessageStates::came_in(Message& message) {
  CHECK(message.state == State::kReady, "what is only in the store is ready");
  note_early(message);
}

void MessageStates::went_out(Message& message) {
  CHECK(message.state == State::kReady, "only ready messages leave memory");
  forget_early(message);
}

void MessageStates::lock(Message& message) {
  if (message.lane->locks++ == 0) ++locked_lanes_;
  if (fifo_) message.lane->block(message);
}

void MessageStates::unlock(Message& message) {
  CHECK(message.lane->locks > 0, "a message that is away counts as a lock");
  if (--message.lane->locks == 0) --locked_lanes_;
  if (fifo_) message.lane->unblock(message);
}

// The first of all messages, or of those that expire out of order.
Message* MessageStates::first_to_expire(const MessageTable& messages) const {
  Message* first = messages.first();
  if (early_.empty()) return first;
  Message& early = early_.top();
  return early.retained_from < first->retained_from ? &early : first;
}

void MessageStates::check_invariants(const MessageTable& messages, std::size_t cold) const {
  Counts counts{.visible = cold};
  std::size_t early = 0;
  messages.for_each([&](const Message& m) {
    const bool is_timed = m.state != State::kReady;
    CHECK(!is_timed || timers_.key_of(m) == (Due{m.due, m.seq}), "Q2: timers know when it is due");
    const bool is_early = m.retained_from < m.entered;
    CHECK(is_early == early_.holds(m), "Q2: messages that expire out of order");
    early += is_early;
    switch (m.state) {
      case State::kDelayed:
        ++counts.delayed;
        break;
      case State::kReady:
        ++counts.visible;
        break;
      case State::kInFlight:
        ++counts.in_flight;
        break;
    }
  });
  CHECK(counts == counts_, "Q1: counts add up");
  CHECK(counts.delayed + counts.in_flight == timers_.size() && timers_.is_sound(),
        "Q2: timers are sound");
  CHECK(early == early_.size() && early_.is_sound(), "Q2: early expiries are sound");
}

}  // namespace stanchion::engine
