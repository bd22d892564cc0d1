#include "sim/fleet_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/fleet_trouble.h"
#include "sim/game.h"
#include "sim/plan.h"
#include "sim/run.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

// The longest that a fleet may take until it is whole again.
constexpr Micros kHealing = 200 * kSecond;

// What was handed over and got lost is handed over again within a minute.
constexpr Micros kSettling = 130 * kSecond;

struct FleetPlan {
  FleetPlan(const Plan& plan, const FleetRules& rules, Random random) {
    fleet.nodes = random.chance(80) ? 3 : random.between(2, 5);
    fleet.shards = plan.server.shards;
    fleet.loops = plan.server.loops;
    fleet.keeping = plan.server.keeping;
    fleet.memory = plan.server.memory;
    fleet.decision_messages = plan.server.decision_messages;
    fleet.background_latency = plan.server.background_latency;
    fleet.skew_max = Duration(random.pick<int>({0, 0, 5, 400}));
    fleet.rules = rules;
    kill_every = random.pick<int>({0, 0, 10, 30});
    pause_every = random.pick<int>({0, 3, 10, 30});
    cut_every = random.pick<int>({0, 5, 20});
    drain_every = random.pick<int>({0, 0, 20});
    lose_disk_every = random.pick<int>({0, 0, 0, 30});
    move_every = random.pick<int>({0, 0, 5, 20});
    fleet.operator_seed = random.next();
    // Shorter than some cuts, or longer than all.
    fleet.write_timeout = std::chrono::seconds(fleet.operator_seed % 2 == 0 ? 2 : 30);
    damage_every = random.pick<int>({0, 0, 0, 10});
    // Not where a rule is left out: that is noticed by worlds that were found without backups.
    FleetRules others = rules;
    others.later_faults = true;
    if (others == FleetRules() && fleet.operator_seed / 2 % 4 == 0) backup_every = 3;
    if (rules.is_troubled()) trouble = FleetTrouble(Random(fleet.operator_seed).fork());
    trouble.apply(fleet);
    if (!plan.apart) return;
    // Owners that cannot reach their logs, while other shards go from node to node.
    cut_every = 5;
    kill_every = 10;
  }

  FleetOptions fleet;
  // Once in this many seconds, on average; 0: never.
  int kill_every, pause_every, cut_every, drain_every, lose_disk_every, move_every, damage_every;
  int backup_every = 0;
  FleetTrouble trouble;
};

class FleetRun {
 public:
  FleetRun(std::uint64_t seed, const FleetRules& rules, bool verbose)
      : world_(seed, verbose),
        plan_(world_.random().fork()),
        fleet_plan_(plan_, rules, world_.random().fork()),
        auditor_(world_, fleet_plan_.fleet.skew_max, kSecond),
        fleet_(world_, auditor_, fleet_plan_.fleet),
        game_(world_, plan_, auditor_, fleet_, [this] { stepped(); }) {}

  void play() {
    auditor_.decides_about(fleet_plan_.fleet.decision_messages);
    fleet_.boot_all();
    game_.create_queues();
    game_.every(fleet_plan_.kill_every, [this] { fleet_.kill(); });
    game_.every(fleet_plan_.pause_every, [this] { fleet_.pause(); });
    game_.every(fleet_plan_.cut_every, [this] { fleet_.cut(); });
    game_.every(fleet_plan_.drain_every, [this] { fleet_.drain(); });
    game_.every(fleet_plan_.lose_disk_every, [this] { fleet_.lose_disk(); });
    game_.every(fleet_plan_.move_every, [this] { fleet_.request_move(); });
    game_.every(fleet_plan_.damage_every, [this] { fleet_.damage(); });
    game_.every(fleet_plan_.backup_every, [this] { fleet_.back_up(); });
    fleet_plan_.trouble.schedule(fleet_, [this](int seconds, std::function<void()> what) {
      game_.every(seconds, std::move(what));
    });
    game_.let_clients_play();
    world_.trace("peace");
    game_.end_faults();
    fleet_.end_of_faults();
    game_.skip_by([this](Micros time) { skip(time); });
    game_.wait(10 * kSecond);
    game_.receive_around_expiry();
    // Until no node is paused, and no poll waits whose client has given up.
    game_.wait(60 * kSecond);
    for (Micros waited = 0; !fleet_.is_whole(); waited += kSecond) {
      if (waited > kHealing)
        throw Violation("F2: the fleet does not become whole again" + fleet_.describe_replicas());
      game_.wait(kSecond);
    }
    game_.empty_everything();
    for (Micros waited = 0; fleet_.has_transfers(); waited += kSecond) {
      if (waited > kSettling) throw Violation("F9: a transfer is not settled");
      game_.wait(kSecond);
    }
    fleet_.compare_replicas();
  }

  void fill(FleetOutcome& outcome) const {
    outcome.hash = world_.hash();
    outcome.requests = game_.crowd().requests_made;
    outcome.events = world_.events_run();
    outcome.audit = auditor_.statistics();
    outcome.fleet = fleet_.statistics();
    if (outcome.violation)
      outcome.last_lines.assign(world_.last_lines().begin(), world_.last_lines().end());
  }

 private:
  // All machines are suspended at the same time.
  void skip(Micros time) {
    auditor_.time_jumped();
    world_.suspend(time / kMillisecond);
    fleet_.time_has_passed();
  }

  void stepped() {
    if (world_.events_run() % 4096 == 0) fleet_.compare_replicas();
  }

  World world_;
  const Plan plan_;
  const FleetPlan fleet_plan_;
  Auditor auditor_;
  Fleet fleet_;
  Game game_;
};

}  // namespace

std::string describe(const Fleet::Statistics& fleet) {
  return fmt::format(
      "{} boots, {} killed, {} lost disks, {} pauses, {} cuts, {} drains, {} moves; {} "
      "promotions, {} "
      "losses, "
      "{} releases, {} refused claims, {} copied stores, {} backups; {} damaged logs, {} times "
      "given up; {} "
      "forwarded, {} held, {} in doubt; {} "
      "comparisons of replicas; {} cuts of partitions, {} of pairs, {} stale brokers, {} pieces of "
      "litter, {} fatal errors, {} broken copies, {} killed with a transfer, {} clocks set, {} "
      "stores removed, {} isolated, {} entries of later releases",
      fleet.boots, fleet.kills, fleet.lost_disks, fleet.pauses, fleet.cuts, fleet.drains,
      fleet.moves, fleet.promotions, fleet.losses, fleet.releases, fleet.refusals, fleet.copies,
      fleet.backups, fleet.damages, fleet.given_up, fleet.forwarded, fleet.held, fleet.unknown,
      fleet.comparisons, fleet.partition_cuts, fleet.pair_cuts, fleet.stale_brokers, fleet.litter,
      fleet.fatal, fleet.broken_copies, fleet.struck, fleet.clocks, fleet.removed_stores,
      fleet.isolations, fleet.later_entries);
}

std::string report(const FleetOutcome& outcome) {
  std::string text = fmt::format("seed {}: {}\n", outcome.seed, *outcome.violation);
  const std::size_t tail = std::min<std::size_t>(outcome.last_lines.size(), 15);
  for (std::size_t i = outcome.last_lines.size() - tail; i < outcome.last_lines.size(); ++i)
    text += fmt::format("  {}\n", outcome.last_lines[i]);
  return text +
         fmt::format("See it again with: simulate --fleet --seed {} --verbose\n", outcome.seed);
}

FleetOutcome run_fleet(std::uint64_t seed, const FleetRules& rules, bool verbose) {
  FleetOutcome outcome;
  outcome.seed = seed;
  name_on_abort(seed, "--fleet ");
  const auto run = std::make_unique<FleetRun>(seed, rules, verbose);
  try {
    run->play();
  } catch (const Violation& violation) {
    outcome.violation = violation.what();
  }
  run->fill(outcome);
  return outcome;
}

}  // namespace stanchion::sim
