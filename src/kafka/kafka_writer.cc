#include "kafka/kafka_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

using journal::LogEntry;
using journal::LogEntryBuilder;
using journal::LogEntryKind;
using journal::LogOffset;
using journal::Proof;
using journal::Room;

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds since(Clock::time_point then) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then);
}

}  // namespace

KafkaWriter::KafkaWriter(KafkaConnection& connection, const ShardLog& log, Ownership ownership,
                         const KafkaJournalOptions& options)
    : connection_(connection),
      log_(log),
      options_(options),
      self_{.fleet = log.fleet, .shard = log.shard, .node = log.node, .writer = ownership.writer},
      epoch_(ownership.epoch),
      next_(ownership.next),
      durable_(ownership.next.value() - 1),
      pending_first_(ownership.next),
      version_(ownership.digest ? journal::kChainVersion : 1),
      next_version_(version_),
      digest_(ownership.digest),
      sent_(ownership.epoch, ownership.claim),
      index_(std::move(ownership.index)) {
  CHECK(options_.unwritten_size_max >= 2 * limits::kRecordSizeMax, "room for the largest record");
}

void KafkaWriter::start(journal::JournalEvents events) {
  const std::lock_guard lock(events_mutex_);
  events_ = std::move(events);
}

Position KafkaWriter::append(std::string_view record) {
  const std::lock_guard lock(mutex_);
  const Position position = std::exchange(next_, next_.next());
  if (ended()) return position;
  if (pending_.empty()) begin_version();
  if (pending_.empty() || !pending_.back().entry.fits(record.size()))
    pending_.push_back({.before = digest_, .entry = {}});
  if (digest_) digest_ = journal::extended(*digest_, record);
  LogEntryBuilder& entry = pending_.back().entry;
  const std::size_t before = entry.records_size();
  entry.add(record);
  unwritten_ += entry.records_size() - before;
  if (unwritten_ + limits::kRecordSizeMax > options_.unwritten_size_max) was_full_ = true;
  return position;
}

void KafkaWriter::flush() {
  const std::lock_guard lock(mutex_);
  due_ = true;
  send_what_is_due();
}

Proof KafkaWriter::barrier() {
  const std::lock_guard lock(mutex_);
  barrier_wanted_ = true;
  return Proof(sent_.last_number() + 1);
}

void KafkaWriter::send_what_is_due() {
  while (due_ && !ended() && sent_.empty()) {
    if (!pending_.empty()) {
      Pending pending = std::move(pending_.front());
      pending_.pop_front();
      send(LogEntryKind::kRecords, std::move(pending));
    } else if (barrier_wanted_) {
      send(LogEntryKind::kBarrier, {});
    } else {
      due_ = false;
    }
  }
}

void KafkaWriter::send(LogEntryKind kind, Pending pending) {
  const LogEntry head{.kind = kind,
                      .epoch = epoch_,
                      .first = pending_first_,
                      .count = pending.entry.record_count(),
                      .before = pending.before};
  const std::size_t size = pending.entry.records_size();
  pending_first_ = Position(pending_first_.value() + head.count);
  barrier_wanted_ = false;
  const std::uint64_t number = sent_.add(head);
  in_flight_.push_back({size, Clock::now()});
  const Status status = connection_.send(
      log_.partition, pending.entry.finish(kind, epoch_, head.first, head.before, self_, version_),
      [self = shared_from_this(), number](const Delivery& delivery) {
        self->delivered(number, delivery);
      });
  if (status) return;
  // The caller may be the shard's thread, which is not called back from here.
  connection_.post([self = shared_from_this(), number, failure = status.error()] {
    self->delivered(number, {.failure = failure, .began_anew = false, .at = {}});
  });
}

void KafkaWriter::delivered(std::uint64_t number, const Delivery& delivery) {
  News news;
  {
    const std::lock_guard lock(mutex_);
    if (ended()) return;
    if (delivery.failure && delivery.began_anew) {
      // The entry may be in the log or not. Whoever claims the log next knows, this node or another.
      give_way({}, news);
    } else if (delivery.failure) {
      fail_with(delivery.failure->message, news);
    } else {
      sent_.acknowledge(number, delivery.at);
      settle(news);
      send_what_is_due();
    }
  }
  tell(news);
}

void KafkaWriter::settle(News& news) {
  while (!ended()) {
    switch (sent_.next()) {
      case SentEntries::Step::kWait:
        return;
      case SentEntries::Step::kTake:
        take_first(news);
        break;
      case SentEntries::Step::kReadGap:
        if (!gap_) return open_gap(news);
        return;  // It is being read.
      case SentEntries::Step::kSendBarrier:
        return send(LogEntryKind::kBarrier, {});
      case SentEntries::Step::kLost:
        return give_way({"an entry that the brokers had acknowledged is not in Kafka's partition " +
                         log_.partition.text() + ": shard " + std::to_string(log_.shard.value()) +
                         " begins anew from its store"},
                        news);
    }
  }
}

void KafkaWriter::take_first(News& news) {
  const SentEntries::Entry entry = sent_.take_first();
  const InFlight was = in_flight_.front();
  in_flight_.pop_front();
  unwritten_ -= was.size;
  commits_.add();
  records_.add(entry.head.count);
  bytes_.add(journal::kLogEntryHeaderSize + was.size);
  commit_time_.add(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - was.sent));
  news.proven = Proof(entry.number);
  proven_.store(entry.number, std::memory_order_release);
  if (entry.head.count > 0) {
    index_.note(entry.head.first, *entry.at);
    news.durable = Position(entry.head.first.value() + entry.head.count - 1);
    CHECK(news.durable > durable(), "positions grow from entry to entry");
    durable_.store(news.durable.value(), std::memory_order_release);
  }
  if (was_full_ && unwritten_ < options_.unwritten_size_max / 2) {
    was_full_ = false;
    news.roomier = true;
  }
  settled_.notify_all();
}

void KafkaWriter::fail_with(std::string reason, News& news) {
  failure_ =
      Failure{"the log of shard " + std::to_string(log_.shard.value()) + " in Kafka's partition " +
              log_.partition.text() + " cannot be written: " + std::move(reason)};
  news.failure = failure_;
  settled_.notify_all();
}

void KafkaWriter::open_gap(News& news) {
  auto reader = connection_.read(log_.partition, sent_.gap());
  if (!reader) return give_way(reader.error(), news);
  gap_ = std::move(*reader);
  gap_heard_ = Clock::now();
  // Called by librdkafka's threads too, with locks of its own held.
  gap_->when_ready([weak = weak_from_this(), &connection = connection_] {
    connection.post([weak] {
      if (const auto self = weak.lock()) self->go_on_reading();
    });
  });
}

void KafkaWriter::go_on_reading() {
  News news;
  {
    const std::lock_guard lock(mutex_);
    while (gap_ && !ended() && sent_.next() == SentEntries::Step::kReadGap) {
      const auto got = gap_->next(std::chrono::milliseconds(0));
      if (!got) {
        give_way(got.error(), news);
      } else if (*got == PartitionReader::Got::kNothing) {
        break;  // There will be more: the entry that closes the gap is in the log.
      } else if (*got == PartitionReader::Got::kTrimmed) {
        // Only an owner trims, and only what it knows: there is another one.
        give_way({}, news);
      } else if (*got == PartitionReader::Got::kEntry) {
        gap_heard_ = Clock::now();
        look_at_gap(news);
      }
      if (!ended() && sent_.next() == SentEntries::Step::kTake) settle(news);
    }
    // Before the next gap, because a partition has one reader at a time.
    if (ended() || sent_.next() != SentEntries::Step::kReadGap) gap_.reset();
    settle(news);
    send_what_is_due();
  }
  tell(news);
}

// The entry that closes the gap is in the log, so there is something to be shown.
void KafkaWriter::notice_silence() {
  const std::lock_guard lock(mutex_);
  if (!gap_ || ended() || since(gap_heard_) < connection_.settings().silent_after) return;
  gap_heard_ = Clock::now();
  // Events are told on the connection's thread.
  connection_.post([self = shared_from_this()] {
    News news;
    {
      const std::lock_guard inner(self->mutex_);
      if (!self->gap_ || self->ended()) return;
      self->give_way({"Kafka's partition " + self->log_.partition.text() +
                      " does not show what stands before an entry of this node"},
                     news);
    }
    self->tell(news);
  });
}

void KafkaWriter::look_at_gap(News& news) {
  const LogOffset at = gap_->offset();
  if (at < sent_.gap()) return;
  if (const Status status = check_offset(log_, sent_.gap(), at); !status)
    return give_way(status.error(), news);
  while (sent_.next() == SentEntries::Step::kReadGap && sent_.gap() < at) sent_.skip_gap();
  if (sent_.next() != SentEntries::Step::kReadGap) return;
  const auto entry = read_entry(log_, at, gap_->bytes(), gap_->key());
  if (!entry) return give_way(entry.error(), news);
  if (!*entry) return sent_.skip_gap();
  if ((*entry)->is_of_later_version || !sent_.look_at((*entry)->head, (*entry)->from == self_))
    give_way({}, news);
}

// Somebody else owns the log, or what stands before an own entry cannot be read and may be a claim, or
// the log has lost entries: who follows it from here on finds out, and says what is wrong with it.
void KafkaWriter::give_way(const Failure& why, News& news) {
  if (!why.message.empty()) connection_.settings().warn(why.message);
  superseded_ = news.superseded = true;
  settled_.notify_all();
}

void KafkaWriter::write_version(std::uint8_t version) {
  const std::lock_guard lock(mutex_);
  next_version_ = std::max(next_version_, version);
}

// LG4: the chain begins with a record of which nobody has made a checkpoint yet, and with no record if
// this owner writes none: another one may begin it elsewhere.
void KafkaWriter::begin_version() {
  version_ = next_version_;
  if (version_ >= journal::kChainVersion && !digest_) digest_ = journal::LogDigest();
}

std::optional<journal::LogDigest> KafkaWriter::digest() const {
  const std::lock_guard lock(mutex_);
  return digest_;
}

void KafkaWriter::tell(const News& news) {
  const std::lock_guard lock(events_mutex_);
  {
    const std::lock_guard inner(mutex_);
    if (detached_) return;
  }
  if (news.proven != Proof() && events_.proven) events_.proven();
  if (news.durable != Position() && events_.durable) events_.durable(news.durable);
  if (news.roomier && events_.roomier) events_.roomier();
  if (news.superseded && events_.superseded) events_.superseded();
  if (news.failure && events_.failed) events_.failed(*news.failure);
}

Room KafkaWriter::room() const {
  const std::lock_guard lock(mutex_);
  if (ended()) return Room::kNone;
  return unwritten_ + limits::kRecordSizeMax <= options_.unwritten_size_max ? Room::kPlenty
                                                                            : Room::kBusy;
}

void KafkaWriter::trim_before(Position position) {
  CHECK(position <= durable().next(), "only what is durable is trimmed");
  std::optional<LogOffset> at;
  {
    const std::lock_guard lock(mutex_);
    if (ended()) return;
    at = index_.at_or_before(position);
    if (!at || *at <= trimmed_) return;
    trimmed_ = *at;
    index_.forget_before(*at);
  }
  connection_.delete_before(log_.partition, *at);
}

journal::JournalFigures KafkaWriter::figures() const {
  return {.commits = commits_.value(),
          .records = records_.value(),
          .bytes = bytes_.value(),
          .commit_time = commit_time_.counts()};
}

std::optional<journal::LogStall> KafkaWriter::stall() const {
  std::chrono::milliseconds waiting{0};
  {
    const std::lock_guard lock(mutex_);
    if (in_flight_.empty() || ended()) return std::nullopt;
    waiting = since(in_flight_.front().sent);
    if (waiting < options_.stalled_after) return std::nullopt;
    if (gap_)
      return journal::LogStall{waiting, "what " + log_.partition.text() +
                                            " has taken cannot be read back from its leader"};
  }
  return journal::LogStall{waiting,
                           connection_.troubles().why_not_taken(log_.partition, Clock::now())};
}

Status KafkaWriter::drain() {
  std::unique_lock lock(mutex_);
  due_ = true;
  send_what_is_due();
  const bool done = settled_.wait_for(
      lock, options_.patience, [this] { return ended() || (sent_.empty() && pending_.empty()); });
  if (failure_) return std::unexpected(*failure_);
  if (superseded_)
    return fail("shard " + std::to_string(log_.shard.value()) + " has moved to another node");
  if (!done)
    return fail("Kafka has not acknowledged the last records of shard " +
                std::to_string(log_.shard.value()) + " within " +
                std::to_string(options_.patience.count()) +
                " ms; the next owner of the shard finds those that arrived");
  return {};
}

void KafkaWriter::detach() {
  const std::lock_guard telling(events_mutex_);
  const std::lock_guard lock(mutex_);
  detached_ = true;
  gap_.reset();
}

}  // namespace stanchion::kafka
