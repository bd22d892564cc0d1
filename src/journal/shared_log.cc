#include "journal/shared_log.h"

#include "base/check.h"
#include "base/digest.h"

namespace stanchion::journal {

LogDigest extended(LogDigest digest, std::string_view record) {
  return LogDigest(xxh3_64(record, digest.value()));
}

bool LogReader::has_the_same_past(const LogEntry& entry) {
  if (!entry.before) return !digest_ || entry.kind == LogEntryKind::kClaim;
  if (!digest_) digest_ = entry.before;
  return digest_ == entry.before;
}

LogReader::Verdict LogReader::judge(const LogEntry& entry) {
  switch (entry.kind) {
    case LogEntryKind::kClaim:
      if (entry.epoch <= epoch_) return Verdict::kVoid;
      // Whoever has read other records must not own the log; nobody else has to stop for that.
      if (entry.first == next_ && !has_the_same_past(entry)) return Verdict::kVoid;
      epoch_ = entry.epoch;
      claimed_at_ = next_;
      return Verdict::kClaim;
    case LogEntryKind::kBarrier:
      return Verdict::kVoid;
    case LogEntryKind::kRecords:
      if (entry.epoch < epoch_) return Verdict::kVoid;
      if (entry.epoch > epoch_) return Verdict::kDamaged;
      if (entry.first < claimed_at_) return Verdict::kOtherPast;
      if (entry.first < next_) return Verdict::kDuplicate;
      if (entry.first > next_) return Verdict::kDamaged;
      if (!has_the_same_past(entry)) return Verdict::kOtherPast;
      next_ = Position(next_.value() + entry.count);
      return Verdict::kRecords;
  }
  check_failed("kind", "a log entry has a kind", std::source_location::current());
}

void LogWriter::take_own(LogOffset own) {
  CHECK(follows(own), "an entry counts only when all before it are known");
  known_ = own;
}

bool LogWriter::look_at(const LogEntry& entry) {
  known_ = known_.next();
  return entry.kind != LogEntryKind::kClaim || entry.epoch <= epoch_;
}

}  // namespace stanchion::journal
