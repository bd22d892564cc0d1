// The engine and its store: checkpoints, recovery, eviction, and reading back.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "engine/engine.h"
#include "engine/store/scan_order.h"
#include "engine/store/sense.h"
#include "model/dates.h"

namespace stanchion::engine {
namespace {

// Incremented when the form of any entry changes.
constexpr std::uint8_t kShardVersion = 3;

// How much evict_some() does at a time.
constexpr std::size_t kEvictQueuesMax = 64;

// Evicts this part of the budget more than needed, because searching for evictable chunks takes the
// longest.
constexpr std::size_t kEvictBeyond = 16;

// How often a start repeats a failed read, because some errors are temporary.
constexpr int kReadTries = 3;

void write_ref(ByteWriter& writer, const QueueRef& ref) {
  for (const std::string* part : {&ref.account, &ref.region, &ref.name}) writer.text(*part);
}

// The group of a message that the facts say was chosen; else nullptr. All chosen messages of a record
// are in the same queue.
const std::string* group_of_chosen(const std::vector<Fact>& facts, Seq seq) {
  for (const Fact& fact : facts)
    if (const auto* chosen = std::get_if<MessagesChosen>(&fact))
      for (const MessagesChosen::Item& item : chosen->items)
        if (item.seq == seq) return &item.group;
  return nullptr;
}

Status parse_found(ColdRead::Purpose purpose, std::string_view key, std::string_view value,
                   std::vector<StoredMessage>& out) {
  if (purpose != ColdRead::Purpose::kDeparture)
    return parse_stored_messages(key, value, purpose != ColdRead::Purpose::kExpiries, out);
  Seq home;
  auto departure = Outbox::parse(value, home);
  if (!departure) return std::unexpected(std::move(departure).error());
  StoredMessage& found = out.emplace_back();
  found.seq = departure->message->seq;
  found.content = std::move(departure->message->content);
  return {};
}

}  // namespace

void Engine::begin_checkpoint(Position position, Instant now, std::optional<std::uint64_t> digest) {
  CHECK(memory_.durable_checkpoint == memory_.checkpoint, "one checkpoint at a time");
  CHECK(position != Position() && is_date(now), "a checkpoint has a position and a time");
  ++memory_.checkpoint;
  memory_.brought_in = memory_.outlived = 0;
  memory_.checkpoint_at = now;
  memory_.batch = std::make_unique<Batch>(std::exchange(erased_queues_, {}));
  Batch& batch = *memory_.batch;
  unsaved_.begin();
  outbox_.begin_save(batch);
  ++memory_.looked_at;
  Put put{shard_key(), {}, nullptr};
  ByteWriter writer(put.head);
  writer.u8(kShardVersion);
  writer.u64(position.value());
  writer.i64(to_millis(now));
  writer.raw(as_text(receipt_key_));
  writer.u64(next_queue_.value());
  writer.u64(outbox_.next().value());
  inbox_.save(put.head);
  writer.varint(deleted_.all().size());
  for (const auto& [ref, at] : deleted_.all()) {
    write_ref(writer, ref);
    writer.i64(to_millis(at));
  }
  if (digest) writer.u64(*digest);
  batch.puts.push_back(std::move(put));
}

void Engine::settle(Queue& queue) {
  if (!unsaved_.is_pending(queue)) return;
  unsaved_.remove(queue);
  queue.begin_save();
  FifoMemory* const memory = queue.fifo_memory();
  if (queue.stock().writer().has_pending() || (memory != nullptr && memory->has_pending()))
    saving_.push_back({&queue.stock().writer(), memory});
}

// Writes some of what is pending, about this much at most; false if nothing is.
bool Engine::save_part(std::size_t most) {
  while (!saving_.empty()) {
    const auto [writer, fifo_memory] = saving_.back();
    if (writer->has_pending()) {
      writer->save_some(most);
      return true;
    }
    if (fifo_memory != nullptr && fifo_memory->has_pending()) {
      memory_.looked_at += fifo_memory->save_some(most);
      return true;
    }
    saving_.pop_back();
  }
  if (unsaved_.has_pending()) {
    settle(unsaved_.first_pending());
    return true;
  }
  if (!outbox_.has_pending()) return false;
  memory_.looked_at += outbox_.save_some(most);
  return true;
}

bool Engine::save_some(std::size_t messages) {
  const std::uint64_t before = memory_.looked_at;
  for (std::size_t done = 0; done < messages; done = memory_.looked_at - before)
    if (!save_part(messages - done)) return true;
  return false;
}

bool Engine::has_home(const Departure& departure) const {
  const Queue* queue = find(departure.queue);
  return queue != nullptr && !queue->was_purged(departure.message->seq);
}

Batch Engine::take_checkpoint() {
  CHECK(memory_.batch != nullptr && saving_.empty() && !unsaved_.has_pending() &&
            !outbox_.has_pending(),
        "the checkpoint is whole");
  Batch batch = std::move(*std::exchange(memory_.batch, nullptr));
  std::ranges::move(std::exchange(discarded_while_saving_, {}), std::back_inserter(discarded_));
  if (!buried_while_saving_.empty())
    discarded_.push_back({nullptr, nullptr, std::exchange(buried_while_saving_, {})});
  return batch;
}

// It is still a blocker of its lane, which the checkpoint under way may have yet to look at. The
// content is of no use to that, and no longer counted.
void Engine::bury(std::unique_ptr<Message> message) {
  if (memory_.batch == nullptr) return;
  message->content = nullptr;
  buried_while_saving_.push_back(std::move(message));
}

void Engine::discard(Queue::Discarded contents) {
  memory_.outlived += contents.bytes;
  discarded_bytes_ += contents.bytes;
  // What the checkpoint has yet to write, or names, must live until it is written.
  (memory_.batch == nullptr ? discarded_ : discarded_while_saving_).push_back(std::move(contents));
}

void Engine::checkpoint_is_durable() {
  memory_.durable_checkpoint = memory_.checkpoint;
  outbox_.saved();
  evicting_ = Evicting::kDeep;
  evicted_in_round_ = false;
}

Status Engine::load_shard(std::string_view value, Position& position, Instant& at) {
  ByteReader reader(value);
  if (const int version = reader.u8(); version != kShardVersion) {
    return fail("the store is of version " + std::to_string(version) +
                ", and this release reads version " + std::to_string(kShardVersion) +
                " only: start the release that wrote it");
  }
  position = Position(reader.u64());
  at = from_millis(reader.i64());
  const std::string_view key = reader.raw(receipt_key_.size());
  if (!reader.ok() || position == Position() || !is_date(at))
    return makes_no_sense("the shard's record");
  std::ranges::copy(key, receipt_key_.begin());
  founded_ = true;
  next_queue_ = QueueId(reader.u64());
  outbox_.load_next(TransferNo(reader.u64()));
  bool ok = next_queue_ != QueueId() && outbox_.next() != TransferNo() && inbox_.load(reader);
  for (std::size_t left = reader.count(); left > 0; --left) {
    QueueRef ref;
    for (std::string* part : {&ref.account, &ref.region, &ref.name}) *part = reader.text();
    const Instant when = from_millis(reader.i64());
    ok = ok && is_date(when);
    deleted_.add(ref, when);
  }
  if (ok && reader.ok() && !reader.at_end()) loaded_digest_ = reader.u64();
  ok = ok && reader.ok() && reader.at_end();
  if (!ok) return makes_no_sense("the shard's record");
  return {};
}

// Loads one entry of any type except the shard's and the messages'.
Status Engine::load_entry(std::string_view key, std::string_view value, Instant at) {
  KeyReader parts(key);
  const KeyType type = parts.type();
  if (type == KeyType::kDeparture) {
    const TransferNo number = parts.transfer();
    if (!parts.complete() || number >= outbox_.next()) return makes_no_sense("a key");
    Seq home;
    auto departure = Outbox::parse(value, home);
    if (!departure) return std::unexpected(std::move(departure).error());
    if (has_home(*departure))
      RETURN_IF_FAILED(
          queue_of(departure->queue).stock().loader().load_leaving(*departure->message, home));
    outbox_.load(number, std::move(*departure), memory_.options.in_transit);
    return {};
  }
  const StockName stock = type == KeyType::kQueue ? StockName{parts.queue()} : parts.stock();
  if (type == KeyType::kQueue) {
    if (!parts.complete() || stock.queue >= next_queue_) return makes_no_sense("a key");
    auto loaded = Queue::load(stock.queue, value, memory_);
    if (!loaded) return std::unexpected(std::move(loaded).error());
    Queue& queue = **loaded;
    if (find(queue.ref) != nullptr) return makes_no_sense("a queue that is there twice");
    queues_.emplace(queue.id, std::move(*loaded));
    by_ref_.emplace(&queue.ref, &queue);
    listing_.insert(&queue);
    link_dead_letters(queue);
    if (!queue.tasks.empty() && queue.tasks.back().running()) moving_.insert(queue.id);
    return {};
  }
  Queue* queue = find_by_id(stock.queue);
  if (queue == nullptr || queue->stock().name().incarnation != stock.incarnation)
    return makes_no_sense("something of a queue that is not there");
  const bool has_lane = type == KeyType::kChunk || type == KeyType::kPlace;
  const LaneName lane = has_lane ? parts.lane() : LaneName();
  const bool has_seq = type == KeyType::kChunk || type == KeyType::kDetached;
  const Seq seq = has_seq ? parts.seq() : Seq();
  // The other two types are identified by their values.
  if ((has_lane || has_seq) && !parts.complete()) return makes_no_sense("a key");
  switch (type) {
    case KeyType::kChunk:
      return queue->stock().loader().load_chunk(lane, seq, value, at);
    case KeyType::kDetached:
      return queue->stock().loader().load_detached(seq, value);
    case KeyType::kDeduplication:
      return queue->load_originals(key, value, at);
    case KeyType::kAttempt:
      return queue->load_attempt(key, value);
    case KeyType::kPlace:
      return queue->stock().loader().load_place(lane, value);
    default:
      return makes_no_sense("a key");
  }
}

// No message leaves twice, and the counts of move tasks agree.
bool Engine::departures_make_sense() const {
  std::set<std::pair<QueueId, Seq>> leaving;
  std::map<TaskId, std::uint64_t> in_transit;
  for (const auto& [number, departure] : outbox_.under_way()) {
    if (!leaving.emplace(departure.queue, departure.message->seq).second) return false;
    if (departure.reason == TransferReason::kRedrive) ++in_transit[departure.task];
  }
  return std::ranges::all_of(listing_, [&](const Queue* queue) {
    return std::ranges::all_of(queue->tasks, [&](const MoveTask& task) {
      const auto found = in_transit.find(task.id);
      return task.in_transit == (found == in_transit.end() ? 0 : found->second);
    });
  });
}

Result<Position> Engine::load(const ScanStore& scan, Instant& at) {
  CHECK(!founded_ && queues_.empty(), "only a new engine is loaded");
  Position position;
  Status status;
  // A failure of the scan itself comes before one of what it found.
  const auto walk = [&](const KeyRange& range, const auto& take) -> Status {
    ScanOrder order(range);
    RETURN_IF_FAILED(scan(range, [&](std::string_view key, std::string_view value) {
      status = order.accepts(key) ? take(key, value) : makes_no_sense("the order of keys");
      return status.has_value();
    }));
    return std::exchange(status, Status());
  };
  RETURN_IF_FAILED(
      walk(all_of(KeyType::kShard), [&](std::string_view key, std::string_view value) -> Status {
        if (key != shard_key().view()) return makes_no_sense("a key");
        return load_shard(value, position, at);
      }));
  if (position == Position()) {
    // Every checkpoint has the shard's record: nothing else was written, either.
    const KeyRange others{all_of(KeyType::kQueue).begin, all_of(KeyType::kPlace).end};
    RETURN_IF_FAILED(walk(others, [](std::string_view, std::string_view) -> Status {
      return makes_no_sense("a store without the shard's record");
    }));
    return position;
  }
  // Queues come first, then chunks, because everything else refers to them.
  for (const KeyType type :
       {KeyType::kQueue, KeyType::kChunk, KeyType::kDetached, KeyType::kDeduplication,
        KeyType::kAttempt, KeyType::kDeparture, KeyType::kPlace})
    RETURN_IF_FAILED(walk(all_of(type), [&](std::string_view key, std::string_view value) {
      return load_entry(key, value, at);
    }));
  // What fell due at the very instant of the checkpoint may not have happened in it. So the state
  // is restored as of just before; it then happens when time advances, as it did then.
  const Instant before = at - Duration(1);
  for (Queue* queue : listing_) RETURN_IF_FAILED(queue->loaded(before));
  if (!departures_make_sense()) return makes_no_sense("a message on its way");
  read_delayed(scan, before);
  for (Queue* queue : listing_) {
    touch(*queue);
    unsaved_.remove(*queue);
  }
  return position;
}

// Reads the delayed messages of FIFO queues. If some of a queue cannot be read, nothing may be
// received from that queue, but the others go on.
void Engine::read_delayed(const ScanStore& scan, Instant now) {
  for (const ColdRead& wanted : take_reads()) {
    auto found = read(wanted, scan);
    for (int tries = 1; !found && tries < kReadTries; ++tries) found = read(wanted, scan);
    const Status status =
        found ? install(wanted, std::move(*found), now) : std::unexpected(std::move(found).error());
    if (status) continue;
    queue_of(wanted.stock.queue).stock().residency().give_up(wanted);
    unreadable_.emplace(wanted.stock.queue, status.error());
  }
}

std::vector<ColdRead> Engine::take_reads() {
  return std::exchange(memory_.wanted, {});
}

Result<std::vector<StoredMessage>> Engine::read(const ColdRead& wanted, const ScanStore& scan) {
  auto found = read(std::span(&wanted, 1), scan);
  if (!found) return std::unexpected(std::move(found).error());
  return std::move(found->front());
}

Result<std::vector<std::vector<StoredMessage>>> Engine::read(std::span<const ColdRead> reads,
                                                             const ScanStore& scan) {
  std::vector<std::vector<StoredMessage>> found(reads.size());
  std::size_t at = 0;  // The read that the scan has reached.
  Status status;
  const KeyRange all{reads.front().range.begin, reads.back().range.end};
  ScanOrder order(all);
  RETURN_IF_FAILED(scan(all, [&](std::string_view key, std::string_view value) {
    if (!order.accepts(key)) {
      status = makes_no_sense("the order of messages");
      return false;
    }
    while (key >= reads[at].range.end) ++at;
    // Between two reads there may be entries of messages that are in memory.
    if (key < reads[at].range.begin) return true;
    status = parse_found(reads[at].purpose, key, value, found[at]);
    return status.has_value();
  }));
  if (!status) return std::unexpected(std::move(status).error());
  return found;
}

Status Engine::install(const ColdRead& read, std::vector<StoredMessage> found, Instant now) {
  if (read.purpose == ColdRead::Purpose::kDeparture)
    return outbox_.install(read.transfer, std::move(found));
  Queue* queue = find_by_id(read.stock.queue);
  if (queue == nullptr) return {};
  RETURN_IF_FAILED(queue->install(read, std::move(found), now));
  if (read.purpose != ColdRead::Purpose::kPeek) touch(*queue);
  return {};
}

void Engine::give_up(const ColdRead& read) {
  if (read.purpose == ColdRead::Purpose::kDeparture) outbox_.give_up(read.transfer);
}

bool Engine::is_ready_for(const std::vector<Fact>& facts, Instant at) {
  // Messages are received, and leave, from the head of their lane, but the facts of a record are in
  // another order. So whatever is missing, one of the missing messages is the first of its chunk,
  // which look_for() can find. Messages that were chosen may be anywhere, and are found by group.
  bool ready = true;
  bool asked = false;
  const auto need = [&](Queue& queue, Seq seq, bool with_content) {
    const Presence presence = queue.look_for(seq, with_content, group_of_chosen(facts, seq));
    ready = ready && presence == Presence::kInMemory;
    asked = asked || presence == Presence::kAskedFor;
  };
  for (const Fact& fact : facts) {
    if (const auto* received = std::get_if<MessagesReceived>(&fact)) {
      for (const auto& item : received->items) need(queue_of(received->queue), item.seq, false);
    } else if (const auto* left = std::get_if<MessagesLeft>(&fact)) {
      for (const auto& item : left->items) need(queue_of(left->queue), item.seq, true);
    } else if (const auto* set = std::get_if<QueueAttributesSet>(&fact)) {
      const bool can = queue_of(set->queue).can_set_delay(set->attributes.delay_seconds, at);
      ready = ready && can;
      asked = asked || !can;
    } else if (const auto* refused = std::get_if<TransferRefused>(&fact)) {
      // It goes back to its queue.
      const bool cold = outbox_.want(refused->transfer, memory_.wanted);
      ready = ready && !cold;
      asked = asked || cold;
    }
  }
  CHECK(ready || asked, "facts name messages that are there");
  return ready;
}

Status Engine::read_wanted(const ScanStore& scan, Instant now) {
  for (auto reads = take_reads(); !reads.empty(); reads = take_reads()) {
    for (const ColdRead& wanted : reads) {
      auto found = read(wanted, scan);
      if (!found) return std::unexpected(std::move(found).error());
      RETURN_IF_FAILED(install(wanted, std::move(*found), now));
    }
  }
  return {};
}

Status Engine::prepare_for(const std::vector<Fact>& facts, const ScanStore& scan, Instant at) {
  do RETURN_IF_FAILED(read_wanted(scan, at));
  while (!is_ready_for(facts, at));
  return {};
}

Holdings Engine::holdings() const {
  Holdings out{.queues = queues_.size(), .bytes = memory_.messages + memory_.structure};
  out.leaving = outbox_.under_way().size();
  for (const Queue* queue : listing_) queue->add_to(out);
  return out;
}

bool Engine::stalled() const {
  return std::ranges::any_of(listing_, [](const Queue* queue) { return queue->stalled(); });
}

Engine::Evicting Engine::next_after(Evicting phase) {
  switch (phase) {
    case Evicting::kDeep:
      return Evicting::kNear;
    case Evicting::kNear:
      return Evicting::kContents;
    case Evicting::kContents:
    case Evicting::kNothing:
      return Evicting::kNothing;
  }
  check_failed("phase", "no such phase", std::source_location::current());
}

bool Engine::evict_some(std::size_t budget) {
  if (!exceeds(budget) || evicting_ == Evicting::kNothing) return false;
  if (evicting_ == Evicting::kContents) {
    const std::size_t excess = memory_.messages - left_for_messages(budget);
    if (outbox_.evict(excess + budget / kEvictBeyond) > 0) {
      evicted_in_round_ = true;
      return exceeds(budget);
    }
  }
  auto queue = listing_.upper_bound(evict_after_);
  for (std::size_t left = kEvictQueuesMax; left > 0 && queue != listing_.end(); --left, ++queue) {
    Stock& stock = (*queue)->stock();
    const std::size_t excess = memory_.messages - left_for_messages(budget) + budget / kEvictBeyond;
    Evicted evicted{0, false};
    settle(**queue);
    if (evicting_ == Evicting::kContents) {
      evicted = stock.residency().evict_contents(excess);
    } else if (evicting_ == Evicting::kNear || stock.residency().has_deep()) {
      evicted = stock.residency().evict(excess, evicting_ == Evicting::kNear);
    }
    evict_after_ = (*queue)->ref;
    if (evicted.bytes == 0 && !evicted.more) continue;
    evicted_in_round_ = true;
    touch(**queue);
    return exceeds(budget);
  }
  if (queue != listing_.end()) return true;
  evict_after_ = {};
  if (!std::exchange(evicted_in_round_, false)) evicting_ = next_after(evicting_);
  return evicting_ != Evicting::kNothing;
}

std::vector<Queue::Discarded> Engine::take_discarded() {
  for (const Queue::Discarded& gone : discarded_) discarded_bytes_ -= gone.bytes;
  return std::exchange(discarded_, {});
}

}  // namespace stanchion::engine
