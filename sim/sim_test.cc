// A fixed set of simulated worlds, those that once broke a promise, and some with new seeds.
// `simulate --soak` plays others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "os/entropy.h"
#include "sim/run.h"

namespace stanchion::sim {
namespace {

// About half a minute on one core; sanitizers make everything about ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kWorlds = 40;
constexpr std::uint64_t kNewWorlds = 10;
#else
constexpr std::uint64_t kWorlds = 1500;
constexpr std::uint64_t kNewWorlds = 300;
#endif
constexpr std::uint64_t kWorldsPlayedTwice = 6;

class Simulation : public testing::Test {
 protected:
  static void SetUpTestSuite() { name_seed_on_abort(); }
};

TEST_F(Simulation, PromisesHoldInEveryWorld) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const Outcome outcome = run_world(seed);
    totals.add(outcome);
    ASSERT_FALSE(outcome.violation) << report(outcome);
  }
  fmt::print("{}\n", totals.text());

  // A world without faults keeps every promise.
  const Server::Statistics& server = totals.sum.server;
  const Auditor::Statistics& audit = totals.sum.audit;
  for (const std::uint64_t happened : {server.crashes,
                                       server.crashes_in_recovery,
                                       server.process_deaths,
                                       server.clean_stops,
                                       server.torn_tails,
                                       server.failed_syncs,
                                       server.failed_writes,
                                       server.full_disks,
                                       server.failed_stores,
                                       server.checkpoints,
                                       server.recoveries_from_store,
                                       server.cold_reads,
                                       server.cold_boots,
                                       server.damages_refused,
                                       server.cancels,
                                       totals.sum.clock_jumps,
                                       audit.doubts,
                                       audit.duplicates,
                                       audit.dead_letters,
                                       audit.redrives,
                                       audit.repeated_attempts,
                                       audit.drained_while_full,
                                       audit.refused_full,
                                       audit.places_compared,
                                       audit.found_at_end})
    EXPECT_GT(happened, kWorlds / 100);
}

// Each had its own cause, for which there is a separate test: a world changes with every change of
// what it simulates.
TEST_F(Simulation, PromisesHoldInWorldsInWhichOneWasBroken) {
  for (const std::uint64_t seed :
       {555018086ULL,       555031615ULL,    555035990ULL,    777021808ULL,
        777024405ULL,       777025600ULL,    777055044ULL,    280225090754113ULL,
        23682137735181ULL,  611000001875ULL, 622000012226ULL, 930000003442ULL,
        930000007819ULL,    930000025179ULL, 930000032057ULL, 940000004122ULL,
        950000022198ULL,    960000061901ULL, 970000261827ULL, 1794868092541ULL,
        255358372564642ULL, 7700004765ULL}) {
    const Outcome outcome = run_world(seed);
    EXPECT_FALSE(outcome.violation) << report(outcome);
  }
}

// Every run uses new seeds. STANCHION_SIM_SEED=N begins there again.
TEST_F(Simulation, PromisesHoldInNewWorlds) {
  os::SystemEntropy entropy;
  const char* wanted = std::getenv("STANCHION_SIM_SEED");
  const std::uint64_t first =
      parse_decimal(wanted == nullptr ? "" : wanted).value_or(entropy.u64() >> 16);
  fmt::print("note: {} new worlds from seed {} on\n", kNewWorlds, first);
  std::fflush(stdout);
  for (std::uint64_t seed = first; seed < first + kNewWorlds; ++seed) {
    const Outcome outcome = run_world(seed);
    ASSERT_FALSE(outcome.violation) << report(outcome);
  }
}

TEST_F(Simulation, TheSameSeedGivesTheSameWorld) {
  for (std::uint64_t seed = 1; seed <= kWorldsPlayedTwice; ++seed)
    EXPECT_EQ(run_world(seed).hash, run_world(seed).hash) << "seed " << seed;
}

}  // namespace
}  // namespace stanchion::sim
