#include "engine/queue.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/check.h"
#include "model/fact.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

// How long before the expiry of messages that are only in the store their times are read.
constexpr Duration kExpiryLead = std::chrono::seconds(5);

// The memory of a queue without its texts, as measured with many of them; of a tag without its
// texts, which is the node of a map; and of a move task with its two texts.
constexpr std::size_t kQueueBytes = 1'700;
constexpr std::size_t kFifoQueueBytes = 3'200;
constexpr std::size_t kTagBytes = 96;
constexpr std::size_t kTaskBytes = sizeof(MoveTask) + 200;

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
  if (fifo()) fifo_memory_ = std::make_unique<FifoMemory>(memory_);
}

std::size_t Queue::settings_bytes(const QueueRef& ref, const QueueAttributes& attributes,
                                  const StringMap& tags) {
  // The name is kept three times: by itself, in the ARN, and in its entry of the store.
  std::size_t bytes = attributes.fifo ? kFifoQueueBytes : kQueueBytes;
  bytes += 3 * (ref.account.size() + ref.region.size() + ref.name.size());
  bytes += attributes.policy.size() + attributes.kms_master_key_id.size();
  // The target is also the name under which its sources are found.
  if (attributes.redrive) bytes += 2 * attributes.redrive->target_arn.size();
  if (attributes.redrive_allow)
    for (const std::string& arn : attributes.redrive_allow->source_arns)
      bytes += sizeof(std::string) + arn.size();
  for (const auto& [key, value] : tags) bytes += kTagBytes + key.size() + value.size();
  return bytes;
}

std::size_t Queue::settings_bytes() const {
  return settings_bytes(ref, attributes_, tags) + tasks.size() * kTaskBytes;
}

// A new delay of a FIFO queue also applies to waiting messages, so all of those must be read into
// memory first. If there are too many, the change is refused.
bool Queue::may_set_delay(std::int64_t delay_seconds, Instant now) const {
  if (!fifo() || delay_seconds == attributes_.delay_seconds) return true;
  return stock_->residency().cold().bytes_entered_after(
             now - std::chrono::seconds(delay_seconds)) <= memory_.options.delayed_again;
}

// Requests these messages and keeps them from being evicted until all are there. The hold ends by
// itself if the caller gives up.
bool Queue::can_set_delay(std::int64_t delay_seconds, Instant now) {
  if (!fifo() || delay_seconds == attributes_.delay_seconds) return true;
  held_until_ = now + limits::kRoomWaitMax;
  return stock_->residency().want_entered_after(now - std::chrono::seconds(delay_seconds));
}

void Queue::hold(Instant now) {
  held_until_ = now + limits::kRoomWaitMax;
  stock_->residency().hold(true);
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

// A message comes into the queue, by a send or a transfer. While the queue is stalled, it does not
// know which cold messages have expired, so the stock goes by the date.
Message& Queue::enter(std::unique_ptr<Message> owned, Instant due, Instant now) {
  CHECK(owned->seq >= next_seq_, "Seqs only grow");
  next_seq_ = owned->seq.next();
  return stock_->insert(std::move(owned), due, now, stalled_ ? expired_at(now) : Instant::min());
}

void Queue::remember_original(const Hash128& key, const Message& message, Instant now) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues deduplicate");
  fifo_memory_->deduplication.remember(key, {message.content->id(), message.seq}, now);
  fifo_memory_->count();
}

// A consumer gets the message: it is invisible until `visible_again`, and the receipt names the new
// receive count.
void Queue::receive(Message& message, Instant visible_again, Instant now) {
  stock_->hand_out(message, visible_again, now);
  if (message.receive_count == 0) message.first_received = now;
  ++message.receive_count;
  ++activity.received;
  message.received = now;
  // The mark that the dead-letter queue refused it is good for one delivery.
  message.stays = false;
}

void Queue::remember_attempt(const std::string& attempt_id, ReceiveAttempt attempt) {
  CHECK(fifo_memory_ != nullptr, "only FIFO queues know receive attempts");
  fifo_memory_->attempts.remember(attempt_id, std::move(attempt));
  fifo_memory_->attempts.forget_some([this](const ReceiveAttempt& one) { return is_over(one); });
  fifo_memory_->count();
}

bool Queue::is_over(const ReceiveAttempt& attempt) const {
  return std::ranges::any_of(attempt.items, [this](const ReceiveAttempt::Item& item) {
    const Message* message = find(item.seq);
    return message == nullptr || message->state != State::kInFlight ||
           message->receive_count != item.receive;
  });
}

// A timeout of zero makes the message visible at once.
void Queue::change_visibility(Message& message, Instant visible_again, Instant now) {
  stock_->reschedule(message, visible_again);
  if (visible_again <= now) stock_->make_ready(message, now);
}

void Queue::remove(Message& message, Instant now) {
  ++activity.deleted;
  stock_->erase(message, now);
}

// From depart() until the other shard's verdict, the message is in the outbox and in none of the
// queue's states.
std::unique_ptr<Message> Queue::depart(Message& message, Instant now) {
  return stock_->begin_leaving(message, now);
}

void Queue::departure_settled(Message& message) {
  stock_->forget_leaving(message);
}

void Queue::departure_refused(std::unique_ptr<Message> message, Instant now) {
  stock_->take_back(std::move(message));
  advance(now);
}

void Queue::set_attributes(QueueAttributes attributes, Instant now) {
  const bool delay_changed = attributes.delay_seconds != attributes_.delay_seconds;
  attributes_ = std::move(attributes);
  modified_ = now;
  // On FIFO queues a new delay also applies to messages that already wait; on standard queues it
  // does not.
  if (fifo() && delay_changed)
    stock_->delay_all(std::chrono::seconds(attributes_.delay_seconds), now);
  advance(now);
}

// The old stock is returned as a whole, because destroying many messages takes long. Under the new
// incarnation, everything of the old one in the store can be erased as a few ranges.
Queue::Discarded Queue::purge(Instant now) {
  const StockName name{id, stock_->name().incarnation + 1};
  const std::size_t before = memory_.messages + memory_.structure;
  Discarded old{std::exchange(stock_, std::make_unique<Stock>(name, fifo(), memory_)), nullptr, {}};
  old.stock->release_memory();
  if (fifo_memory_) {
    old.fifo_memory = std::exchange(fifo_memory_, std::make_unique<FifoMemory>(memory_));
    old.fifo_memory->share.leave();
  }
  old.bytes = before - std::min(before, memory_.messages + memory_.structure);
  first_unpurged_ = next_seq_;
  last_purge_ = now;
  stalled_ = false;
  return old;
}

Instant Queue::next_expiry() const {
  const Message* message = stock_->first_to_expire();
  if (message == nullptr) return kNever;
  return message->retained_from + std::chrono::seconds(attributes_.retention_seconds);
}

Instant Queue::next_cold_expiry() const {
  const Instant retained = stock_->residency().cold().first_retention();
  return retained == kNever ? kNever
                            : retained + std::chrono::seconds(attributes_.retention_seconds);
}

void Queue::advance(Instant now) {
  if (stock_->residency().is_held() && held_until_ <= now) stock_->residency().hold(false);
  // Events are applied in order of time, so that the number of steps in which time passes does not
  // matter. Of two events at the same instant, expiry comes first.
  for (;;) {
    const Instant timer = stock_->states().next_due();
    const Instant expiry = next_expiry();
    if (std::min(timer, expiry) > now) break;
    changed_by_time_ = true;
    if (expiry <= timer) {
      ++activity.expired;
      stock_->erase(*stock_->first_to_expire(), expiry);
    } else {
      stock_->make_ready(stock_->states().first_due(), timer);
    }
  }
  expire_cold(now);
  if (fifo_memory_) {
    fifo_memory_->deduplication.expire(now);
    fifo_memory_->attempts.expire(now);
    fifo_memory_->count();
  }
}

// Cold messages do not interact with the others, so it does not matter that they expire after them.
void Queue::expire_cold(Instant now) {
  const Residency::ColdExpiry expired = stock_->residency().expire_cold(expired_at(now));
  advanced_ = now;
  stalled_ = expired.stalled;
  activity.expired += expired.messages;
  changed_by_time_ = changed_by_time_ || expired.messages > 0;
  // Their times are read early, so that no request has to wait for that.
  if (!stalled_ && next_cold_expiry() <= now + kExpiryLead &&
      !stock_->residency().knows_first_cold())
    stock_->residency().look_up_first_cold();
}

Instant Queue::next_deadline() const {
  Instant next = std::min(stock_->states().next_due(), next_expiry());
  // While the queue is stalled, the requested read will wake it; no deadline is needed.
  if (const Instant expiry = next_cold_expiry(); !stalled_ && expiry != kNever) {
    // First a deadline to request the read, and then one at which the messages expire.
    const bool known = stock_->residency().knows_first_cold() || expiry - kExpiryLead <= advanced_;
    next = std::min(next, known ? expiry : expiry - kExpiryLead);
  }
  if (stock_->residency().is_held()) next = std::min(next, held_until_);
  if (fifo_memory_) {
    next = std::min({next, fifo_memory_->deduplication.next_deadline(),
                     fifo_memory_->attempts.next_deadline()});
  }
  return next;
}

Status Queue::install(const ColdRead& read, std::vector<StoredMessage> found, Instant now) {
  // A read may end after a purge: its messages are of an older incarnation and no longer wanted.
  if (read.stock.incarnation != stock_->name().incarnation) return {};
  RETURN_IF_FAILED(stock_->residency().install(read, std::move(found), now));
  if (read.purpose == ColdRead::Purpose::kPeek) return {};
  advance(now);
  return {};
}

void Queue::check_invariants() const {
  stock_->check_invariants();
  stock_->for_each([&](const Message& m) {
    CHECK(m.seq < next_seq_ && !was_purged(m.seq), "Q5: the Seq was given and not purged");
  });
}

namespace {

// A message as the fingerprint sees it: the same whether it is in memory or in the store.
struct Shown {
  Instant entered, retained_from, due, first_received, received;
  std::uint32_t receive_count = 0;
  State state = State::kReady;
  bool stays = false;
  ContentPtr content;
};

Shown shown(const StoredMessage& m) {
  return {m.entered,       m.retained_from, m.due, m.first_received, last_receive_of(*m.content),
          m.receive_count, State::kReady,   false, m.content};
}

Shown shown(const Message& m) {
  return {m.entered,       m.retained_from, m.due,   m.first_received, m.received,
          m.receive_count, m.state,         m.stays, m.content};
}

}  // namespace

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
  // How many have expired lags behind while it is being read which.
  for (const std::uint64_t n :
       {activity.sent, activity.sent_bytes, activity.received, activity.deleted,
        activity.dead_lettered, activity.moved_away, activity.moved_here})
    writer.u64(n);
  std::map<Seq, Shown> all;
  stock_->residency().for_each_cold(read,
                                    [&](std::size_t, const std::vector<StoredMessage>& found) {
                                      for (const StoredMessage& m : found)
                                        all.emplace(m.seq, shown(m));
                                    });
  stock_->for_each([&](const Message& m) {
    all.emplace(m.seq, shown(m)).first->second.content = stock_->residency().content_of(m, read);
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
  // Entries of the same instant have no order of their own, so they are sorted.
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
    if (is_over(a)) return;  // When it is forgotten does not matter.
    writer.text(attempt);
    writer.i64(to_millis(a.expires));
    for (const auto& item : a.items)
      writer.u64(item.seq.value()), writer.i64(to_millis(item.visible_again));
  });
}

}  // namespace stanchion::engine
