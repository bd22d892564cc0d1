// Looks at the logs of a fleet entry by entry, by the rules that its nodes follow. Only reads, and
// ends where the log ended when it began, so that it ends also while nodes write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "fleet/control_record.h"
#include "fleet_admin/partition_scan.h"
#include "journal/log_entry.h"
#include "kafka/connection.h"
#include "kafka/log_judge.h"

namespace stanchion::fleet_admin {

enum class LogFinding { kValid, kVoid, kDuplicate, kDamaged };

struct InspectedEntry {
  journal::LogOffset offset;
  Instant at{};  // When it was appended, by Kafka's clock.
  std::size_t size = 0;
  LogFinding finding = LogFinding::kVoid;
  std::string why;          // It is void or damaged.
  bool unreadable = false;  // It is damaged in itself, or missing: not what stands before it.
  // None: the bytes are none, or cannot be read. Valid until the visitor returns.
  std::optional<journal::DecodedLogEntry> entry;
};

struct LogSummary {
  struct Claim {
    journal::LogOffset offset;
    journal::Epoch epoch;
    std::uint32_t node = 0;
    Instant at{};
  };

  std::uint64_t valid = 0;  // Of which some are claims, and some barriers.
  std::uint64_t claims = 0;
  std::uint64_t barriers = 0;
  std::uint64_t voids = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t damaged = 0;
  std::uint64_t records = 0;  // Of the valid entries.
  std::optional<Position> first_record;
  Position last_record;
  std::optional<Claim> last_claim;  // That is valid.

  void count(const InspectedEntry& entry);
};

// Judges one entry after the other and says why. Damage is reported, and what comes after it is
// judged as far as that is possible: nodes would stop there.
class LogInspector {
 public:
  explicit LogInspector(kafka::ShardLog log) : judge_(std::move(log)) {}

  InspectedEntry inspect(journal::LogOffset at, std::string_view bytes, std::string_view key = {});

  // The log ends at this offset: the first one that is missing before it, if one is.
  std::optional<InspectedEntry> finish(journal::LogOffset end) const;

 private:
  kafka::LogJudge judge_;
  std::set<journal::Epoch> void_claims_;  // Of those who had read other records.
};

// `begin` is told the range, then `visit` all entries in order, and at last what is missing at the end.
// A failure means that Kafka does not show the rest. The connection must not verify batches, as those of
// nodes do not: what they read is shown.
Status inspect_shard_log(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                         const std::function<void(const LogRange&)>& begin,
                         const std::function<void(const InspectedEntry&)>& visit);

// Whether nodes stop at this offset: the entry there cannot be read, or there is none although the log
// goes on. Fails if it is the first one, without which the others cannot be read.
Result<bool> nodes_stop_at(kafka::KafkaConnection& connection, const kafka::ShardLog& log,
                           journal::LogOffset offset);

struct InspectedControl {
  journal::LogOffset offset;
  Instant at{};
  // None: it is of a kind or a format of a later release, or damaged: see the problem.
  std::optional<fleet::ControlRecord> record;
  std::string problem;
};

// The same for the control log. `connection` must not read that log otherwise.
Status inspect_control_log(kafka::KafkaConnection& connection, const std::string& fleet,
                           const std::function<void(const LogRange&)>& begin,
                           const std::function<void(const InspectedControl&)>& visit);

}  // namespace stanchion::fleet_admin
