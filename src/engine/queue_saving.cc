// A queue in the store: what a checkpoint writes, and how it is loaded.
#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/check.h"
#include "engine/queue.h"
#include "engine/store/sense.h"
#include "model/dates.h"
#include "model/fact.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

constexpr std::uint8_t kQueueVersion = 1;

void write_task(ByteWriter& writer, const MoveTask& task) {
  writer.raw(as_text(task.id.bytes));
  writer.text(task.destination_arn);
  writer.i64(task.max_per_second);
  for (const std::uint64_t n : {task.to_move, task.moved, task.in_transit}) writer.u64(n);
  writer.i64(to_millis(task.started));
  writer.i64(task.next_micros);
  writer.u8(static_cast<std::uint8_t>(task.status));
  writer.text(task.failure_reason);
}

// In the order in which they are written; new ones are added at the end.
constexpr std::array kKept{&Activity::sent,       &Activity::sent_bytes,    &Activity::received,
                           &Activity::deleted,    &Activity::dead_lettered, &Activity::moved_away,
                           &Activity::moved_here, &Activity::expired};

void write_activity(ByteWriter& writer, const Activity& activity) {
  writer.varint(kKept.size());
  for (const auto number : kKept) writer.varint(activity.*number);
}

// A release that did not count wrote nothing here, and a newer one may have written more.
Activity read_activity(ByteReader& reader) {
  Activity activity;
  if (reader.at_end()) return activity;
  const std::size_t count = reader.count();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = reader.varint();
    if (i < kKept.size()) activity.*kKept[i] = number;
  }
  return activity;
}

MoveTask read_task(ByteReader& reader) {
  MoveTask task;
  const std::string_view id = reader.raw(task.id.bytes.size());
  if (reader.ok()) std::ranges::copy(id, task.id.bytes.begin());
  task.destination_arn = reader.text();
  task.max_per_second = reader.i64();
  for (std::uint64_t* n : {&task.to_move, &task.moved, &task.in_transit}) *n = reader.u64();
  task.started = from_millis(reader.i64());
  task.next_micros = reader.i64();
  task.status = static_cast<MoveTaskStatus>(reader.u8());
  task.failure_reason = reader.text();
  return task;
}

}  // namespace

void Queue::begin_save() {
  CHECK(is_possible(), "what is written of a queue can be read");
  ++memory_.looked_at;
  Batch& batch = *memory_.batch;
  Put put{queue_key(id), {}, nullptr};
  ByteWriter writer(put.head);
  writer.u8(kQueueVersion);
  // Name, attributes and tags in the form of the journal.
  RecordWriter settings(modified_);
  settings.add(QueueCreated{id, ref, attributes_, tags});
  writer.text(settings.bytes());
  writer.i64(to_millis(created));
  writer.u64(next_seq_.value());
  writer.u64(first_unpurged_.value());
  writer.i64(to_millis(last_purge_.value_or(Instant())));
  writer.u32(stock_->name().incarnation);
  writer.varint(tasks.size());
  for (const MoveTask& task : tasks) write_task(writer, task);
  write_activity(writer, activity);
  batch.puts.push_back(std::move(put));

  if (saved_ && saved_incarnation_ != stock_->name().incarnation) {
    for (KeyRange& range : stock_ranges(id, saved_incarnation_, stock_->name().incarnation - 1))
      batch.erased_ranges.push_back(std::move(range));
  }
  saved_ = true;
  saved_incarnation_ = stock_->name().incarnation;
  stock_->writer().begin();
  if (fifo_memory_) fifo_memory_->begin_save(batch, stock_->name());
}

void Queue::erase_all(Batch& batch) const {
  if (!saved_) return;
  batch.erased.push_back(queue_key(id));
  for (KeyRange& range : stock_ranges(id, saved_incarnation_, UINT32_MAX))
    batch.erased_ranges.push_back(std::move(range));
}

namespace {

// No client could have set other values.
bool are_possible(const QueueAttributes& attributes) {
  const auto within = [](std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most;
  };
  const auto& redrive = attributes.redrive;
  return within(attributes.visibility_timeout_seconds, 0, limits::kVisibilityTimeoutSecondsMax) &&
         within(attributes.delay_seconds, 0, limits::kDelaySecondsMax) &&
         within(attributes.retention_seconds, limits::kRetentionSecondsMin,
                limits::kRetentionSecondsMax) &&
         within(attributes.wait_time_seconds, 0, limits::kWaitTimeSecondsMax) &&
         (!redrive || parse_queue_arn(redrive->target_arn).has_value());
}

}  // namespace

// Whether the loaded values of the queue itself are consistent.
bool Queue::is_possible() const {
  if (!are_possible(attributes_)) return false;
  for (const Instant t : {created, modified_, last_purge_.value_or(Instant())})
    if (!is_date(t)) return false;
  for (const MoveTask& task : tasks)
    if (!task.is_possible() || (task.running() && &task != &tasks.back())) return false;
  return first_unpurged_ <= next_seq_ && next_seq_ != Seq() &&
         tasks.size() <= limits::kMoveTaskHistoryMax + 1;
}

Result<std::unique_ptr<Queue>> Queue::load(QueueId id, std::string_view value, Memory& memory) {
  ByteReader reader(value);
  if (reader.u8() != kQueueVersion)
    return fail("the store has a queue of an unknown version; it was written by a newer release");
  const auto settings = parse_record(reader.text());
  if (!settings) return std::unexpected(settings.error());
  const auto* created =
      settings->facts.size() == 1 ? std::get_if<QueueCreated>(&settings->facts.front()) : nullptr;
  if (created == nullptr || created->queue != id) return makes_no_sense("a queue");
  auto queue = std::make_unique<Queue>(id, created->ref, created->attributes, created->tags,
                                       from_millis(reader.i64()), memory);
  queue->modified_ = settings->at;
  queue->next_seq_ = Seq(reader.u64());
  queue->first_unpurged_ = Seq(reader.u64());
  const Instant purged = from_millis(reader.i64());
  if (purged != Instant()) queue->last_purge_ = purged;
  queue->saved_incarnation_ = reader.u32();
  queue->stock_ =
      std::make_unique<Stock>(StockName{id, queue->saved_incarnation_}, queue->fifo(), memory);
  for (std::size_t left = reader.count(); left > 0; --left)
    queue->tasks.push_back(read_task(reader));
  queue->activity = read_activity(reader);
  if (!reader.ok() || !reader.at_end() || !queue->is_possible()) return makes_no_sense("a queue");
  queue->saved_ = true;
  return queue;
}

void Queue::add_to(Holdings& holdings) const {
  stock_->add_to(holdings);
  if (fifo_memory_) holdings.deduplication_ids += fifo_memory_->deduplication.size();
}

Status Queue::load_originals(std::string_view key, std::string_view value, Instant at) {
  if (!fifo_memory_) return makes_no_sense("a deduplication id");
  const Status status = fifo_memory_->deduplication.load(stock_->name(), key, value, next_seq_, at);
  fifo_memory_->count();
  return status;
}

Status Queue::load_attempt(std::string_view key, std::string_view value) {
  if (!fifo_memory_) return makes_no_sense("a receive attempt");
  const Status status = fifo_memory_->attempts.load(stock_->name(), key, value, next_seq_);
  fifo_memory_->count();
  return status;
}

Status Queue::loaded(Instant at) {
  return stock_->loaded(first_unpurged_, next_seq_, at);
}

}  // namespace stanchion::engine
