// Runs simulated worlds: one of them with its trace, or one after the other until a promise breaks.
// A world that breaks one is then shrunk.
//
//   simulate --seed N [--cut CUTS] [--verbose]
//   simulate --seed N --shrink [--seconds N]
//   simulate --soak [--seconds N] [--from SEED]
//   simulate --fleet …                           worlds of a fleet, which are not shrunk: of each seed
//                                                the fleet, and one whose logs lose their ends
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "os/entropy.h"
#include "sim/fleet_run.h"
#include "sim/lost_log_run.h"
#include "sim/run.h"
#include "sim/shrink.h"

namespace stanchion::sim {
namespace {

constexpr int kBroken = 1;
constexpr int kWrongUsage = 2;

constexpr std::chrono::seconds kShrinkTime{120};

struct Arguments {
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> from;
  std::optional<std::uint64_t> seconds;
  Cuts cuts;
  bool soak = false;
  bool fleet = false;
  bool shrink = false;
  bool verbose = false;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--soak") {
      arguments.soak = true;
    } else if (word == "--fleet") {
      arguments.fleet = true;
    } else if (word == "--shrink") {
      arguments.shrink = true;
    } else if (word == "--verbose") {
      arguments.verbose = true;
    } else if (word == "--cut" && i + 1 < argc) {
      const auto cuts = Cuts::parse(argv[++i]);
      if (!cuts) return std::nullopt;
      arguments.cuts = *cuts;
    } else if ((word == "--seed" || word == "--seconds" || word == "--from") && i + 1 < argc) {
      const auto number = parse_decimal(argv[++i]);
      if (!number) return std::nullopt;
      if (word == "--seed") arguments.seed = number;
      if (word == "--from") arguments.from = number;
      if (word == "--seconds") arguments.seconds = number;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.soak == arguments.seed.has_value() || (arguments.soak && arguments.shrink))
    return std::nullopt;
  return arguments;
}

// What happened in all worlds that were played.
struct Played {
  Totals totals;
  Fleet::Statistics fleets;
  std::uint64_t lost_logs = 0, held_back = 0;

  std::string text(bool of_fleets) const {
    if (!of_fleets) return totals.text();
    return fmt::format(
        "{} fleets, {} requests, {} events; {} of them have lost a log's end, and {} of these have "
        "given a shard up\n{}",
        totals.worlds, totals.sum.requests, totals.sum.events, lost_logs, held_back,
        describe(fleets));
  }

  void add(const FleetOutcome& outcome) {
    ++totals.worlds;
    totals.sum.requests += outcome.requests;
    totals.sum.events += outcome.events;
    fleets.add(outcome.fleet);
  }
};

// What became of one world: null if every promise was kept.
std::optional<std::string> play(const Arguments& arguments, std::uint64_t seed, Played& played) {
  if (arguments.fleet) {
    const FleetOutcome fleet = run_fleet(seed, {}, arguments.verbose);
    played.add(fleet);
    if (fleet.violation) return report(fleet);
    const LostLogOutcome lost = run_lost_log(seed, {}, arguments.verbose);
    played.add(lost);
    ++played.lost_logs;
    played.held_back += lost.held_back;
    return lost.violation ? std::optional(report(lost)) : std::nullopt;
  }
  const Outcome outcome = run_world(seed);
  played.totals.add(outcome);
  return outcome.violation ? std::optional(report(outcome)) : std::nullopt;
}

int run_fleet_once(const Arguments& arguments) {
  const auto show = [](const char* what, const FleetOutcome& outcome) {
    fmt::print("{}: {}\nhash {:016x}\n", what, describe(outcome.fleet), outcome.hash);
    if (outcome.violation) fmt::print("{}", report(outcome));
    return !outcome.violation;
  };
  if (!show("the fleet", run_fleet(*arguments.seed, {}, arguments.verbose))) return kBroken;
  const LostLogOutcome lost = run_lost_log(*arguments.seed, {}, arguments.verbose);
  return show("the fleet that loses a log's end", lost) ? 0 : kBroken;
}

int run_one(const Arguments& arguments) {
  const Outcome outcome = run_world(*arguments.seed, arguments.verbose, arguments.cuts);
  Totals totals;
  totals.add(outcome);
  fmt::print("{}\nhash {:016x}\n", totals.text(), outcome.hash);
  if (!outcome.violation) return 0;
  fmt::print("{}", report(outcome));
  return kBroken;
}

int shrink_one(std::uint64_t seed, std::chrono::seconds most) {
  fmt::print("seed {}: looking for a smaller world that fails alike, for {} s at most\n", seed,
             most.count());
  std::fflush(stdout);
  const auto found = shrink(seed, most);
  if (!found) {
    fmt::print("seed {} does not fail\n", seed);
    return 0;
  }
  fmt::print(
      "{}\nIn this world, after {} requests:\n{}"
      "See it with: simulate --seed {}{}{} --verbose\n",
      found->failure, found->requests, describe_world(seed, found->cuts), seed,
      found->cuts.empty() ? "" : " --cut ", found->cuts.text());
  return kBroken;
}

// Plays worlds until one fails; `seed` is always that of the current world.
int soak_worlds(const Arguments& arguments, std::uint64_t& seed) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  auto shown = begin;
  Played played;
  const auto seconds_since = [](Clock::time_point then) {
    return std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - then).count();
  };
  for (;; ++seed) {
    if (arguments.seconds && static_cast<std::uint64_t>(seconds_since(begin)) >= *arguments.seconds)
      break;
    if (const auto violation = play(arguments, seed, played)) {
      fmt::print("{}\n{}", played.text(arguments.fleet), *violation);
      return kBroken;
    }
    if (seconds_since(shown) < 5) continue;
    shown = Clock::now();
    fmt::print("{} s: {} worlds, {} requests, {} {}, last seed {}\n", seconds_since(begin),
               played.totals.worlds, played.totals.sum.requests,
               arguments.fleet ? played.fleets.kills : played.totals.sum.server.crashes,
               arguments.fleet ? "kills" : "power cuts", seed);
    std::fflush(stdout);
  }
  fmt::print("{}\n", played.text(arguments.fleet));
  return 0;
}

// In a separate process, which a failed check ends; this one stays to examine the failure.
int soak(const Arguments& arguments) {
  void* shared = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED, "there is memory to be had");
  auto& seed = *static_cast<std::uint64_t*>(shared);
  os::SystemEntropy entropy;
  seed = arguments.from.value_or(entropy.u64() >> 16);
  fmt::print("from seed {} on\n", seed);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  CHECK(child >= 0, "there is a process to be had");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int status = soak_worlds(arguments, seed);
    std::fflush(nullptr);
    std::_Exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  if (!arguments.fleet) shrink_one(seed, kShrinkTime);
  return kBroken;
}

}  // namespace
}  // namespace stanchion::sim

int main(int argc, char** argv) {
  using namespace stanchion::sim;
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(
        "usage: simulate --seed N [--cut CUTS] [--verbose]\n"
        "       simulate --seed N --shrink [--seconds N]\n"
        "       simulate --soak [--seconds N] [--from SEED]\n"
        "       simulate --fleet ...\n",
        stderr);
    return kWrongUsage;
  }
  name_seed_on_abort();
  if (arguments->soak) return soak(*arguments);
  if (arguments->fleet) return run_fleet_once(*arguments);
  if (!arguments->shrink) return run_one(*arguments);
  return shrink_one(*arguments->seed,
                    arguments->seconds ? std::chrono::seconds(*arguments->seconds) : kShrinkTime);
}
