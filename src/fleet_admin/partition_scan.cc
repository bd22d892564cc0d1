#include "fleet_admin/partition_scan.h"

#include <fmt/format.h>

#include <chrono>

namespace stanchion::fleet_admin {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using kafka::PartitionReader;

// Kafka that shows nothing for so long will not.
constexpr auto kPatience = 30s;
constexpr auto kStep = 100ms;

}  // namespace

Status scan_partition(kafka::KafkaConnection& connection, const kafka::Partition& partition,
                      const std::function<void(const LogRange&)>& begin,
                      const std::function<bool(const PartitionReader&)>& visit) {
  const auto range = connection.range_of(partition, kPatience);
  if (!range) return std::unexpected(range.error());
  begin(*range);
  if (range->first >= range->end) return {};
  auto reader = connection.read(partition, range->first);
  if (!reader) return std::unexpected(reader.error());
  for (auto heard = Clock::now(); Clock::now() - heard < kPatience;) {
    const auto got = (*reader)->next(kStep);
    if (!got) return std::unexpected(got.error());
    switch (*got) {
      case PartitionReader::Got::kNothing:
        continue;
      case PartitionReader::Got::kTrimmed:
        return fail(fmt::format("{} was trimmed while it was read: try again", partition.text()));
      case PartitionReader::Got::kEnd:
        // In a compacted log the last entries may be missing.
        if ((*reader)->end() >= range->end) return {};
        continue;
      case PartitionReader::Got::kEntry:
        break;
    }
    heard = Clock::now();
    if ((*reader)->offset() >= range->end || !visit(**reader)) return {};
    if ((*reader)->offset().next() >= range->end) return {};
  }
  return fail(fmt::format("Kafka does not return all of {}: {}", partition.text(),
                          connection.last_error()));
}

}  // namespace stanchion::fleet_admin
