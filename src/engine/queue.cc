#include "engine/queue.h"

#include <algorithm>
#include <unordered_map>

#include "base/bytes.h"
#include "base/check.h"
#include "model/fact.h"

namespace stanchion::engine {

Queue::Queue(QueueId queue_id, QueueRef name, QueueAttributes attributes, StringMap initial_tags,
             Instant now)
    : id(queue_id),
      ref(std::move(name)),
      arn(ref.arn()),
      created(now),
      tags(std::move(initial_tags)),
      attributes_(std::move(attributes)),
      modified_(now),
      lanes_(std::in_place, attributes_.fifo) {
  if (fifo()) fifo_memory_ = std::make_unique<FifoMemory>();
}

std::optional<Instant> Queue::oldest_entered() const {
  const Message* first = messages_.first();
  return first == nullptr ? std::nullopt : std::optional(first->entered);
}

Message* Queue::next_to_receive(const Lane* held) const {
  if (fifo() && held != nullptr && held->waiting > 0) {
    Message* head = held->head();
    if (head->state == State::kReady) return head;
  }
  const Lane* lane = lanes_->next();
  return lane == nullptr ? nullptr : lane->head();
}

const DeduplicationWindow::Original* Queue::find_original(const Hash128& key) const {
  return fifo_memory_ ? fifo_memory_->deduplication.find(key) : nullptr;
}

const ReceiveAttempt* Queue::find_attempt(std::string_view attempt_id) const {
  return fifo_memory_ ? fifo_memory_->attempts.find(attempt_id) : nullptr;
}

std::size_t& Queue::count_of(State state) {
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

void Queue::set_state(Message& message, State state) {
  --count_of(message.state);
  ++count_of(state);
  message.state = state;
}

Message& Queue::enter(std::unique_ptr<Message> owned, Instant due, Instant now) {
  CHECK(owned->seq >= next_seq_, "Seqs only grow");
  next_seq_ = owned->seq.next();
  Message& message = messages_.insert(std::move(owned));
  Lane& lane = lanes_->of(message.content->group());
  message.lane = &lane;
  lanes_->sent(lane, now);
  message.entered = now;
  message.due = due;
  message.state = due > now ? State::kDelayed : State::kReady;
  ++count_of(message.state);
  if (message.state == State::kDelayed) timers_.push(message, {due, message.seq});
  if (message.state == State::kReady || fifo()) {
    lane.join(message);
  } else {
    ++lane.delayed;
  }
  if (message.retained_from < now) early_.push(message, {message.retained_from, message.seq});
  lanes_->refresh(lane);
  return message;
}

void Queue::remember_original(const Hash128& key, const Message& message, Instant now) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues deduplicate");
  fifo_memory_->deduplication.remember(key, {message.content->id(), message.seq}, now);
}

void Queue::receive(Message& message, Instant visible_again, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message is received");
  Lane& lane = *message.lane;
  lane.leave(message);
  ++lane.locks;
  set_state(message, State::kInFlight);
  if (message.receive_count == 0) message.first_received = now;
  ++message.receive_count;
  message.received = now;
  message.due = visible_again;
  message.stays = false;
  timers_.push(message, {visible_again, message.seq});
  lanes_->served(lane, counts_.in_flight, now);
  lanes_->refresh(lane);
}

void Queue::remember_attempt(const std::string& attempt_id, ReceiveAttempt attempt) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues know receive attempts");
  fifo_memory_->attempts.remember(attempt_id, std::move(attempt));
}

void Queue::change_visibility(Message& message, Instant visible_again, Instant now) {
  CHECK(message.state == State::kInFlight, "only a message in flight has a visibility timeout");
  message.due = visible_again;
  timers_.set(message, {visible_again, message.seq});
  if (visible_again <= now) come_due(message, now);
}

void Queue::come_due(Message& message, Instant now) {
  Lane& lane = *message.lane;
  timers_.remove(message);
  const State before = message.state;
  set_state(message, State::kReady);
  if (before == State::kInFlight) release_lock(lane, message, now);
  // A delayed message of a FIFO queue has been in its line all along.
  if (!message.in_line) {
    if (before == State::kDelayed) --lane.delayed;
    lane.rejoin(message);
  }
  lanes_->refresh(lane);
}

void Queue::release_lock(Lane& lane, const Message& message, Instant now) {
  CHECK(lane.locks > 0, "a message in flight counts as a lock");
  --lane.locks;
  lanes_->released(lane, std::min(now, message.due) - message.received, counts_.in_flight, now);
}

// Leaves whatever structures the message's state put it in; the lane is not refreshed yet.
void Queue::take_out_of_place(Message& message, Instant now) {
  Lane& lane = *message.lane;
  if (message.state != State::kReady) timers_.remove(message);
  if (message.state == State::kDelayed && !message.in_line) --lane.delayed;
  if (message.state == State::kReady || message.in_line) lane.leave(message);
  if (early_.holds(message)) early_.remove(message);
  --count_of(message.state);
  if (message.state == State::kInFlight) release_lock(lane, message, now);
}

void Queue::remove(Message& message, Instant now) {
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  messages_.extract(message.seq);
  lanes_->refresh(lane);
}

std::unique_ptr<Message> Queue::depart(Message& message, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message departs");
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  if (fifo()) ++lane.locks;
  std::unique_ptr<Message> owned = messages_.extract(message.seq);
  owned->lane = nullptr;
  lanes_->refresh(lane);
  return owned;
}

void Queue::departure_settled(const Message& message) {
  if (!fifo() || was_purged(message.seq)) return;
  Lane* lane = lanes_->find(message.content->group());
  CHECK(lane != nullptr && lane->locks > 0, "a departing message locks its lane");
  --lane->locks;
  lanes_->refresh(*lane);
}

void Queue::departure_refused(std::unique_ptr<Message> owned, Instant now) {
  if (was_purged(owned->seq)) return;
  Message& message = messages_.insert(std::move(owned));
  Lane& lane = lanes_->of(message.content->group());
  message.lane = &lane;
  if (fifo()) --lane.locks;
  ++counts_.visible;
  lane.rejoin(message);
  if (message.retained_from < message.entered)
    early_.push(message, {message.retained_from, message.seq});
  lanes_->refresh(lane);
  advance(now);
}

void Queue::set_attributes(QueueAttributes attributes, Instant now) {
  const bool delay_changed = attributes.delay_seconds != attributes_.delay_seconds;
  attributes_ = std::move(attributes);
  modified_ = now;
  // On FIFO queues a new delay counts for the messages that are there, on standard queues it does
  // not.
  if (fifo() && delay_changed) apply_delay_to_waiting(now);
  advance(now);
}

void Queue::apply_delay_to_waiting(Instant now) {
  const Duration delay = std::chrono::seconds(attributes_.delay_seconds);
  messages_.for_each([&](Message& message) {
    if (message.receive_count > 0 || message.state == State::kInFlight || !message.in_line) return;
    message.due = message.entered + delay;
    if (message.state == State::kDelayed) timers_.remove(message);
    set_state(message, message.due > now ? State::kDelayed : State::kReady);
    if (message.state == State::kDelayed) timers_.push(message, {message.due, message.seq});
    lanes_->refresh(*message.lane);
  });
}

void Queue::purge(Instant now) {
  timers_.abandon();
  early_.abandon();
  lanes_.emplace(fifo());
  messages_.clear();
  counts_ = {};
  if (fifo_memory_) fifo_memory_ = std::make_unique<FifoMemory>();
  first_unpurged_ = next_seq_;
  last_purge_ = now;
}

Message* Queue::next_to_expire() const {
  Message* first = messages_.first();
  if (early_.empty()) return first;
  Message& early = early_.top();
  return early.retained_from < first->retained_from ? &early : first;
}

Instant Queue::next_expiry() const {
  const Message* message = next_to_expire();
  if (message == nullptr) return kNever;
  return message->retained_from + std::chrono::seconds(attributes_.retention_seconds);
}

void Queue::advance(Instant now) {
  // In order of time, so that it does not matter in how many steps time passes.
  for (;;) {
    const Instant timer = timers_.empty() ? kNever : timers_.top_key().at;
    const Instant expiry = next_expiry();
    if (std::min(timer, expiry) > now) break;
    if (expiry <= timer) {
      remove(*next_to_expire(), expiry);
    } else {
      come_due(timers_.top(), timer);
    }
  }
  if (fifo_memory_) {
    fifo_memory_->deduplication.expire(now);
    fifo_memory_->attempts.expire(now);
  }
}

Instant Queue::next_deadline() const {
  Instant next = std::min(timers_.empty() ? kNever : timers_.top_key().at, next_expiry());
  if (fifo_memory_) {
    next = std::min({next, fifo_memory_->deduplication.next_deadline(),
                     fifo_memory_->attempts.next_deadline()});
  }
  return next;
}

void Queue::check_invariants() const {
  Counts counts;
  std::unordered_map<const Lane*, std::uint32_t> in_flight;
  std::unordered_map<const Lane*, std::uint32_t> waiting;
  std::unordered_map<const Lane*, std::uint32_t> delayed;
  std::size_t timed = 0;
  messages_.for_each([&](const Message& m) {
    const bool is_timed = m.state != State::kReady;
    timed += is_timed;
    CHECK(m.lane != nullptr, "Q2: a live message has a lane");
    CHECK(!is_timed || timers_.key_of(m) == (Due{m.due, m.seq}), "Q2: timers know when it is due");
    switch (m.state) {
      case State::kDelayed:
        ++counts.delayed;
        delayed[m.lane] += !m.in_line;
        CHECK(m.in_line == fifo(), "Q2: delayed messages stand in line on FIFO queues only");
        break;
      case State::kReady:
        ++counts.visible;
        break;
      case State::kInFlight:
        ++counts.in_flight;
        ++in_flight[m.lane];
        CHECK(!m.in_line, "Q2: a message in flight stands in no line");
        break;
    }
    if (m.state == State::kReady || m.in_line) ++waiting[m.lane];
    CHECK(m.seq < next_seq_ && !was_purged(m.seq), "Q5: the Seq was given and not purged");
  });
  CHECK(counts == counts_, "Q1: counts add up");
  CHECK(timed == timers_.size() && timers_.is_sound() && early_.is_sound(), "Q2: timers are sound");
  CHECK(lanes_->is_sound(), "Q4: the heap of lanes is sound");
  lanes_->for_each([&](const Lane& lane) {
    CHECK(lane.is_sound(), "L1 to L3");
    CHECK(lane.waiting == waiting[&lane], "Q2: what waits is in its lane");
    CHECK(lane.delayed == delayed[&lane], "Q2: a lane knows what is to come");
    const std::uint32_t flying = in_flight[&lane];
    CHECK(fifo() ? lane.locks >= flying : lane.locks == flying, "Q3: locks");
    CHECK(lanes_->is_eligible(lane) == lanes_->may_be_received_from(lane), "S1");
    CHECK(!lane.idle() || lane.group.empty(), "S2: idle lanes are gone");
  });
}

void Queue::fingerprint(std::string& out) const {
  ByteWriter writer(out);
  writer.u64(id.value());
  writer.text(arn);
  writer.u64(next_seq_.value());
  writer.u64(first_unpurged_.value());
  writer.i64(to_millis(created));
  writer.i64(to_millis(modified_));
  RecordWriter settings(modified_);
  settings.add(QueueAttributesSet{id, attributes_});
  writer.text(settings.bytes());
  for (const auto& [key, value] : tags) writer.text(key), writer.text(value);
  messages_.for_each([&](const Message& m) {
    writer.u64(m.seq.value());
    writer.u64(xxh3_64(m.content->encoded()));
    for (const Instant t : {m.entered, m.retained_from, m.due}) writer.i64(to_millis(t));
    if (m.receive_count > 0)
      writer.i64(to_millis(m.first_received)), writer.i64(to_millis(m.received));
    writer.u32(m.receive_count);
    writer.u8(static_cast<std::uint8_t>(m.state));
    writer.u8(m.stays);
  });
  for (const MoveTask& task : tasks) {
    writer.raw(as_text(task.id.bytes));
    for (const std::uint64_t n : {task.to_move, task.moved, task.in_transit}) writer.u64(n);
    writer.i64(task.next_micros);
    writer.u8(static_cast<std::uint8_t>(task.status));
    writer.text(task.failure_reason);
  }
  if (!fifo_memory_) return;
  fifo_memory_->deduplication.for_each([&](const Hash128& key, const auto& original, Instant t) {
    writer.u64(key.low);
    writer.u64(original.seq.value());
    writer.i64(to_millis(t));
  });
  fifo_memory_->attempts.for_each([&](const std::string& attempt, const ReceiveAttempt& a) {
    writer.text(attempt);
    writer.i64(to_millis(a.expires));
    for (const auto& item : a.items)
      writer.u64(item.seq.value()), writer.i64(to_millis(item.visible_again));
  });
}

std::size_t Queue::footprint() const {
  std::size_t bytes = sizeof(Queue) + messages_.footprint();
  messages_.for_each([&](const Message& m) { bytes += sizeof(Message) + m.content->footprint(); });
  lanes_->for_each([&](const Lane& lane) { bytes += lane.group.empty() ? 0 : sizeof(Lane); });
  return bytes;
}

}  // namespace stanchion::engine
