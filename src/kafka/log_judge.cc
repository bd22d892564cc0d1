#include "kafka/log_judge.h"

#include <algorithm>

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

Result<DecodedLogEntry> read_whole(const ShardLog& log, LogOffset at, std::string_view bytes) {
  auto entry = journal::decode_log_entry(bytes);
  if (!entry) return fail(place(log, at) + " " + entry.error().message);
  if (entry->from.fleet != log.fleet)
    return fail(place(log, at) + " belongs to another fleet: give this one a name of its own");
  if (entry->from.shard != log.shard)
    return fail(place(log, at) + " belongs to shard " + std::to_string(entry->from.shard.value()) +
                ", not to shard " + std::to_string(log.shard.value()));
  return *entry;
}

}  // namespace

Result<std::optional<DecodedLogEntry>> read_entry(const ShardLog& log, LogOffset at,
                                                  std::string_view bytes, std::string_view key) {
  if (!journal::may_be_log_entry(key, bytes)) return std::optional<DecodedLogEntry>();
  const auto entry = read_whole(log, at, bytes);
  if (entry) return std::optional(*entry);
  if (log.is_skipped && log.is_skipped(at)) return std::optional<DecodedLogEntry>();
  return std::unexpected(entry.error());
}

Status check_offset(const ShardLog& log, LogOffset expected, LogOffset at) {
  if (at < expected)
    return fail(place(log, at) +
                " was read twice: the copy of the log on the broker that leads is damaged");
  while (expected < at && log.is_skipped && log.is_skipped(expected)) expected = expected.next();
  if (expected == at) return {};
  return fail(
      place(log, expected) +
      " is missing: the copy of the log on the broker that leads is damaged, or somebody else "
      "has written a transaction to it");
}

LogJudge::Judged LogJudge::judge(LogOffset at, std::string_view bytes, std::string_view key) {
  Judged judged;
  const auto damaged = [&](std::string why) {
    judged.verdict = LogReader::Verdict::kDamaged;
    judged.problem = std::move(why);
    return judged;
  };
  const Status follows = reader_ ? check_offset(log_, expected_, at) : Status();
  expected_ = at.next();
  const auto entry = read_entry(log_, at, bytes, key);
  if (at == LogOffset() && !reader_) reader_.emplace(first_of(entry));
  if (!entry) return damaged(entry.error().message);
  if (*entry && (*entry)->is_of_later_version) {
    judged.too_new = true;
    return damaged(place(log_, at) + " was written by a newer release: this one reads version " +
                   std::to_string(journal::kLogEntryVersion));
  }
  judged.entry = *entry;
  if (!follows) {
    judged.missing = true;
    return damaged(follows.error().message);
  }
  if (!reader_)
    if (std::string why = begin(at, *entry ? &**entry : nullptr); !why.empty())
      return damaged(std::move(why));
  if (!judged.entry) return judged;
  const Position next = reader_->next();
  const journal::Epoch epoch = reader_->epoch();
  judged.verdict = reader_->judge(judged.entry->head);
  if (judged.verdict == LogReader::Verdict::kDamaged && judged.entry->head.epoch > epoch)
    return damaged(place(log_, at) + " is by an owner of epoch " +
                   std::to_string(judged.entry->head.epoch.value()) +
                   ", whose claim is missing before it; the last one is of epoch " +
                   std::to_string(epoch.value()));
  if (judged.verdict == LogReader::Verdict::kDamaged)
    return damaged(place(log_, at) + " begins with the record " +
                   std::to_string(judged.entry->head.first.value()) + ", but the next one is " +
                   std::to_string(next.value()) + ": records are missing before it");
  if (judged.verdict == LogReader::Verdict::kOtherPast && !judged.entry->head.before &&
      judged.entry->head.first == next)
    return damaged(place(log_, at) + ", by node " + std::to_string(judged.entry->from.node) +
                   ", says no digest of the records before " + std::to_string(next.value()) +
                   ", although those say one: its writer cannot have read them");
  if (judged.verdict == LogReader::Verdict::kOtherPast)
    return damaged(place(log_, at) + ", by node " + std::to_string(judged.entry->from.node) +
                   ", was written by one that had read other records before " +
                   std::to_string(next.value()) + " than those that are in the log");
  return judged;
}

// KF3.
Position LogJudge::first_of(const Result<std::optional<DecodedLogEntry>>& entry) {
  const bool is_claim = entry && *entry && !(*entry)->is_of_later_version &&
                        (*entry)->head.kind == LogEntryKind::kClaim;
  return is_claim ? (*entry)->head.first : Position(1);
}

// KF1.
std::string LogJudge::begin(LogOffset at, const DecodedLogEntry* entry) {
  if (entry == nullptr || entry->head.kind != LogEntryKind::kRecords)
    return "Kafka's partition " + log_.partition.text() + " begins at offset " +
           std::to_string(at.value()) +
           " without records: somebody else has removed entries from it. Its topic must have "
           "retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete";
  reader_.emplace(entry->head.first, entry->head.epoch);
  return "";
}

Status LogJudge::check_end(LogOffset end) const {
  return reader_ && expected_ < end ? check_offset(log_, expected_, end) : Status();
}

LogOffset LogJudge::expected() const {
  LogOffset at = expected_;
  while (log_.is_skipped && log_.is_skipped(at)) at = at.next();
  return at;
}

void LogJudge::go_on_behind(const Judged& damaged) {
  if (!damaged.entry || damaged.too_new) return;
  const journal::LogEntry& head = damaged.entry->head;
  if (head.kind == LogEntryKind::kRecords)
    reader_.emplace(Position(head.first.value() + head.count), head.epoch);
  // Who claimed the log may not have read all of it yet.
  if (head.kind == LogEntryKind::kClaim && reader_ && head.epoch > epoch())
    reader_.emplace(std::max(reader_->next(), head.first), head.epoch);
}

}  // namespace stanchion::kafka
