#include "sim/shared_log_journal.h"

#include <utility>

#include "base/check.h"

namespace stanchion::sim {

using journal::LogEntryKind;
using journal::LogOffset;
using journal::LogReader;

SharedLogJournal::SharedLogJournal(World& world, Owner owner, SharedLog& log, SharedLogRules rules)
    : world_(world), owner_(owner), log_(log), rules_(rules), random_(world.random().fork()) {
  LogReader reader;
  for (LogOffset at; at < log_.end(); at = at.next()) reader.judge(log_.at(at).head);
  epoch_ = reader.epoch().next();
  claim_ = log_.append({{.kind = LogEntryKind::kClaim, .epoch = epoch_, .first = {}}, {}});
  writer_.emplace(epoch_, claim_);
}

Status SharedLogJournal::replay(Position from, const journal::RecordVisitor& visit) {
  CHECK(from == Position(1), "there is no checkpoint here");
  LogReader reader;
  const std::uint64_t end = rules_.reads_to_claim ? claim_.value() : claim_.value() * 3 / 4;
  for (LogOffset at; at.value() < end; at = at.next()) {
    const SharedLog::Entry& entry = log_.at(at);
    LogReader::Verdict verdict = reader.judge(entry.head);
    const bool of_others = verdict == LogReader::Verdict::kVoid && !entry.records.empty();
    if (of_others && !rules_.skips_void) verdict = LogReader::Verdict::kRecords;
    if (verdict == LogReader::Verdict::kDamaged) return fail("the log has a hole");
    if (verdict != LogReader::Verdict::kRecords) continue;
    for (const std::string& record : entry.records) {
      RETURN_IF_FAILED(visit(next_, record));
      next_ = next_.next();
    }
  }
  durable_ = Position(next_.value() - 1);
  return {};
}

Position SharedLogJournal::append(std::string_view record) {
  pending_.emplace_back(record);
  return std::exchange(next_, next_.next());
}

void SharedLogJournal::flush() {
  if (superseded_) return;
  const std::uint64_t count = pending_.size();
  SharedLog::Entry entry{{.kind = count > 0 ? LogEntryKind::kRecords : LogEntryKind::kBarrier,
                          .epoch = epoch_,
                          .first = Position(next_.value() - count),
                          .count = count},
                         std::exchange(pending_, {})};
  // On their way entries are not overtaken by later ones of the same writer.
  arrives_at_ = std::max(arrives_at_ + 1,
                         world_.now() + delay_ + random_.between<Micros>(1, 2 * kMillisecond));
  world_.schedule(arrives_at_ - world_.now(), kWorldOwner,
                  [this, entry = std::move(entry), number = ++sent_]() mutable {
                    arrive(std::move(entry), number);
                  });
}

void SharedLogJournal::arrive(SharedLog::Entry entry, std::uint64_t number) {
  const Position last(entry.head.first.value() + entry.head.count - 1);
  const LogOffset at = log_.append(std::move(entry));
  acknowledged_at_ =
      std::max(acknowledged_at_ + 1, world_.now() + random_.between<Micros>(1, 2 * kMillisecond));
  world_.schedule(acknowledged_at_ - world_.now(), owner_,
                  [this, at, number, last] { acknowledged(at, number, last); });
}

// Whether all entries up to one's own are known, and none is a later claim.
bool SharedLogJournal::look_at_gap(LogOffset own) {
  if (!rules_.continuity) return true;
  while (!writer_->follows(own))
    if (!writer_->look_at(log_.at(writer_->gap()).head)) return false;
  writer_->take_own(own);
  return true;
}

void SharedLogJournal::acknowledged(LogOffset at, std::uint64_t number, Position last) {
  if (superseded_) return;
  if (!look_at_gap(at)) {
    superseded_ = true;
    return events_.superseded();
  }
  proven_ = journal::Proof(number);
  events_.proven();
  if (last <= durable_) return;
  durable_ = last;
  events_.durable(last);
}

}  // namespace stanchion::sim
