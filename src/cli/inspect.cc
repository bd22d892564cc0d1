#include "cli/inspect.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "broker/data_directory.h"
#include "engine/engine.h"
#include "journal/survey.h"
#include "model/fact.h"
#include "os/real_directory.h"

namespace stanchion::cli {
namespace {

std::string format_instant(Instant t) {
  const auto seconds = static_cast<std::time_t>(to_millis(t) / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), to_millis(t) % 1000);
}

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

void print_queue(const engine::Queue& queue, bool messages) {
  const engine::Counts& counts = queue.counts();
  fmt::print("  queue {} ({}): {} visible, {} in flight, {} delayed", queue.ref.name,
             queue.fifo() ? "FIFO" : "standard", counts.visible, counts.in_flight, counts.delayed);
  if (const auto oldest = queue.oldest_entered())
    fmt::print(", oldest from {}", format_instant(*oldest));
  fmt::print("\n");
  if (!messages) return;
  queue.for_each_message([](const engine::Message& m) {
    fmt::print("    {} {} {} bytes, sent {}, received {} times, {}\n", m.seq.value(),
               m.content->id().text(), m.content->body().size(), format_instant(m.content->sent()),
               m.receive_count, name_of_state(m.state));
  });
}

// Replays a shard's records as far as they can be read, into an engine of its own.
class Replay {
 public:
  Replay(ShardIndex shard, bool print_facts)
      : engine_(engine::Options{shard, false}), print_facts_(print_facts) {}

  Status take(Position position, std::string_view bytes) {
    const auto record = parse_record(bytes);
    if (!record)
      return fail(fmt::format("record {}: {}", position.value(), record.error().message));
    now_ = std::max(now_, record->at);
    engine_.advance(now_);
    for (const Fact& fact : record->facts) {
      if (print_facts_)
        fmt::print("  {} {} {}\n", position.value(), format_instant(record->at), describe(fact));
      engine_.apply(fact, now_);
    }
    ++records_;
    return {};
  }

  const engine::Engine& engine() const { return engine_; }
  std::uint64_t records() const { return records_; }

 private:
  engine::Engine engine_;
  bool print_facts_;
  Instant now_{};
  std::uint64_t records_ = 0;
};

bool inspect_shard(os::Directory& directory, ShardIndex shard, const InspectSettings& settings) {
  fmt::print("shard {}\n", shard.value());
  Replay replay(shard, settings.facts);
  const auto survey = journal::survey(directory, [&](Position position, std::string_view bytes) {
    return replay.take(position, bytes);
  });
  if (!survey) {
    fmt::print("  DAMAGED: {}\n", survey.error().message);
    return false;
  }
  print_segments(*survey);
  if (!survey->usable()) fmt::print("  below: what the records up to the first damage say\n");
  fmt::print("  {} records, {} queues\n", replay.records(), replay.engine().queue_count());
  replay.engine().for_each_queue(
      [&](const engine::Queue& queue) { print_queue(queue, settings.messages); });
  for (const std::string& problem : survey->problems) fmt::print("  DAMAGED: {}\n", problem);
  return survey->usable();
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
    sound = inspect_shard(**directory, ShardIndex(i), settings) && sound;
  }
  fmt::print("{}\n", sound ? "everything is readable" : "there is damage, see above");
  return sound ? 0 : 1;
}

}  // namespace stanchion::cli
