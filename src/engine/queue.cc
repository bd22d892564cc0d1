#include "engine/queue.h"

#include <algorithm>
#include <unordered_map>

#include "base/bytes.h"
#include "base/check.h"
#include "model/fact.h"

namespace stanchion::engine {
namespace {

// How long before messages that only the store knows expire they are looked up.
constexpr Duration kExpiryLead = std::chrono::seconds(5);

}  // namespace

Queue::Queue(QueueId queue_id, QueueRef name, QueueAttributes attributes, StringMap initial_tags,
             Instant now, Memory& memory)
    : id(queue_id),
      ref(std::move(name)),
      arn(ref.arn()),
      created(now),
      tags(std::move(initial_tags)),
      attributes_(std::move(attributes)),
      modified_(now),
      memory_(memory),
      stock_(std::make_unique<Stock>(StockName{queue_id, 0}, attributes_.fifo, memory)) {
  if (fifo()) fifo_memory_ = std::make_unique<FifoMemory>();
}

std::optional<Instant> Queue::oldest_entered() const {
  const Message* first = stock_->messages.first();
  const auto cold = stock_->cold_by_first.begin();
  if (cold != stock_->cold_by_first.end() && (first == nullptr || cold->first < first->seq))
    return cold->second->cold->summary.first_entered;
  return first == nullptr ? std::nullopt : std::optional(first->entered);
}

Next Queue::next_to_receive(const Hold& held) const {
  if (fifo() && held.lane != nullptr && held.lane->waiting > 0 &&
      held.lane->head_seq() < held.until) {
    Message* head = held.lane->head();
    if (head == nullptr || head->state == State::kReady) return {head, held.lane};
  }
  Lane* lane = stock_->lanes.next();
  if (lane == nullptr) return {};
  return {lane->head(), lane};
}

bool Queue::has_more_behind(const Message& leaving) const {
  const Lane& lane = *leaving.lane;
  if (lane.first_blocker != &leaving || lane.waiting == 0) return false;
  if (leaving.next != nullptr && leaving.next->seq < lane.head_seq()) return false;
  const Message* head = lane.head();
  return head == nullptr || head->state == State::kReady;
}

bool Queue::waits_for_read() const {
  const Next next = next_to_receive();
  if (!next || !next.is_cold()) return false;
  return next.message != nullptr ? next.message->reading : next.lane->front->reading;
}

void Queue::want(const Next& next) {
  if (next.message != nullptr) {
    stock_->want_content(*next.message);
  } else {
    stock_->want_chunk(*next.lane->front);
  }
}

Presence Queue::look_for(Seq seq, bool with_content) {
  if (Message* message = stock_->messages.find(seq)) {
    if (message->content || !with_content) return Presence::kInMemory;
    stock_->want_content(*message);
    return Presence::kAskedFor;
  }
  const auto cold = stock_->cold_by_first.find(seq);
  if (cold == stock_->cold_by_first.end()) return Presence::kBehindAnother;
  stock_->want_chunk(*cold->second);
  return Presence::kAskedFor;
}

std::vector<Chunk*> Queue::cold_under_delay(std::int64_t delay_seconds, Instant now) const {
  std::vector<Chunk*> chunks;
  if (!fifo() || delay_seconds == attributes_.delay_seconds) return chunks;
  for (const auto& [first, chunk] : stock_->cold_by_first)
    if (chunk->cold->summary.last_entered + std::chrono::seconds(delay_seconds) > now)
      chunks.push_back(chunk);
  return chunks;
}

bool Queue::may_set_delay(std::int64_t delay_seconds, Instant now) const {
  std::size_t bytes = 0;
  for (const Chunk* chunk : cold_under_delay(delay_seconds, now))
    bytes += chunk->bytes + chunk->members * sizeof(Message);
  return bytes <= memory_.options.delayed_again;
}

bool Queue::can_set_delay(std::int64_t delay_seconds, Instant now) {
  const std::vector<Chunk*> chunks = cold_under_delay(delay_seconds, now);
  for (Chunk* chunk : chunks) stock_->want_chunk(*chunk);
  // Together they may be more than there is room for: the first would leave before the last comes.
  stock_->hold(!chunks.empty());
  held_until_ = now + limits::kRoomWaitMax;
  return chunks.empty();
}

void Queue::expect_original(const Hash128& key) const {
  if (fifo_memory_) fifo_memory_->deduplication.expect(key);
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
      return stock_->counts.delayed;
    case State::kReady:
      return stock_->counts.visible;
    case State::kInFlight:
      return stock_->counts.in_flight;
  }
  check_failed("state", "no such state", std::source_location::current());
}

void Queue::set_state(Message& message, State state) {
  --count_of(message.state);
  ++count_of(state);
  message.state = state;
}

// On FIFO queues messages expire in the order in which they came: if the last one has, all have,
// though it may not have been looked up yet which they are.
bool Queue::has_nothing_waiting(const Lane& lane, Instant now) const {
  if (lane.waiting == 0) return true;
  if (!stalled_ || !lane.last_chunk->is_cold()) return false;
  return lane.last_chunk->cold->summary.retained_max +
             std::chrono::seconds(attributes_.retention_seconds) <=
         now;
}

Message& Queue::enter(std::unique_ptr<Message> owned, Instant due, Instant now) {
  CHECK(owned->seq >= next_seq_, "Seqs only grow");
  next_seq_ = owned->seq.next();
  Message& message = stock_->insert(std::move(owned));
  Lane& lane = stock_->lanes.of(message.content->group());
  message.lane = &lane;
  stock_->lanes.sent(lane, message.seq, now);
  message.entered = now;
  message.due = due;
  message.state = due > now ? State::kDelayed : State::kReady;
  if (message.state == State::kReady && has_nothing_waiting(lane, now)) stock_->lanes.begins(lane);
  ++count_of(message.state);
  if (message.state == State::kDelayed) stock_->timers.push(message, {due, message.seq});
  if (message.state == State::kReady || fifo()) {
    stock_->join(message);
  } else {
    ++lane.delayed;
    stock_->lodge(message);
  }
  if (message.retained_from < now)
    stock_->early.push(message, {message.retained_from, message.seq});
  stock_->lanes.refresh(lane);
  return message;
}

void Queue::remember_original(const Hash128& key, const Message& message, Instant now) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues deduplicate");
  fifo_memory_->deduplication.remember(key, {message.content->id(), message.seq}, now);
}

void Queue::receive(Message& message, Instant visible_again, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message is received");
  Lane& lane = *message.lane;
  stock_->leave(message);
  stock_->lanes.lock(message);
  set_state(message, State::kInFlight);
  if (message.receive_count == 0) message.first_received = now;
  ++message.receive_count;
  message.received = now;
  message.due = visible_again;
  message.stays = false;
  stock_->timers.push(message, {visible_again, message.seq});
  stock_->changed(message);
  stock_->lanes.served(lane, counts().in_flight, now);
  stock_->lanes.refresh(lane);
}

void Queue::remember_attempt(const std::string& attempt_id, ReceiveAttempt attempt) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues know receive attempts");
  fifo_memory_->attempts.remember(attempt_id, std::move(attempt));
}

void Queue::change_visibility(Message& message, Instant visible_again, Instant now) {
  CHECK(message.state == State::kInFlight, "only a message in flight has a visibility timeout");
  message.due = visible_again;
  stock_->timers.set(message, {visible_again, message.seq});
  stock_->changed(message);
  if (visible_again <= now) come_due(message, now);
}

void Queue::come_due(Message& message, Instant now) {
  Lane& lane = *message.lane;
  stock_->timers.remove(message);
  // A checkpoint that has still to be written says that it is delayed.
  if (message.in_line) stock_->settle(*message.home);
  const State before = message.state;
  set_state(message, State::kReady);
  if (before == State::kInFlight) {
    release_lock(message, now);
    lane.rejoin(message);
    stock_->changed(message);
  } else if (!message.in_line) {
    // A delayed message of a FIFO queue has been in its line all along.
    --lane.delayed;
    stock_->come_home(message);
  }
  stock_->lanes.refresh(lane);
}

void Queue::release_lock(Message& message, Instant now) {
  stock_->lanes.unlock(message);
  stock_->lanes.released(*message.lane, std::min(now, message.due) - message.received,
                         counts().in_flight, now);
}

// Leaves whatever structures the message's state put it in, and is a stranger then; the lane is not
// refreshed yet.
void Queue::take_out_of_place(Message& message, Instant now) {
  Lane& lane = *message.lane;
  if (message.state != State::kReady) stock_->timers.remove(message);
  if (message.state == State::kDelayed && !message.in_line) --lane.delayed;
  if (message.state == State::kReady || message.in_line) stock_->leave(message);
  if (stock_->early.holds(message)) stock_->early.remove(message);
  --count_of(message.state);
  if (message.state == State::kInFlight) release_lock(message, now);
}

void Queue::remove(Message& message, Instant now) {
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  stock_->part(message);
  stock_->extract(message);
  stock_->lanes.refresh(lane);
}

std::unique_ptr<Message> Queue::depart(Message& message, Instant now) {
  CHECK(message.state == State::kReady, "only a ready message departs");
  Lane& lane = *message.lane;
  take_out_of_place(message, now);
  if (fifo()) stock_->lanes.lock(message);
  stock_->depart(message);
  std::unique_ptr<Message> owned = stock_->extract(message);
  stock_->lanes.refresh(lane);
  return owned;
}

void Queue::departure_settled(Message& message) {
  if (was_purged(message.seq)) return;
  Lane& lane = *message.lane;
  if (fifo()) stock_->lanes.unlock(message);
  stock_->part(message);
  stock_->lanes.refresh(lane);
}

void Queue::departure_refused(std::unique_ptr<Message> owned, Instant now) {
  if (was_purged(owned->seq)) return;
  Message& message = stock_->insert(std::move(owned));
  Lane& lane = *message.lane;
  if (fifo()) stock_->lanes.unlock(message);
  ++stock_->counts.visible;
  lane.rejoin(message);
  stock_->come_back(message);
  if (message.retained_from < message.entered)
    stock_->early.push(message, {message.retained_from, message.seq});
  stock_->lanes.refresh(lane);
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
  stock_->messages.for_each([&](Message& message) {
    if (message.receive_count > 0 || message.state == State::kInFlight || !message.in_line) return;
    const bool was_delayed = message.state == State::kDelayed;
    stock_->settle(*message.home);
    message.due = message.entered + delay;
    if (was_delayed) stock_->timers.remove(message);
    set_state(message, message.due > now ? State::kDelayed : State::kReady);
    if (message.state == State::kDelayed) stock_->timers.push(message, {message.due, message.seq});
    if (was_delayed || message.state == State::kDelayed) stock_->entry_changed(message);
    stock_->lanes.refresh(*message.lane);
  });
}

std::unique_ptr<Stock> Queue::purge(Instant now) {
  const StockName name{id, stock_->name.incarnation + 1};
  auto old = std::exchange(stock_, std::make_unique<Stock>(name, fifo(), memory_));
  old->forsake();
  if (fifo_memory_) fifo_memory_ = std::make_unique<FifoMemory>();
  first_unpurged_ = next_seq_;
  last_purge_ = now;
  stalled_ = false;
  return old;
}

Message* Queue::next_to_expire() const {
  Message* first = stock_->messages.first();
  if (stock_->early.empty()) return first;
  Message& early = stock_->early.top();
  return early.retained_from < first->retained_from ? &early : first;
}

Instant Queue::next_expiry() const {
  const Message* message = next_to_expire();
  if (message == nullptr) return kNever;
  return message->retained_from + std::chrono::seconds(attributes_.retention_seconds);
}

Instant Queue::next_cold_expiry() const {
  if (stock_->cold_by_expiry.empty()) return kNever;
  return stock_->cold_by_expiry.top_key() + std::chrono::seconds(attributes_.retention_seconds);
}

void Queue::advance(Instant now) {
  if (stock_->is_held() && held_until_ <= now) stock_->hold(false);
  // In order of time, so that it does not matter in how many steps time passes.
  for (;;) {
    const Instant timer = stock_->timers.empty() ? kNever : stock_->timers.top_key().at;
    const Instant expiry = next_expiry();
    if (std::min(timer, expiry) > now) break;
    changed_by_time_ = true;
    if (expiry <= timer) {
      remove(*next_to_expire(), expiry);
    } else {
      come_due(stock_->timers.top(), timer);
    }
  }
  expire_cold(now);
  if (fifo_memory_) {
    fifo_memory_->deduplication.expire(now);
    fifo_memory_->attempts.expire(now);
  }
}

// Messages that are not in memory meet none of the others, so it does not matter that they expire
// after those.
void Queue::expire_cold(Instant now) {
  stalled_ = false;
  advanced_ = now;
  while (next_cold_expiry() <= now) {
    Chunk& chunk = stock_->cold_by_expiry.top();
    Lane& lane = chunk.lane;
    const Instant deadline = now - std::chrono::seconds(attributes_.retention_seconds);
    if (!chunk.cold->expiries.empty()) {
      stock_->drop_expired_members(chunk, deadline);
    } else if (chunk.strangers == 0 && chunk.cold->summary.retained_max <= deadline) {
      stock_->drop_members(chunk);
    } else {
      stock_->want_expiries(chunk);
      stalled_ = true;
      return;
    }
    changed_by_time_ = true;
    stock_->lanes.refresh(lane);
  }
  // Known in time, nobody has to wait for it.
  if (next_cold_expiry() <= now + kExpiryLead &&
      stock_->cold_by_expiry.top().cold->expiries.empty())
    stock_->want_expiries(stock_->cold_by_expiry.top());
}

Instant Queue::next_deadline() const {
  Instant next =
      std::min(stock_->timers.empty() ? kNever : stock_->timers.top_key().at, next_expiry());
  // While stalled, what was asked for comes by itself.
  if (!stalled_ && !stock_->cold_by_expiry.empty()) {
    const bool known = !stock_->cold_by_expiry.top().cold->expiries.empty();
    const Instant expiry = next_cold_expiry();
    next =
        std::min(next, known || expiry - kExpiryLead <= advanced_ ? expiry : expiry - kExpiryLead);
  }
  if (stock_->is_held()) next = std::min(next, held_until_);
  if (fifo_memory_) {
    next = std::min({next, fifo_memory_->deduplication.next_deadline(),
                     fifo_memory_->attempts.next_deadline()});
  }
  return next;
}

Status Queue::install(const ColdRead& read, std::vector<StoredMessage> found, Instant now) {
  if (read.stock.incarnation != stock_->name.incarnation) return {};
  stock_->forget_awaited();
  if (read.purpose == ColdRead::Purpose::kContent) {
    Message* message = find(read.from);
    if (message == nullptr) return {};
    message->reading = false;
    if (message->content) return {};
    if (found.size() != 1) return fail("the store is damaged: the content of a message is missing");
    stock_->set_content(*message, std::move(found.front().content));
    return {};
  }
  Chunk* chunk = stock_->find_chunk(read.group, read.from);
  if (chunk == nullptr) return {};
  chunk->reading = false;
  if (!chunk->is_cold()) return {};
  if (read.purpose == ColdRead::Purpose::kExpiries) {
    RETURN_IF_FAILED(stock_->learn_expiries(*chunk, found));
  } else {
    RETURN_IF_FAILED(stock_->bring_in(*chunk, std::move(found), now));
    stock_->lanes.refresh(chunk->lane);
  }
  advance(now);
  return {};
}

void Queue::check_invariants() const {
  Counts counts;
  std::unordered_map<const Lane*, std::uint32_t> in_flight;
  std::unordered_map<const Lane*, std::uint32_t> waiting;
  std::unordered_map<const Lane*, std::uint32_t> delayed;
  std::size_t timed = 0;
  stock_->check_invariants();
  for (const auto& [first, chunk] : stock_->cold_by_first) {
    counts.visible += chunk->members;
    waiting[&chunk->lane] += chunk->members;
  }
  stock_->messages.for_each([&](const Message& m) {
    const bool is_timed = m.state != State::kReady;
    timed += is_timed;
    CHECK(m.lane != nullptr, "Q2: a live message has a lane");
    CHECK(!is_timed || stock_->timers.key_of(m) == (Stock::Due{m.due, m.seq}),
          "Q2: timers know when it is due");
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
  CHECK(counts == stock_->counts, "Q1: counts add up");
  CHECK(timed == stock_->timers.size() && stock_->timers.is_sound() && stock_->early.is_sound(),
        "Q2: timers are sound");
  CHECK(stock_->lanes.is_sound(), "Q4: the heap of lanes is sound");
  stock_->lanes.for_each([&](const Lane& lane) {
    CHECK(lane.is_sound(), "L1 to L4");
    CHECK(lane.waiting == waiting[&lane], "Q2: what waits is in its lane");
    CHECK(lane.delayed == delayed[&lane], "Q2: a lane knows what is to come");
    const std::uint32_t flying = in_flight[&lane];
    CHECK(fifo() ? lane.locks >= flying : lane.locks == flying, "Q3: locks");
    CHECK((lane.first_blocker != nullptr) == (fifo() && lane.locks > 0), "Q3: blockers");
    CHECK(stock_->lanes.is_in_place(lane), "S3, S4");
    CHECK(stock_->lanes.is_eligible(lane) == stock_->lanes.may_be_received_from(lane), "S1");
    CHECK(!lane.idle() || lane.first_chunk != nullptr || lane.group.empty(), "S2");
  });
}

namespace {

struct Shown {
  Instant entered, retained_from, due, first_received, received;
  std::uint32_t receive_count = 0;
  State state = State::kReady;
  bool stays = false;
  ContentPtr content;
};

Shown shown(const StoredMessage& m) {
  return {m.entered,       m.retained_from, m.due, m.first_received, m.first_received,
          m.receive_count, State::kReady,   false, m.content};
}

Shown shown(const Message& m) {
  return {m.entered,       m.retained_from, m.due,   m.first_received, m.received,
          m.receive_count, m.state,         m.stays, m.content};
}

}  // namespace

std::vector<std::string> Queue::line() const {
  std::map<Place, std::string> places;
  stock_->lanes.for_each([&](const Lane& lane) {
    if (lane.place) CHECK(places.emplace(lane.place, lane.group).second, "a place is taken once");
  });
  std::vector<std::string> groups;
  for (auto& [place, group] : places) groups.push_back(std::move(group));
  return groups;
}

void Queue::fingerprint(std::string& out, const ReadNow& read) const {
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
  std::map<Seq, Shown> all;
  for (const auto& [first, chunk] : stock_->cold_by_first)
    for (const StoredMessage& m : stock_->read_members(*chunk, read)) all.emplace(m.seq, shown(m));
  stock_->messages.for_each([&](const Message& m) {
    Shown& s = all.emplace(m.seq, shown(m)).first->second;
    if (!s.content) s.content = stock_->read_content(m, read);
  });
  for (const auto& [seq, m] : all) {
    writer.u64(seq.value());
    writer.u64(xxh3_64(m.content->encoded()));
    for (const Instant t : {m.entered, m.retained_from}) writer.i64(to_millis(t));
    if (m.state != State::kReady) writer.i64(to_millis(m.due));
    if (m.receive_count > 0)
      writer.i64(to_millis(m.first_received)), writer.i64(to_millis(m.received));
    writer.u32(m.receive_count);
    writer.u8(static_cast<std::uint8_t>(m.state));
    writer.u8(m.stays);
  }
  for (const MoveTask& task : tasks) {
    writer.raw(as_text(task.id.bytes));
    for (const std::uint64_t n : {task.to_move, task.moved, task.in_transit}) writer.u64(n);
    writer.i64(task.next_micros);
    writer.u8(static_cast<std::uint8_t>(task.status));
    writer.text(task.failure_reason);
  }
  if (!fifo_memory_) return;
  for (const std::string& group : line()) writer.text(group);
  // Those of the same instant are in no order.
  std::map<std::pair<Instant, Hash128>, Seq> originals;
  fifo_memory_->deduplication.for_each([&](const Hash128& key, const auto& original, Instant t) {
    originals[{t, key}] = original.seq;
  });
  for (const auto& [key, seq] : originals) {
    writer.i64(to_millis(key.first));
    writer.u64(key.second.low);
    writer.u64(seq.value());
  }
  fifo_memory_->attempts.for_each([&](const std::string& attempt, const ReceiveAttempt& a) {
    writer.text(attempt);
    writer.i64(to_millis(a.expires));
    for (const auto& item : a.items)
      writer.u64(item.seq.value()), writer.i64(to_millis(item.visible_again));
  });
}

}  // namespace stanchion::engine
