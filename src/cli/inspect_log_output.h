// How `stanchion inspect --shard` and `--control` print what they find: as text for people, or as one
// JSON document, whose fields docs/operations.md lists. inspect_log.cc decides what is looked at.
//
//   begin ─▶ entry … ─▶ end          begin ─▶ control … ─▶ end_control
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "fleet_admin/log_inspection.h"
#include "kafka/settings.h"

namespace stanchion::cli {

class InspectLogOutput {
 public:
  virtual ~InspectLogOutput() = default;

  virtual void begin(std::string_view fleet, const kafka::Partition& partition,
                     const fleet_admin::LogRange& range) = 0;
  virtual void entry(const fleet_admin::InspectedEntry& entry, std::string_view node) = 0;
  // `complete`: everything was shown that there was when the inspection began.
  virtual void end(const fleet_admin::LogSummary& summary, std::string_view claimed_by,
                   bool complete) = 0;
  virtual void control(const fleet_admin::InspectedControl& found) = 0;
  virtual void end_control(std::uint64_t records, std::uint64_t damaged, bool complete) = 0;
};

// Both write to standard output. `facts`: also those of the entries.
std::unique_ptr<InspectLogOutput> inspect_log_as_text(bool facts);
std::unique_ptr<InspectLogOutput> inspect_log_as_json(bool facts);

}  // namespace stanchion::cli
