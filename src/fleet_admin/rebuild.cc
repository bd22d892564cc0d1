#include "fleet_admin/rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/date.h"
#include "broker/data_directory.h"
#include "broker/shard_replay.h"
#include "fleet_admin/fleet_admin.h"
#include "fleet_admin/log_filler.h"
#include "fleet_admin/old_log.h"
#include "fleet_admin/past_note.h"
#include "fleet_admin/rebuild_plan.h"
#include "fleet_admin/topics.h"
#include "fleet_admin/used_log.h"
#include "journal/log_entry.h"
#include "kafka/admin.h"
#include "kafka/follower.h"
#include "model/fact.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::fleet_admin {
namespace {

using Say = std::function<void(std::string_view)>;

// The directory of a node, locked.
struct NodeDirectory {
  std::unique_ptr<os::Directory> root;
  broker::DataDirectory data;
};

Result<NodeDirectory> open_directory(const std::string& path) {
  auto root = os::open_existing_directory(path);
  if (!root) return std::unexpected(std::move(root).error());
  const auto found = broker::DataDirectory::look_at(**root);
  if (!found)
    return fail(
        fmt::format("{} is not a data directory of Stanchion: {}", path, found.error().message));
  if (found->fleet().empty())
    return fail(fmt::format(
        "{} has the queues of a server by itself: bring them into a fleet with `stanchion fleet "
        "import`",
        path));
  auto data = broker::DataDirectory::open_for_fleet(**root, found->fleet(), found->shard_count(),
                                                    found->id());
  if (!data) return std::unexpected(std::move(data).error());
  return NodeDirectory{std::move(*root), std::move(*data)};
}

class Rebuilding {
 public:
  Rebuilding(const RebuildOptions& options, os::Entropy& entropy, os::Clock& clock, const Say& say)
      : options_(options), entropy_(entropy), clock_(clock), say_(say) {}

  Status run() {
    RETURN_IF_FAILED(open_directories());
    const auto founded = was_founded();
    if (!founded) return std::unexpected(founded.error());
    if (*founded) return finish_directories();
    auto admin = FleetAdmin::open(options_.kafka, options_.fleet);
    if (!admin) return std::unexpected(std::move(admin).error());
    // found_with() looks again, when much has been read, and has been said of what is lost.
    RETURN_IF_FAILED((*admin)->refuse_used_logs(nodes_.front().data.id()));
    RETURN_IF_FAILED(look_for_old_log());
    for (std::uint32_t i = 0; i < shards(); ++i) {
      const Status chosen = choose(ShardIndex(i));
      if (!chosen) return fail(fmt::format("shard {}: {}", i, chosen.error().message));
    }
    RETURN_IF_FAILED((*admin)->found_with(
        {.id = nodes_.front().data.id(),
         .fill = [this](kafka::KafkaConnection& connection) { return fill_all(connection); }},
        shards(), options_.one_copy, clock_.now(), say_));
    return finish_directories();
  }

 private:
  // What a shard is made of.
  struct Chosen {
    std::string directory;  // Empty: nothing.
    std::unique_ptr<const store::RocksStore> store;
    Position checkpoint;
    journal::LogDigest digest;
    bool goes_on = false;
    Position last;  // Of the records that it will have.
    Instant at;     // Of that one.
  };

  std::uint32_t shards() const { return nodes_.front().data.shard_count(); }

  Status open_directories() {
    std::set<std::string> names;
    for (const std::string& path : options_.data) {
      auto node = open_directory(path);
      if (!node) return std::unexpected(std::move(node).error());
      nodes_.push_back(std::move(*node));
      const broker::DataDirectory& first = nodes_.front().data;
      const broker::DataDirectory& last = nodes_.back().data;
      if (first.id() != last.id() || first.shard_count() != last.shard_count())
        return fail(fmt::format("{} and {} belong to different fleets, {} and {}",
                                options_.data.front(), path, first.fleet(), last.fleet()));
      if (last.fleet() != options_.fleet) names.insert(last.fleet());
    }
    if (names.size() > 1)
      return fail(fmt::format("the directories belong to fleets of different names, {} and {}",
                              *names.begin(), *names.rbegin()));
    if (!names.empty()) old_name_ = *names.begin();
    return {};
  }

  // By a rebuilding that was interrupted when only the directories' names were left to be changed.
  Result<bool> was_founded() {
    auto admin = FleetAdmin::open(options_.kafka, options_.fleet);
    if (!admin) return std::unexpected(std::move(admin).error());
    const auto there =
        kafka::KafkaAdmin((*admin)->connection()).partitions_of(control_topic(options_.fleet));
    if (!there) return std::unexpected(there.error());
    // Whatever else cannot be read is found out when the fleet is founded.
    if (!*there || !(*admin)->read()) return false;
    const bool ours = (*admin)->metadata().id == nodes_.front().data.id() && !old_name_.empty();
    if (!ours || !(*admin)->last_beats().empty())
      return fail(fmt::format("there is a fleet {} already: choose another name", options_.fleet));
    say_(fmt::format("fleet {} exists already, and no node has run in it", options_.fleet));
    return true;
  }

  Status look_for_old_log() {
    if (options_.without_log || old_name_.empty()) return {};
    auto log = OldLog::open(options_.kafka, old_name_, nodes_.front().data, say_);
    if (!log) return std::unexpected(std::move(log).error());
    log_ = std::move(*log);
    return {};
  }

  // The stores of a shard that can be read, each with what it has.
  Result<std::vector<FoundStore>> find_stores(
      ShardIndex shard, std::vector<std::unique_ptr<const store::RocksStore>>& opened) {
    std::vector<FoundStore> found;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      auto store = broker::open_shard_store(nodes_[i].data, shard);
      if (store && !*store) continue;
      std::string problem = store ? "" : store.error().message;
      engine::Engine engine({shard, false, {}});
      Instant at;
      Position checkpoint;
      if (store) {
        const auto loaded = engine.load(broker::scan_of(**store), at);
        if (loaded) checkpoint = *loaded;
        if (!loaded) problem = loaded.error().message;
        if (loaded && engine.has_unreadable())
          problem = engine.take_unreadable().begin()->second.message;
        if (problem.empty())
          if (const Status sound = (*store)->check_tables(); !sound)
            problem = sound.error().message;
      }
      if (!problem.empty()) {
        say_(fmt::format("shard {}: {} cannot be used: {}", shard.value(), options_.data[i],
                         problem));
        continue;
      }
      FoundStore& one = found.emplace_back(FoundStore{
          .directory = options_.data[i], .checkpoint = checkpoint, .digest = {}, .at = at});
      if (const auto digest = engine.loaded_digest()) one.digest = journal::LogDigest(*digest);
      opened.push_back(std::move(*store));
    }
    return found;
  }

  Result<std::optional<FoundLog>> survey_log(ShardIndex shard,
                                             const std::vector<FoundStore>& stores) {
    if (!log_) return std::optional<FoundLog>();
    std::set<Position> wanted;
    for (const FoundStore& store : stores) wanted.insert(store.checkpoint);
    FoundLog found;
    const auto note = [&](Position at, const std::optional<journal::LogDigest>& digest) {
      if (digest && wanted.contains(at)) found.digests.emplace(at, *digest);
    };
    auto problem = log_->read(
        shard,
        [&](Position position, std::string_view, const kafka::KafkaFollower& follower) -> Status {
          if (found.first == Position()) {
            found.first = position;
            note(Position(position.value() - 1), follower.digest_before());
          }
          found.last = position;
          note(position, follower.digest());
          return {};
        });
    if (!problem) return std::unexpected(std::move(problem).error());
    found.problem = std::move(*problem);
    if (found.first == Position() && found.problem.empty()) return std::optional<FoundLog>();
    return std::optional(std::move(found));
  }

  Status choose(ShardIndex shard) {
    std::vector<std::unique_ptr<const store::RocksStore>> opened;
    auto stores = find_stores(shard, opened);
    if (!stores) return std::unexpected(std::move(stores).error());
    if (stores->empty()) {
      if (!options_.accept_loss)
        return fail(
            "none of the directories has it: name those of the other nodes, or let it begin empty "
            "with --accept-loss");
      stores->push_back({.directory = "", .checkpoint = {}, .digest = {}, .at = {}});
      opened.emplace_back();
    }
    auto log = survey_log(shard, *stores);
    if (!log) return std::unexpected(std::move(log).error());
    const auto plan = plan_shard(*stores, *log);
    if (!plan) return std::unexpected(plan.error());
    const FoundStore& best = (*stores)[plan->store];
    Chosen chosen{.directory = best.directory,
                  .store = std::move(opened[plan->store]),
                  .checkpoint = best.checkpoint,
                  .digest = best.digest.value_or(journal::LogDigest()),
                  .goes_on = plan->goes_on,
                  .last = best.checkpoint,
                  .at = best.at};
    // A chain that the store does not know begins where the log says.
    if (plan->goes_on && !best.digest)
      if (const auto digest = (*log)->digests.find(best.checkpoint);
          digest != (*log)->digests.end())
        chosen.digest = digest->second;
    RETURN_IF_FAILED(replay(shard, chosen));
    report(shard, *stores, *log, chosen);
    chosen_.push_back(std::move(chosen));
    return {};
  }

  // Calls `visit` with the records of the old log that the shard gets.
  Status for_each_record(ShardIndex shard, const Chosen& chosen,
                         const journal::RecordVisitor& visit) {
    if (!chosen.goes_on) return {};
    auto read = log_->read(
        shard,
        [&](Position position, std::string_view record, const kafka::KafkaFollower&) -> Status {
          return position > chosen.checkpoint ? visit(position, record) : Status();
        });
    if (!read) return std::unexpected(std::move(read).error());
    return {};
  }

  // Finds out what the shard will know of transfers, and until when it has records.
  Status replay(ShardIndex shard, Chosen& chosen) {
    broker::ShardReplay replay(shard, chosen.store.get());
    RETURN_IF_FAILED(replay.load());
    RETURN_IF_FAILED(for_each_record(shard, chosen, [&](Position position, std::string_view bytes) {
      chosen.last = position;
      return replay.take(position, bytes);
    }));
    chosen.at = std::max(chosen.at, replay.now());
    books_.push_back(books_of(replay.engine(), shards()));
    return {};
  }

  void report(ShardIndex shard, const std::vector<FoundStore>& stores,
              const std::optional<FoundLog>& log, const Chosen& chosen) {
    if (chosen.directory.empty()) {
      say_(fmt::format("shard {}: no directory has it; {}", shard.value(),
                       chosen.goes_on ? "it is restored from the old log" : "it starts empty"));
    } else if (chosen.checkpoint == Position() && !chosen.goes_on) {
      say_(fmt::format("shard {}: {}, whose store has no checkpoint yet", shard.value(),
                       chosen.directory));
    } else {
      say_(fmt::format("shard {}: {}, with the records up to {} of {}{}", shard.value(),
                       chosen.directory, chosen.last.value(), date(chosen.at),
                       chosen.goes_on ? fmt::format(", {} of them from the old log",
                                                    chosen.last.value() - chosen.checkpoint.value())
                                      : ""));
    }
    for (const FoundStore& other : stores)
      if (other.directory != chosen.directory)
        say_(fmt::format("  {} has those up to {}", other.directory, other.checkpoint.value()));
    if (log && !chosen.goes_on && log->last < chosen.checkpoint)
      say_(
          fmt::format("  the old log has lost its end: it ends with record {}", log->last.value()));
    if (log && !log->problem.empty())
      say_(fmt::format("  everything after record {} of the old log is lost: {}", log->last.value(),
                       log->problem));
    if (!log && !chosen.directory.empty()) say_("  everything acknowledged after that is lost");
  }

  kafka::ShardLog new_log(ShardIndex shard) const {
    return {.partition = log_partition(options_.fleet, shard),
            .fleet = nodes_.front().data.id(),
            .shard = shard,
            .node = 0};
  }

  Status fill_all(kafka::KafkaConnection& connection) {
    // All of them before anything is written.
    for (std::uint32_t i = 0; i < shards(); ++i)
      RETURN_IF_FAILED(refuse_used_log(connection, new_log(ShardIndex(i)), chosen_[i].last));
    for (std::uint32_t i = 0; i < shards(); ++i) {
      const Status filled = fill(connection, ShardIndex(i));
      if (!filled) return fail(fmt::format("shard {}: {}", i, filled.error().message));
    }
    return {};
  }

  Status fill(kafka::KafkaConnection& connection, ShardIndex shard) {
    const Chosen& chosen = chosen_[shard.value()];
    LogFiller filler(connection, new_log(shard), entropy_.u64() | 1, chosen.digest);
    RETURN_IF_FAILED(filler.claim(chosen.checkpoint.next(), chosen.last));
    RETURN_IF_FAILED(
        for_each_record(shard, chosen, [&](Position position, std::string_view bytes) -> Status {
          return position > chosen.last ? Status() : filler.add(position, bytes);
        }));
    const Instant now = std::max(chosen.at, clock_.now());
    Position next = chosen.last.next();
    const auto add = [&](const auto&... fact) {
      RecordWriter record(now);
      (record.add(fact), ...);
      return filler.add(std::exchange(next, next.next()), record.bytes());
    };
    const TransferMending mending = mend_transfers(shard, books_);
    if (mending.resume_at) RETURN_IF_FAILED(add(TransfersResumed{*mending.resume_at}));
    for (const TransferNo number : mending.refused) RETURN_IF_FAILED(add(TransferRefused{number}));
    // A log that was trimmed begins with a record, so there is one at least: what time it is.
    RETURN_IF_FAILED(add());
    RETURN_IF_FAILED(filler.finish());
    if (mending.resume_at)
      say_(fmt::format(
          "shard {}: up to {} messages may be duplicates: they have moved to other shards, and "
          "this shard does not know that",
          shard.value(), mending.resume_at->value() - books_[shard.value()].next.value()));
    if (!mending.refused.empty())
      say_(
          fmt::format("shard {}: {} messages that were on their way are back in their queues, and "
                      "may have arrived as well",
                      shard.value(), mending.refused.size()));
    return {};
  }

  // What a store had that the old log had not is in the new one, if anybody has it.
  Status finish_directories() {
    for (NodeDirectory& node : nodes_) {
      for (std::uint32_t i = 0; i < shards(); ++i)
        RETURN_IF_FAILED(remove_past_note(node.data, ShardIndex(i)));
      if (node.data.fleet() != options_.fleet)
        RETURN_IF_FAILED(node.data.give_to_fleet(options_.fleet));
    }
    return {};
  }

  const RebuildOptions& options_;
  os::Entropy& entropy_;
  os::Clock& clock_;
  const Say& say_;
  std::vector<NodeDirectory> nodes_;
  std::string old_name_;  // Empty: the fleet keeps its name.
  std::unique_ptr<OldLog> log_;
  std::vector<Chosen> chosen_;        // By shard.
  std::vector<TransferBooks> books_;  // By shard, at the end of its records.
};

}  // namespace

Status rebuild_fleet(const RebuildOptions& options, os::Entropy& entropy, os::Clock& clock,
                     const std::function<void(std::string_view)>& say) {
  if (options.data.empty()) return fail("name the directories of the fleet's nodes with --data");
  return Rebuilding(options, entropy, clock, say).run();
}

}  // namespace stanchion::fleet_admin
