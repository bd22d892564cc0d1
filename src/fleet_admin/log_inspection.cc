#include "fleet_admin/log_inspection.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "fleet/control_codec.h"
#include "fleet_admin/topics.h"

namespace stanchion::fleet_admin {
namespace {

using journal::LogEntryKind;
using journal::LogReader;
using kafka::PartitionReader;

std::string why_void(const journal::LogEntry& head, journal::Epoch owner) {
  if (head.kind == LogEntryKind::kClaim && head.epoch > owner)
    return "its writer had read other records than those that are in the log";
  if (head.kind == LogEntryKind::kClaim)
    return fmt::format("epoch {} had claimed the log before", owner.value());
  if (owner == journal::Epoch()) return "nobody had claimed the log";
  if (head.epoch > owner) return fmt::format("epoch {} has made no claim", head.epoch.value());
  return fmt::format("the log belongs to epoch {}", owner.value());
}

}  // namespace

InspectedEntry LogInspector::inspect(journal::LogOffset at, std::string_view bytes,
                                     std::string_view key) {
  const journal::Epoch owner = judge_.epoch();
  kafka::LogJudge::Judged judged = judge_.judge(at, bytes, key);
  InspectedEntry found{.offset = at, .size = bytes.size(), .why = {}, .entry = judged.entry};
  switch (judged.verdict) {
    case LogReader::Verdict::kRecords:
      static_cast<void>(
          journal::visit_records(*judged.entry, [&](Position, std::string_view record) {
            judge_.pass(record);
            return Status();
          }));
      [[fallthrough]];
    case LogReader::Verdict::kClaim:
      void_claims_.erase(judged.entry->head.epoch);
      found.finding = LogFinding::kValid;
      break;
    case LogReader::Verdict::kDuplicate:
      found.finding = LogFinding::kDuplicate;
      break;
    case LogReader::Verdict::kVoid:
      if (!judged.entry && journal::may_be_log_entry(key, bytes)) {
        found.why = "an operator has skipped it";
      } else if (!judged.entry) {
        found.why = "it is not an entry of a shard's log";
      } else if (judged.entry->head.kind == LogEntryKind::kBarrier &&
                 judged.entry->head.epoch == owner) {
        // It has no effect by its nature.
        found.finding = LogFinding::kValid;
      } else {
        found.why = why_void(judged.entry->head, owner);
        if (judged.entry->head.kind == LogEntryKind::kClaim && judged.entry->head.epoch > owner)
          void_claims_.insert(judged.entry->head.epoch);
      }
      break;
    case LogReader::Verdict::kDamaged:
    case LogReader::Verdict::kOtherPast:
      found.finding = LogFinding::kDamaged;
      found.unreadable = !judged.entry && !judged.too_new && !judged.missing;
      // For all nodes the log still belongs to the owner before a void claim.
      if (!judged.entry || !void_claims_.contains(judged.entry->head.epoch))
        judge_.go_on_behind(judged);
      found.why = std::move(judged.problem);
      break;
  }
  return found;
}

std::optional<InspectedEntry> LogInspector::finish(journal::LogOffset end) const {
  Status whole = judge_.check_end(end);
  if (whole) return std::nullopt;
  return InspectedEntry{.offset = judge_.expected(),
                        .finding = LogFinding::kDamaged,
                        .why = std::move(whole).error().message,
                        .unreadable = true,
                        .entry = {}};
}

void LogSummary::count(const InspectedEntry& found) {
  switch (found.finding) {
    case LogFinding::kVoid:
      ++voids;
      return;
    case LogFinding::kDuplicate:
      ++duplicates;
      return;
    case LogFinding::kDamaged:
      ++damaged;
      return;
    case LogFinding::kValid:
      break;
  }
  ++valid;
  const journal::LogEntry& head = found.entry->head;
  if (head.kind == LogEntryKind::kBarrier) ++barriers;
  if (head.kind == LogEntryKind::kClaim) {
    ++claims;
    last_claim = Claim{found.offset, head.epoch, found.entry->from.node, found.at};
  }
  if (head.kind != LogEntryKind::kRecords) return;
  records += head.count;
  if (!first_record) first_record = head.first;
  last_record = Position(head.first.value() + head.count - 1);
}

Status inspect_shard_log(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                         const std::function<void(const LogRange&)>& begin,
                         const std::function<void(const InspectedEntry&)>& visit) {
  LogInspector inspector(log);
  LogRange range;
  RETURN_IF_FAILED(scan_partition(
      connection, log.partition,
      [&](const LogRange& there) {
        range = there;
        begin(range);
      },
      [&](const PartitionReader& reader) {
        InspectedEntry found = inspector.inspect(reader.offset(), reader.bytes(), reader.key());
        found.at = from_millis(reader.timestamp_millis());
        visit(found);
        return true;
      }));
  if (const auto missing = inspector.finish(range.end)) visit(*missing);
  return {};
}

Result<bool> nodes_stop_at(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                           journal::LogOffset offset) {
  LogRange there;
  std::optional<bool> stop;  // None: nothing was shown from the offset on.
  RETURN_IF_FAILED(inspect_shard_log(
      connection, log, [&](const LogRange& range) { there = range; },
      [&](const InspectedEntry& found) {
        if (stop || found.offset < offset) return;
        stop = found.unreadable || found.offset > offset;
      }));
  if (offset != journal::LogOffset() && offset == there.first)
    return fail(
        "it is the first entry that the log still has, and the others cannot be read without it: "
        "see docs/fleet.md");
  if (offset < there.first || offset >= there.end) return false;
  return stop.value_or(true);
}

Status inspect_control_log(kafka::KafkaConnection& connection, const std::string& fleet,
                           const std::function<void(const LogRange&)>& begin,
                           const std::function<void(const InspectedControl&)>& visit) {
  const auto pass_on = [&](const PartitionReader& reader) {
    // What only has a key removes the records that have it.
    if (reader.bytes().empty()) return true;
    InspectedControl found{reader.offset(), from_millis(reader.timestamp_millis()), {}, {}};
    auto record = fleet::decode_control(reader.bytes());
    if (record) {
      found.record = std::move(*record);
    } else {
      found.problem = record.error().message;
    }
    visit(found);
    return true;
  };
  return scan_partition(connection, control_partition(fleet), begin, pass_on);
}

}  // namespace stanchion::fleet_admin
