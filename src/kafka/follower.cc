#include "kafka/follower.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

using journal::DecodedLogEntry;
using journal::LogEntryKind;
using journal::LogOffset;
using journal::LogReader;

namespace {

std::string place(const ShardLog& log, LogOffset at) {
  return "the entry at offset " + std::to_string(at.value()) + " of Kafka's partition " +
         log.partition.text();
}

}  // namespace

Result<std::optional<DecodedLogEntry>> read_entry(const ShardLog& log, LogOffset at,
                                                  std::string_view bytes) {
  if (!journal::looks_like_log_entry(bytes)) return std::optional<DecodedLogEntry>();
  auto entry = journal::decode_log_entry(bytes);
  if (!entry) return fail(place(log, at) + " " + entry.error().message);
  if (entry->from.fleet != log.fleet)
    return fail(place(log, at) + " belongs to another fleet: give this one a name of its own");
  if (entry->from.shard != log.shard)
    return fail(place(log, at) + " belongs to shard " + std::to_string(entry->from.shard.value()) +
                ", not to shard " + std::to_string(log.shard.value()));
  return std::optional(*entry);
}

Result<std::unique_ptr<KafkaFollower>> KafkaFollower::open(KafkaConnection& connection,
                                                           const ShardLog& log) {
  auto reader = connection.read(log.partition, std::nullopt);
  if (!reader) return std::unexpected(reader.error());
  return std::unique_ptr<KafkaFollower>(new KafkaFollower(connection, log, std::move(*reader)));
}

Result<KafkaFollower::Progress> KafkaFollower::step(const journal::RecordVisitor& visit,
                                                    std::chrono::milliseconds timeout) {
  const auto got = reader_->next(timeout);
  if (!got) return std::unexpected(got.error());
  switch (*got) {
    case PartitionReader::Got::kEntry:
      RETURN_IF_FAILED(take(visit));
      return Progress::kEntry;
    case PartitionReader::Got::kEnd:
      return Progress::kEnd;
    case PartitionReader::Got::kNothing:
      return Progress::kNothing;
    case PartitionReader::Got::kTrimmed:
      if (!judge_) {
        RETURN_IF_FAILED(begin_anew());
        return Progress::kNothing;
      }
      trimmed_ = true;
      return fail("Kafka's partition " + log_.partition.text() +
                  " was trimmed faster than it was read: copy the store of another replica");
  }
  check_failed("got", "a reading has an outcome", std::source_location::current());
}

// The log was trimmed between the question where it begins and the reading.
Status KafkaFollower::begin_anew() {
  reader_.reset();  // A partition has one reader at a time.
  auto reader = connection_.read(log_.partition, std::nullopt);
  if (!reader) return std::unexpected(reader.error());
  reader_ = std::move(*reader);
  if (ready_) reader_->when_ready(ready_);
  return {};
}

void KafkaFollower::when_ready(std::function<void()> ready) {
  ready_ = std::move(ready);
  reader_->when_ready(ready_);
}

Result<bool> KafkaFollower::catch_up(const journal::RecordVisitor& visit, std::size_t entries_max) {
  for (std::size_t entries = 0; entries < entries_max;) {
    const auto progress = step(visit, std::chrono::milliseconds(0));
    if (!progress) return std::unexpected(progress.error());
    if (*progress == Progress::kNothing) return true;
    if (*progress == Progress::kEntry) ++entries;
  }
  return false;
}

std::optional<Position> KafkaFollower::next() const {
  if (!judge_) return std::nullopt;
  return judge_->next();
}

// KF1.
Status KafkaFollower::begin(const DecodedLogEntry* entry) {
  if (offset_ == LogOffset()) {
    judge_.emplace();
    return {};
  }
  if (entry == nullptr || entry->head.kind != LogEntryKind::kRecords)
    return fail("Kafka's partition " + log_.partition.text() + " begins at offset " +
                std::to_string(offset_.value()) +
                " without records: somebody else has removed entries from it. Its topic must "
                "have retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete");
  judge_.emplace(entry->head.first, entry->head.epoch);
  return {};
}

Status KafkaFollower::take(const journal::RecordVisitor& visit) {
  offset_ = reader_->offset();
  verdict_ = LogReader::Verdict::kVoid;
  writer_ = 0;
  const auto entry = read_entry(log_, offset_, reader_->bytes());
  if (!entry) return std::unexpected(entry.error());
  if (!judge_) RETURN_IF_FAILED(begin(*entry ? &**entry : nullptr));
  if (!*entry) return {};
  writer_ = (*entry)->from.writer;
  verdict_ = judge_->judge((*entry)->head);
  switch (verdict_) {
    case LogReader::Verdict::kRecords:
      index_.note((*entry)->head.first, offset_);
      return journal::visit_records(**entry, visit);
    case LogReader::Verdict::kClaim:
      claimed_by_ = (*entry)->from.node;
      return {};
    case LogReader::Verdict::kVoid:
    case LogReader::Verdict::kDuplicate:
      return {};
    case LogReader::Verdict::kDamaged:
      return fail(place(log_, offset_) + " begins with the record " +
                  std::to_string((*entry)->head.first.value()) + ", but the next one is " +
                  std::to_string(judge_->next().value()) + ": records are missing before it");
  }
  check_failed("verdict", "an entry is judged", std::source_location::current());
}

}  // namespace stanchion::kafka
