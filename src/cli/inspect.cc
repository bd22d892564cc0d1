#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "broker/data_directory.h"
#include "broker/shard_replay.h"
#include "cli/fleet_target.h"
#include "cli/inspect_log.h"
#include "cli/inspect_output.h"
#include "cli/program.h"
#include "engine/engine.h"
#include "journal/survey.h"
#include "model/fact.h"
#include "os/clock.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::cli {
namespace {

// Reads messages that are not in memory; damage is reported when the store is surveyed.
engine::Queue::ReadNow reader_of(const store::Store* store) {
  return [store](const KeyRange& range) -> std::vector<engine::StoredMessage> {
    auto found = engine::Engine::read({.range = range},
                                      [&](const KeyRange& keys, const store::EntryVisitor& visit) {
                                        return store->scan(keys, visit);
                                      });
    return found ? std::move(*found) : std::vector<engine::StoredMessage>();
  };
}

void show_messages(const engine::Queue& queue, const store::Store* store, InspectOutput& output) {
  const auto read = reader_of(store);
  queue.stock().residency().for_each_cold(
      read, [&](std::size_t, const std::vector<engine::StoredMessage>& found) {
        for (const engine::StoredMessage& m : found)
          output.message(m.seq, *m.content, m.receive_count, engine::State::kReady);
      });
  queue.for_each_message([&](const engine::Message& m) {
    output.message(m.seq, *queue.stock().residency().content_of(m, read), m.receive_count, m.state);
  });
}

// Whether every file of the store is as it was written.
bool show_store(const std::string& path, InspectOutput& output) {
  const auto files = store::survey(path);
  if (!files) {
    output.problem(files.error().message);
    return false;
  }
  bool sound = true;
  StoreSize size{.files = files->size()};
  for (const store::FileReport& file : *files) {
    size.bytes += file.size;
    size.entries += file.entries;
    if (file.problem.empty()) continue;
    output.problem(fmt::format("{}: {}", file.path, file.problem));
    sound = false;
  }
  output.store(size);
  return sound;
}

// A start continues from the last record, or from the wall clock if that is later.
void show_time(Instant last_record, InspectOutput& output) {
  if (last_record == Instant()) return;
  os::SystemClock clock;
  output.last_record(last_record, last_record - clock.now());
}

// What cannot be read of this queue; empty: nothing. A server sets such a queue aside.
std::string damage_of(const engine::Queue& queue, const store::Store& store) {
  std::uint64_t lost = 0;
  const auto read = reader_of(&store);
  queue.stock().residency().for_each_cold(
      read, [&](std::size_t members, const std::vector<engine::StoredMessage>& found) {
        if (found.size() != members) lost += members;
      });
  if (lost == 0) return "";
  return fmt::format("queue {}: up to {} of its messages cannot be read", queue.ref.name, lost);
}

enum class Finding { kSound, kDamaged, kOvertaken };

// Whether a running server has made a checkpoint since the one at `position` was read, and trimmed
// its journal.
bool is_overtaken(const broker::DataDirectory& data, ShardIndex shard, Position position) {
  const auto store = broker::open_shard_store(data, shard);
  if (!store) return false;
  broker::ShardReplay now(shard, store->get());
  return now.load() && now.checkpoint() != position;
}

Finding inspect_shard(os::Directory& directory, const broker::DataDirectory& data, ShardIndex shard,
                      const InspectSettings& settings, InspectOutput& output) {
  const std::string store_path = data.store_path(shard);
  const auto damaged = [&](std::string_view problem) {
    output.problem(problem);
    return Finding::kDamaged;
  };
  bool sound = true;
  const auto has_store = store::has_store(store_path);
  if (!has_store) return damaged(has_store.error().message);
  if (*has_store) sound = show_store(store_path, output);
  const auto store = broker::open_shard_store(data, shard);
  if (!store) return damaged(store.error().message);
  const auto show_fact = [&](Position position, Instant at, const Fact& fact) {
    output.fact(position, at, describe(fact));
  };
  broker::ShardReplay replay(
      shard, store->get(), settings.facts ? broker::ShardReplay::FactVisitor(show_fact) : nullptr);
  if (const Status loaded = replay.load(); !loaded) return damaged(loaded.error().message);
  const auto survey = journal::survey(
      directory,
      [&](Position position, std::string_view bytes) { return replay.take(position, bytes); },
      data.shard_of(shard));
  if (!survey) return damaged(survey.error().message);
  // The journals of a fleet are in Kafka.
  const std::string gap =
      data.fleet().empty() ? replay.gap(directory.path(), *survey) : std::string();
  if (!gap.empty() && is_overtaken(data, shard, replay.checkpoint())) return Finding::kOvertaken;
  for (const journal::SegmentReport& segment : survey->segments) output.segment(segment);
  const bool usable = survey->usable() && gap.empty();
  output.records(replay.records(), replay.engine().queue_count(), usable);
  show_time(replay.now(), output);
  if (*store) output.holdings(replay.engine().holdings());
  replay.engine().for_each_queue([&](const engine::Queue& queue) {
    output.queue(queue);
    if (settings.messages) show_messages(queue, store->get(), output);
  });
  if (*store && !sound) {
    replay.engine().for_each_queue([&](const engine::Queue& queue) {
      if (const std::string problem = damage_of(queue, **store); !problem.empty())
        output.problem(problem);
    });
  }
  for (const std::string& problem : survey->problems) output.problem(problem);
  // Of a journal that is damaged, nobody knows where it ends.
  if (survey->usable() && !gap.empty()) output.problem(gap);
  return sound && usable ? Finding::kSound : Finding::kDamaged;
}

// A running server may make a checkpoint between two reads.
bool inspect_shard_again(os::Directory& directory, const broker::DataDirectory& data,
                         ShardIndex shard, const InspectSettings& settings, InspectOutput& output) {
  constexpr int kLooksMax = 10;
  for (int look = 0; look < kLooksMax; ++look) {
    const Finding finding = inspect_shard(directory, data, shard, settings, output);
    if (finding != Finding::kOvertaken) return finding == Finding::kSound;
    output.again();
  }
  output.gave_up("the server makes checkpoints faster than they can be read");
  return false;
}

}  // namespace

int inspect(const InspectSettings& settings) {
  auto root = os::open_existing_directory(settings.data);
  if (!root) {
    complain(root.error().message);
    return kExitFailed;
  }
  const auto data = broker::DataDirectory::look_at(**root);
  if (!data) {
    complain(data.error().message);
    return kExitFailed;
  }
  const auto output =
      settings.json ? inspect_as_json(settings.facts, settings.messages) : inspect_as_text();
  output->begin(settings.data, data->shard_count(), data->fleet());
  bool all_sound = true;
  for (std::uint32_t i = 0; i < data->shard_count(); ++i) {
    const ShardIndex shard(i);
    output->begin_shard(shard);
    auto directory = data->shard_directory(shard);
    if (!directory) output->problem(directory.error().message);
    const bool sound =
        directory && inspect_shard_again(**directory, *data, shard, settings, *output);
    output->end_shard(sound);
    all_sound = all_sound && sound;
  }
  output->end(all_sound);
  return all_sound ? kExitOk : kExitFailed;
}

namespace {

// A data directory, or a log of a fleet.
struct Wanted {
  InspectSettings directory;
  InspectLogSettings log;
  std::optional<std::uint32_t> shard;
  bool control = false;
  bool facts = false;
  bool json = false;
  std::optional<Option> from;
  std::optional<Option> limit;
};

// What is wrong with the command line; empty: nothing.
std::string find_mistake(const Wanted& wanted) {
  const bool of_a_fleet = wanted.shard || wanted.control;
  if (wanted.shard && wanted.control) return "--shard and --control are two different logs";
  if (of_a_fleet && !wanted.directory.data.empty())
    return "DIR is not for --shard and --control, whose logs are in Kafka";
  if (of_a_fleet && wanted.directory.messages)
    return "--messages is for a data directory: a log has facts";
  if (of_a_fleet) return "";
  if (wanted.log.fleet.any() || wanted.from->given() || wanted.limit->given())
    return "which log of the fleet? Give --shard NUMBER or --control";
  if (wanted.directory.data.empty())
    return "DIR is required, or --shard or --control for a log of a fleet";
  return "";
}

int run(Wanted& wanted) {
  if (const std::string mistake = find_mistake(wanted); !mistake.empty())
    return give_up("inspect: " + mistake, kExitSettings);
  wanted.directory.facts = wanted.log.facts = wanted.facts;
  wanted.directory.json = wanted.log.json = wanted.json;
  if (!wanted.shard && !wanted.control) return inspect(wanted.directory);
  wanted.log.shard = wanted.shard;
  return inspect_log(wanted.log);
}

}  // namespace

void add_inspect(Program& program) {
  const auto wanted = std::make_shared<Wanted>();
  Command command =
      program.add("inspect", "Print what a data directory, or a log of a fleet, holds",
                  [wanted] { return run(*wanted); });
  command.option("DIR", wanted->directory.data, "The data directory");
  command.flag("--json", wanted->json, "Print one JSON document instead of text");
  command.flag("--messages", wanted->directory.messages, "Print every message, without its body");
  command.flag("--facts", wanted->facts, "Print every fact of the journal or log");
  command.option("--shard", wanted->shard, "The log of this shard of a fleet, instead of DIR")
      .value("NUMBER");
  command.flag("--control", wanted->control, "The control log of a fleet, instead of DIR");
  add_fleet_flags(command, wanted->log.fleet);
  wanted->from =
      command.option("--from", wanted->log.from, "For a log: print the entries from this offset on")
          .value("OFFSET");
  wanted->limit =
      command.option("--limit", wanted->log.limit, "For a log: print at most this many entries")
          .value("NUMBER");
  command.notes(
      "Reads every byte, whether the server runs or not, and changes nothing. Exits with 1 if\n"
      "anything is damaged. Whether an entry of a log is valid depends on the entries before it,\n"
      "so a log is always read and summed up from its beginning.\n"
      "Examples:\n"
      "  stanchion inspect /var/lib/stanchion\n"
      "  stanchion inspect --json /var/lib/stanchion | jq '.shards[].queues[] | .name, .visible'\n"
      "  stanchion inspect --shard 7 --kafka kafka-1:9092 --name orders --facts");
}

}  // namespace stanchion::cli
