#include "sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "sim/game.h"
#include "sim/plan.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

constexpr std::size_t kLinesShown = 60;

// What the process says if a failed check ends it.
std::array<char, 160> g_last_words{};
std::size_t g_last_words_size = 0;

// The plan depends on the seed alone; everything else also on the salt.
Plan make_plan(World& world, const Cuts& cuts) {
  Plan plan(world.random().fork());
  cuts.apply(plan);
  if (cuts.salt != 0) {
    Random salted(world.random().next() + cuts.salt);
    world.random() = salted.fork();
  }
  return plan;
}

class Run {
 public:
  Run(std::uint64_t seed, bool verbose, const Cuts& cuts)
      : world_(seed, verbose),
        plan_(make_plan(world_, cuts)),
        auditor_(world_),
        server_(world_, auditor_, plan_.server),
        game_(world_, plan_, auditor_, server_, [this] { stepped(); }),
        random_(game_.random()) {}

  void play() {
    auditor_.decides_about(plan_.server.decision_messages);
    server_.boot();
    game_.create_queues();
    schedule_faults();
    game_.let_clients_play();
    world_.trace("peace");
    game_.end_faults();
    server_.end_of_faults();
    game_.wait(10 * kSecond);
    game_.receive_around_expiry();
    game_.empty_everything();
    server_.compare_with_replay();
    world_.mix(server_.fingerprint());
  }

  void fill(Outcome& outcome) const {
    outcome.hash = world_.hash();
    outcome.requests = game_.crowd().requests_made;
    outcome.events = world_.events_run();
    outcome.audit = auditor_.statistics();
    outcome.server = server_.statistics();
    outcome.clock_jumps = clock_jumps_;
    if (outcome.violation)
      outcome.last_lines.assign(world_.last_lines().begin(), world_.last_lines().end());
  }

 private:
  void stepped() {
    server_.watch_time();
    if (world_.events_run() % 4096 == 0) server_.compare_with_replay();
  }

  void schedule_faults() {
    game_.every(plan_.crash_every, [this] {
      if (plan_.damage && random_.chance(50)) server_.damage_at_next_boot();
      if (random_.chance(30)) server_.crash_in_next_recovery();
      if (random_.chance(50)) {
        server_.crash();
      } else {
        server_.crash_within(random_.below(30));
      }
    });
    game_.every(plan_.kill_every, [this] { server_.kill(); });
    game_.every(plan_.stop_every, [this] {
      if (plan_.damage && random_.chance(50)) server_.damage_at_next_boot();
      server_.stop();
    });
    game_.every(plan_.failing_disk_every, [this] {
      const std::uint64_t n = random_.between<std::uint64_t>(1, 12);
      random_.chance(50) ? server_.fail_sync(n) : server_.fail_write(n);
    });
    game_.every(plan_.failing_store_every, [this] { server_.fail_store(); });
    game_.every(plan_.full_disk_every, [this] {
      server_.fill_disk(random_.chance(50) ? 0 : random_.below(200 << 10));
      world_.schedule(random_.between<Micros>(1, 8) * plan_.full_disk_every * kSecond / 4,
                      kWorldOwner, [this] { server_.free_disk(); });
    });
    game_.every(plan_.clock_jump_every, [this] { jump(); });
  }

  void jump() {
    ++clock_jumps_;
    if (plan_.wall_jumps && random_.chance(50)) return jump_wall();
    std::int64_t seconds = random_.pick<std::int64_t>({5, 40, 70, 200, 270, 310, 600});
    if (plan_.long_jumps && random_.chance(30))
      seconds = random_.pick<std::int64_t>({13 * 3600, 5 * 86'400});
    const std::int64_t millis = seconds * 1000 + static_cast<std::int64_t>(random_.below(1000));
    auditor_.time_jumped();
    if (random_.chance(15)) {
      world_.trace("time is moved by {} s", seconds);
      return server_.move_time(millis);
    }
    world_.suspend(millis);
    world_.trace("the machine was suspended for {} s", seconds);
    server_.time_has_passed(random_.chance(50));
  }

  // Clients must not notice this.
  void jump_wall() {
    std::int64_t seconds = random_.pick<std::int64_t>({1, 10, 60, 600, 7200, 2 * 86'400});
    if (random_.chance(50)) seconds = -seconds;
    world_.move_wall(seconds * 1000 + static_cast<std::int64_t>(random_.below(1000)));
    world_.trace("the wall clock jumps by {} s", seconds);
  }

  World world_;
  const Plan plan_;
  Auditor auditor_;
  Server server_;
  Game game_;
  Random& random_;  // The game's.
  std::uint64_t clock_jumps_ = 0;
};

}  // namespace

std::string describe_world(std::uint64_t seed, const Cuts& cuts) {
  World world(seed, false);
  return make_plan(world, cuts).text();
}

Outcome run_world(std::uint64_t seed, bool verbose, const Cuts& cuts) {
  name_on_abort(seed, "");
  Outcome outcome;
  outcome.seed = seed;
  outcome.cuts = cuts;
  const auto run = std::make_unique<Run>(seed, verbose, cuts);
  try {
    run->play();
  } catch (const Violation& violation) {
    outcome.violation = violation.what();
  }
  run->fill(outcome);
  return outcome;
}

void Totals::add(const Outcome& outcome) {
  ++worlds;
  sum.requests += outcome.requests;
  sum.events += outcome.events;
  sum.clock_jumps += outcome.clock_jumps;
  const auto add_up = [](auto& into, const auto& from) {
    // Both are plain counters.
    auto* to = reinterpret_cast<std::uint64_t*>(&into);
    const auto* of = reinterpret_cast<const std::uint64_t*>(&from);
    static_assert(sizeof into % sizeof(std::uint64_t) == 0);
    for (std::size_t i = 0; i < sizeof into / sizeof(std::uint64_t); ++i) to[i] += of[i];
  };
  add_up(sum.audit, outcome.audit);
  add_up(sum.server, outcome.server);
}

std::string Totals::text() const {
  const auto& a = sum.audit;
  const auto& s = sum.server;
  return fmt::format(
      "{} worlds, {} requests, {} events\n"
      "  faults    {} power cuts, {} of them in recovery besides, {} killed, {} clean stops, {} "
      "torn "
      "tails, {} failing syncs, {} failing writes, {} failed stores, {} full disks, {} damaged "
      "segments ({} "
      "refused), "
      "{} clock jumps\n"
      "  audited   {} sends, {} deliveries, {} deletes ({} while the disk was full), {} in doubt, "
      "{} duplicates, {} dead letters, {} brought back, {} repeated attempts, {} taken back, {} "
      "empty receives, {} refused for space, {} because the store failed, {} counts, {} places in "
      "line, {} looks at {} messages, {} choices that got {}\n"
      "  engines   {} boots, {} from checkpoints, {} queues of them cold, {} comparisons with "
      "replay\n"
      "  store     {} checkpoints, {} cold reads\n"
      "  at the end {} messages were found",
      worlds, sum.requests, sum.events, s.crashes, s.crashes_in_recovery, s.process_deaths,
      s.clean_stops, s.torn_tails, s.failed_syncs, s.failed_writes, s.failed_stores, s.full_disks,
      s.damages, s.damages_refused, sum.clock_jumps, a.sends, a.deliveries, a.deletes,
      a.drained_while_full, a.doubts, a.duplicates, a.dead_letters, a.redrives, a.repeated_attempts,
      s.cancels, a.empty_receives, a.refused_full, a.refused_failing, a.counts_checked,
      a.places_compared, a.peeks, a.sightings, a.choices, a.chosen, s.boots,
      s.recoveries_from_store, s.cold_boots, s.replays_compared, s.checkpoints, s.cold_reads,
      a.found_at_end);
}

std::string report(const Outcome& outcome) {
  std::string text = fmt::format("seed {}: {}\n", outcome.seed, *outcome.violation);
  // The tag that the sentence names, if it names one: "m17".
  const std::string& sentence = *outcome.violation;
  std::string tag;
  for (std::size_t at = sentence.find(" m"); at != std::string::npos && tag.empty();
       at = sentence.find(" m", at + 1)) {
    const std::size_t end = sentence.find_first_not_of("0123456789", at + 2);
    if (end > at + 2 && end != std::string::npos) tag = sentence.substr(at + 1, end - at - 1);
  }
  std::vector<const std::string*> shown;
  for (const std::string& line : outcome.last_lines) {
    const std::size_t at = tag.empty() ? std::string::npos : line.find(tag + " ");
    if (at != std::string::npos) shown.push_back(&line);
  }
  if (shown.size() > kLinesShown)
    shown.erase(shown.begin(), shown.end() - static_cast<std::ptrdiff_t>(kLinesShown));
  for (const std::string* line : shown) text += fmt::format("  {}\n", *line);
  text += "  …\n";
  const std::size_t tail = std::min<std::size_t>(outcome.last_lines.size(), 15);
  for (std::size_t i = outcome.last_lines.size() - tail; i < outcome.last_lines.size(); ++i)
    text += fmt::format("  {}\n", outcome.last_lines[i]);
  if (outcome.cuts.empty())
    return text + fmt::format(
                      "See it again with: simulate --seed {} --verbose\n"
                      "Make it smaller with: simulate --seed {} --shrink\n",
                      outcome.seed, outcome.seed);
  return text + fmt::format("See it again with: simulate --seed {} --cut {} --verbose\n",
                            outcome.seed, outcome.cuts.text());
}

void name_seed_on_abort() {
  std::signal(SIGABRT, [](int) {
    // Nothing is formatted in a signal handler.
    std::fwrite(g_last_words.data(), 1, g_last_words_size, stderr);
    std::_Exit(134);
  });
}

void name_on_abort(std::uint64_t seed, std::string_view options) {
  const auto words = fmt::format_to_n(
      g_last_words.data(), g_last_words.size(),
      "simulation: the seed was {}; see it again with: simulate {}--seed {} --verbose\n", seed,
      options, seed);
  g_last_words_size = std::min(words.size, g_last_words.size());
}

}  // namespace stanchion::sim
