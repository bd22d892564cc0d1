#include "cli/inspect_log.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "cli/inspect_log_output.h"
#include "fleet_admin/fleet_admin.h"
#include "fleet_admin/topics.h"
#include "kafka/admin.h"

namespace stanchion::cli {
namespace {

// Which of the entries are printed.
class Window {
 public:
  explicit Window(const InspectLogSettings& settings)
      : from_(settings.from), left_(settings.limit) {}

  bool shows(journal::LogOffset offset) {
    if (offset.value() < from_ || left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  std::uint64_t from_;
  std::uint64_t left_;
};

// Entries name their nodes by numbers; those of nodes that were forgotten stay numbers.
class NodeNames {
 public:
  explicit NodeNames(const fleet::ControlState& state) {
    for (const auto& [name, node] : state.nodes()) names_[fleet_admin::node_number(name)] = name;
  }

  std::string of(std::uint32_t number) const {
    const auto found = names_.find(number);
    return found == names_.end() ? fmt::format("node {:08x}", number) : found->second;
  }

 private:
  std::map<std::uint32_t, std::string> names_;
};

int inspect_shard(const InspectLogSettings& settings, const FleetTarget& target,
                  InspectLogOutput& output) {
  const auto admin = fleet_admin::FleetAdmin::open(target.kafka, target.name);
  if (!admin) return give_up(admin.error().message, kExitSettings);
  if (const Status read = (*admin)->read(); !read)
    return give_up(read.error().message, kExitFailed);
  const fleet::FleetMetadata& metadata = (*admin)->metadata();
  const ShardIndex shard(*settings.shard);
  if (shard.value() >= metadata.shards)
    return give_up(
        fmt::format("there is no shard {}; shards are 0 to {}", shard.value(), metadata.shards - 1),
        kExitSettings);
  const NodeNames names((*admin)->state());
  const kafka::ShardLog log{
      .partition = fleet_admin::log_partition(target.name, shard),
      .fleet = metadata.id,
      .shard = shard,
      .is_skipped = [skipped = (*admin)->state().shard(shard).skipped](journal::LogOffset offset) {
        return skipped.contains(offset.value());
      }};
  Window window(settings);
  fleet_admin::LogSummary summary;
  bool begun = false;
  const Status read = fleet_admin::inspect_shard_log(
      (*admin)->connection(), log,
      [&](const fleet_admin::LogRange& range) {
        begun = true;
        output.begin(target.name, log.partition, range);
      },
      [&](const fleet_admin::InspectedEntry& found) {
        summary.count(found);
        if (window.shows(found.offset))
          output.entry(found, found.entry ? names.of(found.entry->from.node) : "");
      });
  if (begun)
    output.end(summary, summary.last_claim ? names.of(summary.last_claim->node) : "",
               read.has_value());
  if (!read) return give_up(read.error().message, kExitFailed);
  return summary.damaged == 0 ? kExitOk : kExitFailed;
}

int inspect_control(const InspectLogSettings& settings, const FleetTarget& target,
                    InspectLogOutput& output) {
  const auto connection = kafka::KafkaConnection::open(target.kafka);
  if (!connection) return give_up(connection.error().message, kExitSettings);
  const auto partitions =
      kafka::KafkaAdmin(**connection).partitions_of(fleet_admin::control_topic(target.name));
  if (!partitions) return give_up(partitions.error().message, kExitFailed);
  if (!*partitions)
    return give_up(fmt::format("there is no fleet {} at {}", target.name, target.kafka.brokers),
                   kExitFailed);
  Window window(settings);
  std::uint64_t records = 0, damaged = 0;
  bool begun = false;
  const Status read = fleet_admin::inspect_control_log(
      **connection, target.name,
      [&](const fleet_admin::LogRange& range) {
        begun = true;
        output.begin(target.name, fleet_admin::control_partition(target.name), range);
      },
      [&](const fleet_admin::InspectedControl& found) {
        ++(found.problem.empty() ? records : damaged);
        if (window.shows(found.offset)) output.control(found);
      });
  if (begun) output.end_control(records, damaged, read.has_value());
  if (!read) return give_up(read.error().message, kExitFailed);
  return damaged == 0 ? kExitOk : kExitFailed;
}

}  // namespace

int inspect_log(const InspectLogSettings& settings) {
  const auto target = find_fleet(settings.fleet);
  if (!target) return give_up(target.error().message, kExitSettings);
  const auto output =
      settings.json ? inspect_log_as_json(settings.facts) : inspect_log_as_text(settings.facts);
  return settings.shard ? inspect_shard(settings, *target, *output)
                        : inspect_control(settings, *target, *output);
}

}  // namespace stanchion::cli
