#include "fleet_admin/used_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>

#include "fleet_admin/partition_scan.h"
#include "journal/log_entry.h"
#include "model/fact.h"

namespace stanchion::fleet_admin {
namespace {

using journal::LogEntryKind;
using journal::LogOffset;

constexpr std::chrono::seconds kPatience(60);
constexpr journal::Epoch kFirstEpoch(1);

Status refuse(const kafka::Partition& partition, std::string_view why) {
  return fail(fmt::format(
      "Kafka's partition {} may have acknowledged messages: {}. Nothing there is overwritten: "
      "choose another name. If the fleet's control topic is lost, stop all nodes and run "
      "`stanchion fleet rebuild` with another name and the directories of all nodes, which also "
      "uses the records in {}",
      partition.text(), why, partition.topic));
}

std::string why_removed(LogOffset end) {
  return fmt::format("it had {} entries, and somebody has removed them", end.value());
}

// A filling adds such records itself: what time it is, and how transfers go on (RB3).
bool is_fillings_own(const Record& record) {
  return std::ranges::all_of(record.facts, [](const Fact& fact) {
    return std::holds_alternative<TransfersResumed>(fact) ||
           std::holds_alternative<TransferRefused>(fact);
  });
}

// UL2: why the entry is not of a filling; empty: it is. `brought`: the last record that a filling has
// from elsewhere.
std::string why_not_of_filling(const kafka::ShardLog& log, std::string_view bytes,
                               Position& brought) {
  const auto entry = journal::decode_log_entry(bytes);
  if (!entry) return entry.error().message;
  if (entry->is_of_later_version) return "was written by a newer release";
  if (entry->from.fleet != log.fleet) return "belongs to another fleet";
  if (entry->from.shard != log.shard) return "belongs to another shard";
  if (entry->head.epoch != kFirstEpoch || entry->from.node != log.node ||
      entry->head.kind == LogEntryKind::kBarrier)
    return fmt::format("was written by a node, in epoch {}", entry->head.epoch.value());
  const Status visited =
      journal::visit_records(*entry, [&](Position at, std::string_view bytes_of_record) -> Status {
        const auto record = parse_record(bytes_of_record);
        if (!record) return std::unexpected(record.error());
        if (!is_fillings_own(*record)) brought = std::max(brought, at);
        return {};
      });
  return visited ? "" : "has a record that cannot be read: " + visited.error().message;
}

}  // namespace

Status refuse_log_with_entries(kafka::KafkaConnection& connection,
                               const kafka::Partition& partition) {
  const auto range = connection.range_of(partition, kPatience);
  if (!range) return std::unexpected(range.error());
  if (range->end == LogOffset()) return {};
  if (range->first == range->end) return refuse(partition, why_removed(range->end));
  return refuse(partition, fmt::format("it has the entries from offset {} to {}",
                                       range->first.value(), range->end.value() - 1));
}

Status refuse_used_log(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                       Position last, std::optional<LogOffset> before) {
  LogOffset removed;
  LogOffset end;
  LogOffset offset;  // Of what was read last, or comes next.
  std::string why;
  Position brought;
  RETURN_IF_FAILED(scan_partition(
      connection, log.partition,
      [&](const LogRange& range) {
        if (range.first >= range.end) removed = range.end;
        offset = range.first;
        end = before ? std::min(*before, range.end) : range.end;
      },
      [&](const kafka::PartitionReader& reader) {
        if (offset >= end) return false;
        if (reader.offset() != offset) return false;
        why = why_not_of_filling(log, reader.bytes(), brought);
        if (why.empty()) offset = offset.next();
        return why.empty();
      }));
  if (removed != LogOffset()) return refuse(log.partition, why_removed(removed));
  if (why.empty() && offset < end) why = "cannot be read";
  if (!why.empty())
    return refuse(log.partition, fmt::format("the entry at offset {} {}", offset.value(), why));
  if (brought > last)
    return refuse(log.partition,
                  fmt::format("it has the records up to {}, and what is to replace it only those "
                              "up to {}",
                              brought.value(), last.value()));
  return {};
}

}  // namespace stanchion::fleet_admin
