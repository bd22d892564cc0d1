#include "fleet_admin/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "broker/data_directory.h"
#include "broker/shard.h"
#include "fleet_admin/fleet_admin.h"
#include "fleet_admin/log_filler.h"
#include "fleet_admin/topics.h"
#include "journal/local_journal.h"
#include "kafka/connection.h"
#include "model/fact.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::fleet_admin {
namespace {

constexpr std::chrono::seconds kPatience(60);

// The last record that the shard's store contains.
Result<Position> checkpoint_of(const broker::DataDirectory& data, ShardIndex shard) {
  auto store =
      store::RocksStore::open(data.store_path(shard), {.identity = data.store_identity(shard)});
  if (!store) return std::unexpected(std::move(store).error());
  engine::Engine engine({shard, false, {}});
  Instant at;
  return engine.load(
      [&](const KeyRange& range, const auto& visit) { return (*store)->scan(range, visit); }, at);
}

Result<std::uint64_t> import_shard(kafka::KafkaConnection& connection,
                                   const broker::DataDirectory& data, const kafka::ShardLog& log,
                                   os::Entropy& entropy, os::Clock& clock) {
  const auto saved = checkpoint_of(data, log.shard);
  if (!saved) return std::unexpected(saved.error());
  auto directory = data.shard_directory(log.shard);
  if (!directory) return std::unexpected(std::move(directory).error());
  auto journal =
      journal::LocalJournal::open(**directory, data.shard_of(log.shard), {}, entropy, clock);
  if (!journal) return std::unexpected(std::move(journal).error());
  LogFiller filler(connection, log, entropy.u64() | 1);
  const Position end = std::max((*journal)->next_position(), saved->next());
  RETURN_IF_FAILED(filler.claim(saved->next(), Position(end.value() - 1)));
  Instant last = clock.now();
  RETURN_IF_FAILED(
      (*journal)->replay(saved->next(), [&](Position position, std::string_view bytes) -> Status {
        const auto record = parse_record(bytes);
        if (!record) return std::unexpected(record.error());
        last = std::max(last, record->at);
        return filler.add(position, bytes);
      }));
  // A log that was trimmed begins with a record, so there is one at least: what time it is.
  RETURN_IF_FAILED(filler.add(end, RecordWriter(last).bytes()));
  RETURN_IF_FAILED(filler.finish());
  return filler.records();
}

// The directory is the fleet's already. Only an import that was interrupted may go on with it: the
// logs have what was in the journals then, and without them the stores would be ahead of their logs.
Status check_filled(kafka::KafkaConnection& connection, const broker::DataDirectory& data) {
  for (std::uint32_t i = 0; i < data.shard_count(); ++i) {
    const kafka::Partition log = log_partition(data.fleet(), ShardIndex(i));
    const auto range = connection.range_of(log, kPatience);
    if (!range) return std::unexpected(range.error());
    if (range->first == range->end)
      return fail(fmt::format(
          "the directory belongs to a node of the fleet {}, and Kafka has nothing in {}: what was "
          "acknowledged after its last checkpoint is lost with the topics, so it cannot be "
          "imported",
          data.fleet(), log.text()));
  }
  return {};
}

// The journals are in the logs now.
void remove_journals(const broker::DataDirectory& data) {
  for (std::uint32_t i = 0; i < data.shard_count(); ++i) {
    auto directory = data.shard_directory(ShardIndex(i));
    if (!directory) continue;
    const auto names = (*directory)->list();
    if (!names) continue;
    // What cannot be removed only takes room.
    for (const std::string& name : *names) static_cast<void>((*directory)->remove(name));
  }
}

}  // namespace

Result<Imported> import_directory(const ImportOptions& options, os::Entropy& entropy,
                                  os::Clock& clock,
                                  const std::function<void(std::string_view)>& say) {
  auto root = os::open_existing_directory(options.data);
  if (!root) return std::unexpected(std::move(root).error());
  const auto found = broker::DataDirectory::look_at(**root);
  if (!found)
    return fail(fmt::format("{} is not a data directory of Stanchion: {}", options.data,
                            found.error().message));
  const bool given_before = found->fleet() == options.fleet;
  auto data = given_before ? broker::DataDirectory::open_for_fleet(
                                 **root, options.fleet, found->shard_count(), found->id())
                           : broker::DataDirectory::open(**root, 1);
  if (!data) return std::unexpected(std::move(data).error());
  auto admin = FleetAdmin::open(options.kafka, options.fleet);
  if (!admin) return std::unexpected(std::move(admin).error());
  Imported imported{.shards = data->shard_count(), .records = 0};
  const auto fill = [&](kafka::KafkaConnection& connection) -> Status {
    if (given_before) return check_filled(connection, *data);
    for (std::uint32_t i = 0; i < data->shard_count(); ++i) {
      const ShardIndex shard(i);
      const auto records = import_shard(connection, *data,
                                        {.partition = log_partition(options.fleet, shard),
                                         .fleet = data->id(),
                                         .shard = shard,
                                         .node = 0},
                                        entropy, clock);
      if (!records) return fail(fmt::format("shard {}: {}", i, records.error().message));
      imported.records += *records;
      say(fmt::format("shard {} of {}: {} records", i + 1, data->shard_count(), *records));
    }
    return data->give_to_fleet(options.fleet);
  };
  RETURN_IF_FAILED((*admin)->found_with({.id = data->id(), .fill = fill}, data->shard_count(),
                                        options.one_copy, clock.now(), say));
  remove_journals(*data);
  return imported;
}

}  // namespace stanchion::fleet_admin
