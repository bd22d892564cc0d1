#include "engine/stock.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace stanchion::engine {

Stock::Stock(StockName name, bool fifo, Memory& memory)
    : name_(name),
      fifo_(fifo),
      memory_(memory),
      messages_(memory),
      structure_(memory.structure),
      lanes_(fifo, structure_),
      states_(fifo),
      writer_(name, fifo, memory, lanes_, messages_.table()),
      residency_(name, fifo, memory, structure_, {messages_, lanes_, states_, writer_}) {}

void Stock::release_memory() {
  messages_.release_memory();
  structure_.leave();
  writer_.release_memory();
}

void Stock::add_to(Holdings& holdings) const {
  lanes_.for_each([&](const Lane& lane) {
    holdings.lanes += !lane.idle();
    for (const Chunk* chunk = lane.first_chunk; chunk != nullptr; chunk = chunk->next) {
      ++holdings.chunks;
      holdings.records += chunk->detached;
      if (chunk->is_cold()) holdings.cold += chunk->members;
    }
  });
  holdings.in_memory += messages_.table().size();
}

std::optional<Instant> Stock::oldest_entered() const {
  const Message* first = messages_.table().first();
  const auto cold = residency_.cold().by_first().begin();
  if (cold != residency_.cold().by_first().end() && (first == nullptr || cold->first < first->seq))
    return cold->second->cold->summary.first_entered;
  return first == nullptr ? std::nullopt : std::optional(first->entered);
}

StockLoader& Stock::loader() {
  if (!loader_)
    loader_ = std::make_unique<StockLoader>(fifo_, lanes_, messages_, states_, residency_);
  return *loader_;
}

Status Stock::loaded(Seq begin, Seq end, Instant at) {
  RETURN_IF_FAILED(loader().finish(begin, end, at));
  loader_.reset();
  return {};
}

// A receive first goes on with the FIFO group that it holds, if its next message may be taken, and
// then asks for the next lane.
Next Stock::next_to_receive(const Hold& held) const {
  if (fifo_ && held.lane != nullptr && held.lane->waiting > 0 &&
      held.lane->head_seq() < held.until) {
    Message* head = held.lane->head();
    if (head == nullptr || head->state == State::kReady) return {head, held.lane};
  }
  Lane* lane = lanes_.next();
  if (lane == nullptr) return {};
  return {lane->head(), lane};
}

bool Stock::may_be_taken(const Message& message, const Hold& held) const {
  if (message.state != State::kReady) return false;
  if (!fifo_) return true;
  const Lane& lane = *message.lane;
  if (lane.head() != &message) return false;
  return held.lane == &lane ? message.seq < held.until : lanes_.may_be_received_from(lane);
}

bool Stock::may_come(Seq seq, const std::string& group, bool first) const {
  const Message* message = messages_.find(seq);
  if (message != nullptr && message->state != State::kReady) return false;
  if (!fifo_ || !first) return true;
  const Lane* lane = lanes_.find(group);
  return lane != nullptr && lanes_.may_be_received_from(*lane) && lane->head_seq() == seq;
}

// The life of a message.

// On FIFO queues messages expire in the order in which they came: if the last one has expired, all
// have.
bool Stock::has_nothing_waiting(const Lane& lane, Instant expired) const {
  if (lane.waiting == 0) return true;
  return lane.last_chunk->is_cold() && lane.last_chunk->cold->summary.retained_max <= expired;
}

Message& Stock::insert(std::unique_ptr<Message> owned, Instant due, Instant now, Instant expired) {
  Message& message = messages_.keep(std::move(owned));
  Lane& lane = lanes_.of(message.content->group(), message.seq);
  writer_.settle(lane);
  message.lane = &lane;
  lanes_.sent(lane, message.seq, now);
  message.entered = now;
  message.due = due;
  message.state = due > now ? State::kDelayed : State::kReady;
  // With nothing waiting before it, the lane's place follows from this message and need not be
  // saved.
  if (message.state == State::kReady && has_nothing_waiting(lane, expired)) lanes_.begins(lane);
  states_.enter(message);
  const bool many = counts().visible > memory_.options.near_messages;
  if (message.state == State::kReady || fifo_) {
    residency_.chunks().append_member(message, many);
  } else {
    ++lane.delayed;
    residency_.chunks().add_detached(message, many);
  }
  lanes_.refresh(lane);
  return message;
}

void Stock::hand_out(Message& message, Instant visible_again, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message is handed out");
  writer_.settle(message);
  Lane& lane = *message.lane;
  residency_.chunks().take_from_line(message);
  states_.lock(message);
  states_.change(message, State::kInFlight, visible_again);
  writer_.record_changed(message);
  lanes_.served(lane, counts().in_flight, now);
  lanes_.refresh(lane);
}

void Stock::reschedule(Message& message, Instant visible_again) {
  writer_.settle(message);
  states_.reschedule(message, visible_again);
  writer_.record_changed(message);
}

void Stock::make_ready(Message& message, Instant now) {
  writer_.settle(message);
  Lane& lane = *message.lane;
  // The pending checkpoint must still record the message as delayed.
  if (message.in_line) writer_.settle(*message.home);
  const State before = message.state;
  states_.change(message, State::kReady, message.due);
  if (before == State::kInFlight) {
    release(message, now);
    residency_.chunks().rejoin(message);
    writer_.record_changed(message);
  } else if (!message.in_line) {
    // A delayed message of a FIFO queue has been in its lane's line all along.
    --lane.delayed;
    residency_.chunks().make_member(message);
  }
  if (before == State::kDelayed) lanes_.fell_due(lane, message.due);
  lanes_.refresh(lane);
}

// Applies to waiting messages that were never received.
void Stock::delay_all(Duration delay, Instant now) {
  messages_.table().for_each([&](Message& message) {
    if (message.receive_count > 0 || message.state == State::kInFlight || !message.in_line) return;
    const bool was_delayed = message.state == State::kDelayed;
    writer_.settle(message);
    writer_.settle(*message.home);
    const Instant due = message.entered + delay;
    states_.change(message, due > now ? State::kDelayed : State::kReady, due);
    if (was_delayed || message.state == State::kDelayed) writer_.entry_changed(message);
    lanes_.refresh(*message.lane);
    lanes_.due_changed(*message.lane);
  });
}

void Stock::release(Message& message, Instant now) {
  states_.unlock(message);
  lanes_.released(*message.lane, std::min(now, message.due) - message.received, counts().in_flight,
                  now);
}

// Removes the message from the structures of its state, which makes it a detached message; the lane
// is not refreshed yet.
void Stock::take_out_of_place(Message& message, Instant now) {
  writer_.settle(message);
  Lane& lane = *message.lane;
  if (message.state == State::kDelayed && !message.in_line) --lane.delayed;
  if (message.state == State::kReady || message.in_line)
    residency_.chunks().take_from_line(message);
  states_.leave(message);
  if (message.state == State::kInFlight) release(message, now);
}

void Stock::erase(Message& message, Instant now) {
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  residency_.chunks().leave_home(message);
  messages_.note_if_outlived(message);
  messages_.let_go(message);
  lanes_.refresh(lane);
}

std::unique_ptr<Message> Stock::begin_leaving(Message& message, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message leaves for another queue");
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  if (fifo_) states_.lock(message);
  residency_.chunks().withdraw_content(message);
  messages_.note_if_outlived(message);
  std::unique_ptr<Message> owned = messages_.let_go(message);
  lanes_.refresh(lane);
  return owned;
}

// The message was kept by the outbox meanwhile, so only its lock and its home are left here.
void Stock::forget_leaving(Message& message) {
  Lane& lane = *message.lane;
  writer_.settle(lane);
  if (fifo_) states_.unlock(message);
  residency_.chunks().leave_home(message);
  lanes_.refresh(lane);
}

void Stock::take_back(std::unique_ptr<Message> owned) {
  CHECK(owned->state == State::kReady, "only a ready message had left");
  Message& message = messages_.keep(std::move(owned));
  Lane& lane = *message.lane;
  writer_.settle(lane);
  if (fifo_) states_.unlock(message);
  states_.enter(message);
  residency_.chunks().rejoin(message);
  residency_.chunks().restore_content(message);
  lanes_.refresh(lane);
}

void Stock::check_invariants() const {
  check_messages();
  check_lanes();
  residency_.check_invariants();
  writer_.check_invariants();
}

void Stock::check_messages() const {
  std::size_t cold = 0;
  for (const auto& [first, chunk] : residency_.cold().by_first()) cold += chunk->members;
  states_.check_invariants(messages_.table(), cold);
  messages_.check_invariants();
  messages_.table().for_each([&](const Message& m) {
    CHECK(m.lane != nullptr && m.home != nullptr, "Q4: a live message has a lane and a home");
    if (m.state == State::kDelayed)
      CHECK(m.in_line == fifo_, "Q4: delayed messages stand in line on FIFO queues only");
    if (m.state == State::kInFlight) CHECK(!m.in_line, "Q4: a message in flight stands in no line");
  });
}

void Stock::check_lanes() const {
  struct Members {
    std::uint32_t waiting = 0;
    std::uint32_t delayed = 0;
    std::uint32_t in_flight = 0;
  };
  std::unordered_map<const Lane*, Members> members;
  for (const auto& [first, chunk] : residency_.cold().by_first())
    members[&chunk->lane].waiting += chunk->members;
  messages_.table().for_each([&](const Message& m) {
    Members& of_lane = members[m.lane];
    of_lane.waiting += m.state == State::kReady || m.in_line;
    of_lane.delayed += m.state == State::kDelayed && !m.in_line;
    of_lane.in_flight += m.state == State::kInFlight;
  });
  CHECK(lanes_.is_sound(), "Q4: the heap of lanes is sound");
  std::size_t locked = 0;
  lanes_.for_each([&](const Lane& lane) {
    locked += lane.locks > 0;
    const Members& expected = members[&lane];
    CHECK(lane.is_sound(), "L1 to L4");
    CHECK(lane.waiting == expected.waiting, "Q4: what waits is in its lane");
    CHECK(lane.delayed == expected.delayed, "Q4: a lane knows what is to come");
    CHECK(fifo_ ? lane.locks >= expected.in_flight : lane.locks == expected.in_flight, "Q3: locks");
    CHECK((lane.first_blocker != nullptr) == (fifo_ && lane.locks > 0), "Q3: blockers");
    CHECK(lanes_.is_in_place(lane), "S3, S4");
    CHECK(lanes_.is_eligible(lane) == lanes_.may_be_received_from(lane), "S1");
    CHECK(!lane.idle() || lane.first_chunk != nullptr || lane.group.empty(), "S2");
  });
  CHECK(locked == states_.locked_lanes(), "Q3: lanes with locks are counted");
}

}  // namespace stanchion::engine
