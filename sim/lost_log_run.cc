#include "sim/lost_log_run.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sim/fleet_trouble.h"
#include "sim/plan.h"
#include "sim/run.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

constexpr int kQueues = 6;
constexpr Micros kSettling = 400 * kSecond;
// The streams of random numbers that came later, so that worlds without trouble stay as they were.
constexpr std::uint64_t kLaterStream = 0x10'57'10'65;

std::string queue_name(int number) {
  return fmt::format("orders-{}", number);
}

class LostLogRun {
 public:
  LostLogRun(std::uint64_t seed, const FleetRules& rules, bool verbose)
      : world_(seed, verbose),
        later_(seed ^ kLaterStream),
        trouble_(later_.fork()),
        skew_(is_troubled() ? later_.pick<int>({0, 0, 5, 400}) : 0),
        auditor_(world_, skew_, kSecond),
        random_(world_.random().fork()),
        shards_(random_.between<std::uint32_t>(1, 2)),
        fleet_(world_, auditor_, options(rules)) {}

  void play() {
    fleet_.boot_all();
    let_pass(20 * kSecond);
    fleet_.restart_all();  // With a program that writes digests.
    let_pass(20 * kSecond);
    create_queues();
    if (is_troubled()) begin_trouble();
    go_on_for(random_.between<Micros>(20, 120) * kSecond);
    lose();
    go_on_for(random_.between<Micros>(30, 300) * kSecond);
    world_.trace("peace");
    faults_ = false;
    fleet_.end_of_faults();
    for (Micros waited = 0; !fleet_.is_settled(); waited += kSecond) {
      if (waited > kSettling && fleet_.is_held_back()) break;
      if (waited > kSettling)
        throw Violation("a shard is neither served nor held back" + fleet_.describe_replicas());
      let_pass(kSecond);
    }
    fleet_.compare_replicas();
  }

  void fill(LostLogOutcome& outcome) const {
    outcome.held_back = !outcome.violation && !fleet_.is_whole();
    outcome.hash = world_.hash();
    outcome.requests = static_cast<std::uint64_t>(called_);
    outcome.events = world_.events_run();
    outcome.fleet = fleet_.statistics();
    if (outcome.violation)
      outcome.last_lines.assign(world_.last_lines().begin(), world_.last_lines().end());
  }

 private:
  bool is_troubled() const { return trouble_.seed != 0; }

  FleetOptions options(const FleetRules& rules) {
    FleetOptions options{.nodes = random_.chance(70) ? 3 : 4,
                         .shards = shards_,
                         .trouble = {.one_under_way = random_.chance(50)},
                         .rules = rules};
    if (!is_troubled()) return options;
    trouble_.apply(options);
    options.skew_max = skew_;
    options.operator_seed = later_.next();
    return options;
  }

  void call(Request request) {
    ++called_;
    fleet_.call(std::move(request), [](const Reply*) {});
  }

  void create_queues() {
    for (int i = 0; i < kQueues; ++i) call(CreateQueue{ref_of(queue_name(i)), {}, {}});
  }

  void let_pass(Micros time) {
    for (const Micros until = world_.now() + time; world_.now() < until;) world_.step();
  }

  void every(int seconds, const std::function<void()>& what) {
    if (seconds == 0) return;
    const Micros next = later_.between<Micros>(1, 2 * seconds * kSecond);
    world_.schedule(next, kWorldOwner, [this, seconds, what] {
      if (!faults_) return;
      what();
      every(seconds, what);
    });
  }

  // The last queue has the dead letters of all others.
  void begin_trouble() {
    let_pass(5 * kSecond);
    for (int i = 0; i + 1 < kQueues; ++i)
      call(SetQueueAttributes{ref_of(queue_name(i)),
                              {{"RedrivePolicy", redrive_policy(queue_name(kQueues - 1), 1)}}});
    trouble_.schedule(fleet_,
                      [this](int seconds, std::function<void()> what) { every(seconds, what); });
    every(later_.pick<int>({0, 0, 30}), [this] { fleet_.lose_disk(); });
    every(later_.pick<int>({0, 0, 5, 20}), [this] { fleet_.request_move(); });
    every(later_.pick<int>({0, 0, 10}), [this] { fleet_.damage(); });
    every(later_.pick<int>({0, 0, 3}), [this] { fleet_.back_up(); });
  }

  void go_on_for(Micros time) {
    const Micros end = world_.now() + time;
    const bool is_calm = random_.chance(30);
    while (world_.now() < end) {
      SendMessage request{ref_of(queue_name(random_.between(0, kQueues - 1))), "", {}};
      request.message.body = fmt::format("m{}", ++sent_);
      call(std::move(request));
      if (is_troubled() && later_.chance(50)) receive();
      if (!is_calm && random_.chance(4)) break_something();
      let_pass(random_.between<Micros>(10, 1000) * kMillisecond);
    }
  }

  void receive() {
    ReceiveMessage request;
    request.queue = ref_of(queue_name(later_.between(0, kQueues - 1)));
    request.max_number_of_messages = 10;
    request.visibility_timeout = later_.pick<std::int64_t>({0, 1, 600});
    call(std::move(request));
  }

  void break_something() {
    switch (random_.below(4)) {
      case 0:
        return fleet_.kill();
      case 1:
        return fleet_.pause();
      case 2:
        return fleet_.cut();
      default:
        return fleet_.drain();
    }
  }

  void lose() {
    const ShardIndex shard(static_cast<std::uint32_t>(random_.below(shards_)));
    if (is_troubled() && later_.chance(20)) return restore(shard);
    switch (random_.below(4)) {
      case 0:
        return fleet_.lose_end(shard);
      case 1:
        return fleet_.make_log_anew(shard);
      default:
        return fleet_.lose_newest(shard, random_.between<std::uint64_t>(1, 40));
    }
  }

  void restore(ShardIndex shard) {
    const SharedLog::Disk older = fleet_.disk_of(shard);
    go_on_for(later_.between<Micros>(5, 120) * kSecond);
    fleet_.restore_log(shard, older);
  }

  World world_;
  Random later_;
  const FleetTrouble trouble_;
  const Duration skew_;
  Auditor auditor_;
  Random random_;
  const std::uint32_t shards_;
  Fleet fleet_;
  bool faults_ = true;
  int sent_ = 0;
  int called_ = 0;
};

}  // namespace

LostLogOutcome run_lost_log(std::uint64_t seed, const FleetRules& rules, bool verbose) {
  LostLogOutcome outcome;
  outcome.seed = seed;
  name_on_abort(seed, "--fleet ");
  const auto run = std::make_unique<LostLogRun>(seed, rules, verbose);
  try {
    run->play();
  } catch (const Violation& violation) {
    outcome.violation = violation.what();
  }
  run->fill(outcome);
  return outcome;
}

}  // namespace stanchion::sim
