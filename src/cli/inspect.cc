#include "cli/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "broker/data_directory.h"
#include "cli/clock_report.h"
#include "engine/engine.h"
#include "journal/survey.h"
#include "model/fact.h"
#include "os/clock.h"
#include "os/real_directory.h"
#include "store/rocks_store.h"

namespace stanchion::cli {
namespace {

void print_segments(const journal::Survey& survey) {
  for (const auto& segment : survey.segments) {
    fmt::print("  {}: records {} to {}, {} commits, {} of {} bytes used\n", segment.name,
               segment.first.value(), segment.next.value() - 1, segment.frames, segment.used,
               segment.file_size);
    if (!segment.problem.empty())
      fmt::print("    DAMAGED at offset {}: {}\n", segment.problem_offset, segment.problem);
  }
}

const char* name_of_state(engine::State state) {
  switch (state) {
    case engine::State::kDelayed:
      return "delayed";
    case engine::State::kReady:
      return "ready";
    case engine::State::kInFlight:
      return "in flight";
  }
  return "?";
}

void print_message(Seq seq, const Content& content, std::uint32_t receive_count,
                   std::string_view where) {
  fmt::print("    {} {} {} bytes, sent {}, received {} times, {}\n", seq.value(),
             content.id().text(), content.body().size(), format_instant(content.sent()),
             receive_count, where);
}

// Reads what is not in memory; damage shows when the store is surveyed.
engine::Queue::ReadNow reader_of(const store::Store* store) {
  return [store](const KeyRange& range) -> std::vector<engine::StoredMessage> {
    auto found = engine::Engine::read({.range = range},
                                      [&](const KeyRange& keys, const store::EntryVisitor& visit) {
                                        return store->scan(keys, visit);
                                      });
    return found ? std::move(*found) : std::vector<engine::StoredMessage>();
  };
}

void print_messages(const engine::Queue& queue, const store::Store* store) {
  const auto read = reader_of(store);
  for (const auto& [first, chunk] : queue.stock().cold_by_first)
    for (const engine::StoredMessage& m : queue.stock().read_members(*chunk, read))
      print_message(m.seq, *m.content, m.receive_count, name_of_state(engine::State::kReady));
  queue.for_each_message([&](const engine::Message& m) {
    const ContentPtr content = m.content ? m.content : queue.stock().read_content(m, read);
    print_message(m.seq, *content, m.receive_count, name_of_state(m.state));
  });
}

void print_queue(const engine::Queue& queue, bool messages, const store::Store* store) {
  const engine::Counts& counts = queue.counts();
  fmt::print("  queue {} ({}): {} visible, {} in flight, {} delayed", queue.ref.name,
             queue.fifo() ? "FIFO" : "standard", counts.visible, counts.in_flight, counts.delayed);
  if (const auto oldest = queue.oldest_entered())
    fmt::print(", oldest from {}", format_instant(*oldest));
  fmt::print("\n");
  if (messages) print_messages(queue, store);
}

// A shard's state as its checkpoint and the records since say, as far as they can be read.
class Replay {
 public:
  Replay(ShardIndex shard, bool print_facts, const store::Store* store)
      : engine_(engine::Options{shard, false, {}}), print_facts_(print_facts), store_(store) {}

  Status load() {
    if (store_ == nullptr) return {};
    const auto position = engine_.load(scan(), now_);
    if (!position) return std::unexpected(position.error());
    checkpoint_ = *position;
    return engine_.read_wanted(scan(), now_);
  }

  Status take(Position position, std::string_view bytes) {
    const auto record = parse_record(bytes);
    if (!record)
      return fail(fmt::format("record {}: {}", position.value(), record.error().message));
    if (print_facts_)
      for (const Fact& fact : record->facts)
        fmt::print("  {} {} {}\n", position.value(), format_instant(record->at), describe(fact));
    ++records_;
    if (position <= checkpoint_) return {};
    // The server that is running made a checkpoint after this one was read, and trimmed its
    // journal.
    overtaken_ = overtaken_ || position != checkpoint_.next();
    if (overtaken_) return {};
    checkpoint_ = position;
    now_ = std::max(now_, record->at);
    engine_.advance(now_);
    if (store_ != nullptr) {
      if (engine_.exceeds(kMemory)) engine_.evict_some(kMemory);
      RETURN_IF_FAILED(engine_.prepare_for(record->facts, scan(), now_));
    }
    for (const Fact& fact : record->facts) engine_.apply(fact, now_);
    return {};
  }

  const engine::Engine& engine() const { return engine_; }
  std::uint64_t records() const { return records_; }
  bool overtaken() const { return overtaken_; }
  Instant now() const { return now_; }

 private:
  static constexpr std::size_t kMemory = std::size_t{256} << 20;

  engine::Engine::ScanStore scan() const {
    return [store = store_](const KeyRange& range, const auto& visit) {
      return store->scan(range, visit);
    };
  }

  engine::Engine engine_;
  bool print_facts_;
  const store::Store* store_;
  Position checkpoint_;
  Instant now_{};
  std::uint64_t records_ = 0;
  bool overtaken_ = false;
};

// Every file of the store, if something is wrong with one of them.
bool print_store(const std::string& path) {
  const auto files = store::survey(path);
  if (!files) {
    fmt::print("  DAMAGED: {}\n", files.error().message);
    return false;
  }
  bool sound = true;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  for (const store::FileReport& file : *files) {
    bytes += file.size;
    entries += file.entries;
    if (file.problem.empty()) continue;
    fmt::print("  DAMAGED: {}: {}\n", file.path, file.problem);
    sound = false;
  }
  fmt::print("  store: {} files, {} bytes, {} entries\n", files->size(), bytes, entries);
  return sound;
}

void print_holdings(const engine::Holdings& h) {
  fmt::print(
      "  {} messages in the store only; {} in memory ({} bytes), of which {} always are "
      "(delayed, in flight or come back); {} leaving; {} lanes, {} chunks, {} "
      "deduplication ids\n",
      h.cold, h.in_memory, h.bytes, h.records, h.leaving, h.lanes, h.chunks, h.deduplication_ids);
}

// A start goes on from the last record, or from the wall clock if that is later.
void print_time(Instant last_record) {
  if (last_record == Instant()) return;
  os::SystemClock clock;
  const Duration ahead = last_record - clock.now();
  fmt::print("  last record of {}", format_instant(last_record));
  if (ahead >= os::Timekeeper::kNewsworthy)
    fmt::print(", {} ahead of this machine's clock: time goes on from there", format_span(ahead));
  fmt::print("\n");
}

enum class Finding { kSound, kDamaged, kOvertaken };

Finding inspect_shard(os::Directory& directory, const broker::DataDirectory& data, ShardIndex shard,
                      const InspectSettings& settings) {
  const std::string store_path = data.store_path(shard);
  fmt::print("shard {}\n", shard.value());
  std::unique_ptr<const store::RocksStore> store;
  bool sound = true;
  if (std::filesystem::exists(store_path)) {
    sound = print_store(store_path);
    auto opened = store::RocksStore::open_read_only(store_path, data.store_identity(shard));
    if (!opened) {
      fmt::print("  DAMAGED: {}\n", opened.error().message);
      return Finding::kDamaged;
    }
    store = std::move(*opened);
  }
  Replay replay(shard, settings.facts, store.get());
  if (const Status loaded = replay.load(); !loaded) {
    fmt::print("  DAMAGED: {}\n", loaded.error().message);
    return Finding::kDamaged;
  }
  const auto survey = journal::survey(
      directory,
      [&](Position position, std::string_view bytes) { return replay.take(position, bytes); },
      data.shard_of(shard));
  if (!survey) {
    fmt::print("  DAMAGED: {}\n", survey.error().message);
    return Finding::kDamaged;
  }
  if (replay.overtaken()) return Finding::kOvertaken;
  print_segments(*survey);
  if (!survey->usable()) fmt::print("  below: what the records up to the first damage say\n");
  fmt::print("  {} records, {} queues\n", replay.records(), replay.engine().queue_count());
  print_time(replay.now());
  if (store) print_holdings(replay.engine().holdings());
  replay.engine().for_each_queue(
      [&](const engine::Queue& queue) { print_queue(queue, settings.messages, store.get()); });
  for (const std::string& problem : survey->problems) fmt::print("  DAMAGED: {}\n", problem);
  return sound && survey->usable() ? Finding::kSound : Finding::kDamaged;
}

// A running server may make a checkpoint between two looks.
bool inspect_shard_again(os::Directory& directory, const broker::DataDirectory& data,
                         ShardIndex shard, const InspectSettings& settings) {
  constexpr int kLooksMax = 10;
  for (int look = 0; look < kLooksMax; ++look) {
    const Finding finding = inspect_shard(directory, data, shard, settings);
    if (finding != Finding::kOvertaken) return finding == Finding::kSound;
    fmt::print("  the server made a checkpoint meanwhile; again:\n");
  }
  fmt::print("  the server makes checkpoints faster than they can be read\n");
  return false;
}

}  // namespace

int inspect(const InspectSettings& settings) {
  auto root = os::open_existing_directory(settings.data);
  if (!root) {
    fmt::print(stderr, "stanchion: {}\n", root.error().message);
    return 1;
  }
  const auto data = broker::DataDirectory::look_at(**root);
  if (!data) {
    fmt::print(stderr, "stanchion: {}\n", data.error().message);
    return 1;
  }
  fmt::print("{}: {} shard{}\n", settings.data, data->shard_count(),
             data->shard_count() == 1 ? "" : "s");
  bool sound = true;
  for (std::uint32_t i = 0; i < data->shard_count(); ++i) {
    auto directory = data->shard_directory(ShardIndex(i));
    if (!directory) {
      fmt::print("shard {}\n  DAMAGED: {}\n", i, directory.error().message);
      sound = false;
      continue;
    }
    sound = inspect_shard_again(**directory, *data, ShardIndex(i), settings) && sound;
  }
  fmt::print("{}\n", sound ? "everything is readable" : "there is damage, see above");
  return sound ? 0 : 1;
}

}  // namespace stanchion::cli
