#include "sim/fleet_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "sim/game.h"
#include "sim/plan.h"
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
    wish_every = random.pick<int>({0, 0, 5, 20});
    fleet.operator_seed = random.next();
    // Shorter than some cuts, or longer than all.
    fleet.write_timeout = std::chrono::seconds(fleet.operator_seed % 2 == 0 ? 2 : 30);
    damage_every = random.pick<int>({0, 0, 0, 10});
    // Not where a rule is left out: that is noticed by worlds that were found without backups.
    FleetRules others = rules;
    others.later_faults = true;
    if (others == FleetRules() && fleet.operator_seed / 2 % 4 == 0) backup_every = 3;
    if (rules.is_troubled()) add_trouble(Random(fleet.operator_seed).fork());
    if (!plan.apart) return;
    // Owners that cannot reach their logs, while other shards go from node to node.
    cut_every = 5;
    kill_every = 10;
  }

  // What came later is drawn from a stream of its own, so that the other worlds stay as they were.
  void add_trouble(Random random) {
    if (random.chance(40)) return;
    fleet.trouble_seed = random.next() | 1;
    LogTrouble& trouble = fleet.trouble;
    trouble.one_under_way = random.chance(70);
    if (trouble.one_under_way) {
      trouble.anew = random.pick<unsigned>({0, 3, 20});
      trouble.fatal = random.pick<unsigned>({0, 0, 1});
    }
    trouble.late = random.pick<unsigned>({0, 0, 5, 30});
    if (random.chance(50)) {
      trouble.control_lost = random.pick<unsigned>({0, 5, 20});
      trouble.control_late = random.pick<unsigned>({0, 5, 20});
      trouble.control_doubled = random.pick<unsigned>({0, 10});
      trouble.control_again = random.pick<unsigned>({0, 10});
    }
    fleet.slow_copies = random.chance(60);
    partition_every = random.pick<int>({0, 5, 20});
    pair_every = random.pick<int>({0, 5, 20});
    stale_every = random.pick<int>({0, 0, 5, 20});
    litter_every = random.pick<int>({0, 0, 5});
    strike_every = random.pick<int>({0, 0, 5});
    clock_every = random.pick<int>({0, 5});
    isolate_every = random.pick<int>({0, 0, 20});
    trouble.clock_is_behind = random.chance(20);
    trouble.verdicts_lost = random.pick<unsigned>({0, 0, 10});
  }

  FleetOptions fleet;
  // Once in this many seconds, on average; 0: never.
  int kill_every, pause_every, cut_every, drain_every, lose_disk_every, wish_every, damage_every;
  int backup_every = 0, partition_every = 0, pair_every = 0, stale_every = 0, litter_every = 0,
      strike_every = 0, clock_every = 0, isolate_every = 0;
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
    fleet_.boot_all();
    game_.create_queues();
    game_.every(fleet_plan_.kill_every, [this] { fleet_.kill(); });
    game_.every(fleet_plan_.pause_every, [this] { fleet_.pause(); });
    game_.every(fleet_plan_.cut_every, [this] { fleet_.cut(); });
    game_.every(fleet_plan_.drain_every, [this] { fleet_.drain(); });
    game_.every(fleet_plan_.lose_disk_every, [this] { fleet_.lose_disk(); });
    game_.every(fleet_plan_.wish_every, [this] { fleet_.wish(); });
    game_.every(fleet_plan_.damage_every, [this] { fleet_.damage(); });
    game_.every(fleet_plan_.backup_every, [this] { fleet_.back_up(); });
    game_.every(fleet_plan_.partition_every, [this] { fleet_.cut_partitions(); });
    game_.every(fleet_plan_.pair_every, [this] { fleet_.cut_pair(); });
    game_.every(fleet_plan_.stale_every, [this] { fleet_.read_from_stale_broker(); });
    game_.every(fleet_plan_.litter_every, [this] { fleet_.litter(); });
    game_.every(fleet_plan_.strike_every, [this] { fleet_.strike(); });
    game_.every(fleet_plan_.clock_every, [this] { fleet_.set_clock(); });
    game_.every(fleet_plan_.isolate_every, [this] { fleet_.isolate(); });
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
      "{} boots, {} killed, {} lost disks, {} pauses, {} cuts, {} drains, {} wishes; {} "
      "promotions, {} "
      "losses, "
      "{} releases, {} refused claims, {} copied stores, {} backups; {} damaged logs, {} times "
      "given up; {} "
      "forwarded, {} held, {} in doubt; {} "
      "comparisons of replicas; {} cuts of partitions, {} of pairs, {} stale brokers, {} pieces of "
      "litter, {} fatal errors, {} broken copies, {} killed with a transfer, {} clocks set, {} "
      "stores removed, {} isolated",
      fleet.boots, fleet.kills, fleet.lost_disks, fleet.pauses, fleet.cuts, fleet.drains,
      fleet.wishes, fleet.promotions, fleet.losses, fleet.releases, fleet.refusals, fleet.copies,
      fleet.backups, fleet.damages, fleet.given_up, fleet.forwarded, fleet.held, fleet.unknown,
      fleet.comparisons, fleet.partition_cuts, fleet.pair_cuts, fleet.stale_brokers, fleet.litter,
      fleet.fatal, fleet.broken_copies, fleet.struck, fleet.clocks, fleet.removed_stores,
      fleet.isolations);
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
