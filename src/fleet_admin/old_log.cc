#include "fleet_admin/old_log.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "fleet_admin/partition_scan.h"
#include "fleet_admin/topics.h"
#include "journal/log_entry.h"
#include "kafka/admin.h"

namespace stanchion::fleet_admin {
namespace {

using Progress = kafka::KafkaFollower::Progress;

constexpr std::chrono::seconds kPatience(60);

// Whose the entries of a fleet's logs are.
struct LogOwner {
  bool has_entries = false;
  std::optional<std::uint64_t> id;  // Of the directory's fleet, if one of the entries has it.
};

Result<LogOwner> find_owner(kafka::KafkaConnection& connection, const std::string& fleet,
                            const broker::DataDirectory& data) {
  LogOwner owner;
  for (std::uint32_t i = 0; i < data.shard_count() && !owner.id; ++i)
    RETURN_IF_FAILED(scan_partition(
        connection, log_partition(fleet, ShardIndex(i)), [](const LogRange&) {},
        [&](const kafka::PartitionReader& reader) {
          owner.has_entries = true;
          const auto entry = journal::decode_log_entry(reader.bytes());
          if (entry && entry->from.shard == ShardIndex(i) &&
              directory_id(entry->from.fleet) == data.id())
            owner.id = entry->from.fleet;
          return !owner.id;
        }));
  return owner;
}

}  // namespace

Result<std::unique_ptr<OldLog>> OldLog::open(const kafka::KafkaSettings& settings,
                                             const std::string& fleet,
                                             const broker::DataDirectory& data,
                                             const std::function<void(std::string_view)>& say) {
  auto admin = FleetAdmin::open(settings, fleet);
  if (!admin) return std::unexpected(std::move(admin).error());
  const auto make = [&](std::uint64_t id, bool knows_skipped) {
    return std::unique_ptr<OldLog>(new OldLog(std::move(*admin), fleet, id, knows_skipped));
  };
  const auto strange = [&] {
    return fail(fmt::format(
        "Kafka has logs of a fleet {} that the directories do not belong to; leave them out with "
        "--without-log",
        fleet));
  };
  const auto partitions = kafka::KafkaAdmin((*admin)->connection()).partitions_of(log_topic(fleet));
  if (!partitions) return std::unexpected(partitions.error());
  if (!*partitions) {
    say(fmt::format("fleet {}: Kafka no longer has its logs", fleet));
    return nullptr;
  }
  const auto founded = (*admin)->is_founded();
  if (!founded) return std::unexpected(founded.error());
  const bool is_known = *founded && directory_id((*admin)->metadata().id) == data.id();
  if (**partitions != static_cast<int>(data.shard_count()) ||
      (is_known && (*admin)->metadata().shards != data.shard_count()))
    return strange();
  if (is_known) {
    say(fmt::format("fleet {}: using what Kafka still has of its logs", fleet));
    const std::uint64_t id = (*admin)->metadata().id;
    return make(id, true);
  }
  const auto owner = find_owner((*admin)->connection(), fleet, data);
  if (!owner) return std::unexpected(owner.error());
  if (owner->id) {
    say(fmt::format("fleet {}: using what Kafka still has of its logs, although {}", fleet,
                    *founded ? "its control log is another fleet's" : "its control log is lost"));
    return make(*owner->id, false);
  }
  if (owner->has_entries || *founded) return strange();
  say(fmt::format("fleet {}: Kafka no longer has anything in its logs", fleet));
  return nullptr;
}

Result<std::string> OldLog::read(ShardIndex shard, const Visit& visit) {
  const auto& skipped = admin_->state().shard(shard).skipped;
  const kafka::ShardLog log{.partition = log_partition(fleet_, shard),
                            .fleet = id_,
                            .shard = shard,
                            .node = 0,
                            .is_skipped = [&](journal::LogOffset at) {
                              return knows_skipped_ && skipped.contains(at.value());
                            }};
  auto follower = kafka::KafkaFollower::open(admin_->connection(), log);
  if (!follower) return std::unexpected(std::move(follower).error());
  Status visited;
  const auto pass = [&](Position position, std::string_view record) {
    return visited = visit(position, record, **follower);
  };
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const auto step = (*follower)->step(pass, kPatience);
    RETURN_IF_FAILED(visited);
    if (!step) return step.error().message;
    if (*step == Progress::kEnd) return "";
    if (*step == Progress::kNothing && std::chrono::steady_clock::now() > deadline)
      return fail(fmt::format("Kafka does not show the end of {}", log.partition.text()));
  }
}

}  // namespace stanchion::fleet_admin
