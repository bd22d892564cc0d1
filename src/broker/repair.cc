#include "broker/repair.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "broker/shard_replay.h"
#include "engine/engine.h"
#include "journal/format.h"
#include "journal/survey.h"
#include "model/fact.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::broker {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMessagesAtATime = 4096;

// What is wrong with the first damaged file.
Result<std::string> find_damage(const std::string& path) {
  const auto files = store::survey(path);
  if (!files) return std::unexpected(files.error());
  for (const store::FileReport& file : *files)
    if (!file.problem.empty()) return fmt::format("{}: {}", file.path, file.problem);
  return "";
}

// The new store will contain everything read here, so these records must be durable.
Status sync_journal(os::Directory& directory) {
  const auto names = directory.list();
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (!journal::parse_segment_name(name)) continue;
    auto file = directory.open_file(name, os::OpenMode::kReadWrite);
    if (!file) return std::unexpected(std::move(file).error());
    RETURN_IF_FAILED((*file)->sync_data());
  }
  return directory.sync();
}

// Applies the journal to what was salvaged.
class Replay {
 public:
  Replay(ShardIndex shard, const engine::SalvageReport& found, const store::Store& store)
      : engine_(engine::Options{shard, false, {}}), scan_(scan_of(store)) {
    for (const engine::SalvagedQueue& queue : found.queues)
      if (queue.damaged()) living_.emplace(queue.id, queue.living);
  }

  Status run(os::Directory& directory, const journal::ShardOf& shard) {
    const auto loaded = engine_.load(scan_, now_);
    if (!loaded) return std::unexpected(loaded.error());
    position_ = *loaded;
    engine_.recount_departures();
    const auto survey = journal::survey(
        directory, [&](Position position, auto bytes) { return take(position, bytes); }, shard);
    if (!survey) return std::unexpected(survey.error());
    if (!survey->usable())
      return fail(fmt::format(
          "the journal in {} is damaged, too: see with stanchion inspect where, then restore a "
          "backup",
          directory.path()));
    const std::string gap = journal::missing_positions(directory.path(), survey->first(),
                                                       survey->next(), loaded->next());
    return gap.empty() ? Status() : fail(gap + " Restore a backup.");
  }

  Batch take_checkpoint() {
    engine_.begin_checkpoint(position_, now_);
    while (!engine_.save_some(kMessagesAtATime)) {
    }
    return engine_.take_checkpoint();
  }

  std::uint64_t left_out() const { return left_out_; }

 private:
  Status take(Position position, std::string_view bytes) {
    if (position <= position_) return {};
    if (position != position_.next())
      return fail(fmt::format("records {} to {} of the journal are missing: restore a backup",
                              position_.next().value(), position.value() - 1));
    auto record = parse_record(bytes);
    if (!record) return std::unexpected(record.error());
    position_ = position;
    now_ = std::max(now_, record->at);
    engine_.advance(now_);
    if (engine_.exceeds(kReplayMemory)) engine_.evict_some(kReplayMemory);
    const auto applied = engine_.apply_what_is_left(std::move(record->facts), living_, scan_, now_);
    if (!applied) return std::unexpected(applied.error());
    left_out_ += *applied;
    return {};
  }

  engine::Engine engine_;
  const engine::Engine::ScanStore scan_;
  engine::Engine::Living living_;
  Position position_;
  Instant now_{};
  std::uint64_t left_out_ = 0;
};

Status remove_all(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return fail(fmt::format("cannot remove {}: {}", path, error.message()), error.value());
  return {};
}

// Fills a new store at `path`.
Status make_store(const DataDirectory& data, ShardIndex shard, const store::Store& damaged,
                  const std::string& path, ShardRepair& repair) {
  auto directory = data.shard_directory(shard);
  if (!directory) return std::unexpected(std::move(directory).error());
  RETURN_IF_FAILED(sync_journal(**directory));
  auto made = store::RocksStore::open(path, {.identity = data.store_identity(shard)});
  if (!made) return std::unexpected(std::move(made).error());
  auto found =
      engine::salvage(scan_of(damaged), [&](const Batch& batch) { return (*made)->commit(batch); });
  if (!found) return std::unexpected(std::move(found).error());
  repair.found = std::move(*found);
  Replay replay(shard, repair.found, **made);
  RETURN_IF_FAILED(replay.run(**directory, data.shard_of(shard)));
  repair.left_out = replay.left_out();
  return (*made)->commit(replay.take_checkpoint());
}

// Reads the new store as a start would, and every byte besides.
Status check_store(const std::string& path, ShardIndex shard) {
  const auto store = store::RocksStore::open_read_only(path);
  if (!store) return std::unexpected(store.error());
  RETURN_IF_FAILED((*store)->check_tables());
  engine::Engine engine(engine::Options{shard, false, {}});
  Instant now;
  return engine.load(scan_of(**store), now) ? Status() : fail("it cannot be loaded");
}

Result<std::string> free_name(const std::string& store) {
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}.damaged-{}", store, number);
    const auto taken = os::exists(name);
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) return name;
  }
}

// The new store gets the name under which the old one will be kept, and then they are exchanged:
// whenever this is interrupted, one of them is the shard's store and the other still exists.
Status put_in_place(const DataDirectory& data, ShardIndex shard, const std::string& made,
                    ShardRepair& repair) {
  const std::string path = data.store_path(shard);
  const auto aside = free_name(path);
  if (!aside) return std::unexpected(aside.error());
  std::error_code error;
  fs::rename(made, *aside, error);
  if (error)
    return fail(fmt::format("cannot rename {} to {}: {}", made, *aside, error.message()),
                error.value());
  if (Status exchanged = os::exchange(*aside, path); !exchanged) {
    fs::rename(*aside, made, error);  // Where the caller removes it: it is not the damaged store.
    if (exchanged.error().os_error == EINVAL)
      exchanged.error().message += " (not every file system can do that: repair a copy on another)";
    return exchanged;
  }
  repair.set_aside_as = *aside;
  auto directory = data.shard_directory(shard);
  const Status synced = directory ? (*directory)->sync() : std::unexpected(directory.error());
  if (!synced) repair.may_be_undone = synced.error().message;
  return {};
}

// The store is sound; whether a server would start is known only with the journal.
Result<ShardRepair> check_journal(const DataDirectory& data, ShardIndex shard, ShardRepair repair) {
  const Status startable = check_start(data, shard);
  if (startable) return repair;
  if (may_pass(startable.error())) return std::unexpected(startable.error());
  return fail(fmt::format(
      "no server starts on it, and a new store would not help. Put back what is missing, or "
      "restore a backup. The damage: {}",
      startable.error().message));
}

}  // namespace

Result<ShardRepair> repair_shard(const DataDirectory& data, ShardIndex shard, bool only_look) {
  ShardRepair repair;
  const std::string path = data.store_path(shard);
  const auto has_store = store::has_store(path);
  if (!has_store) return std::unexpected(has_store.error());
  if (!*has_store) return check_journal(data, shard, std::move(repair));
  auto damage = find_damage(path);
  if (!damage) return std::unexpected(std::move(damage).error());
  repair.damage = std::move(*damage);
  repair.tables_lost = !store::RocksStore::open_read_only(path, data.store_identity(shard));
  const auto damaged = store::RocksStore::open_damaged(path, data.store_identity(shard));
  if (!damaged) return std::unexpected(damaged.error());
  auto found = engine::salvage(scan_of(**damaged), [](const Batch&) { return Status(); });
  if (!found)
    return fail(fmt::format("the store {} cannot be repaired, because {}: restore a backup", path,
                            found.error().message));
  repair.found = std::move(*found);
  if (!repair.damaged()) return check_journal(data, shard, std::move(repair));
  const std::string made = path + ".new";
  RETURN_IF_FAILED(remove_all(made));
  Status status = make_store(data, shard, **damaged, made, repair);
  if (status) status = check_store(made, shard);
  if (status && !only_look) status = put_in_place(data, shard, made, repair);
  if (repair.set_aside_as.empty()) static_cast<void>(remove_all(made));
  if (!status) return std::unexpected(std::move(status).error());
  return repair;
}

}  // namespace stanchion::broker
