// A fixed set of simulated worlds. `simulate --soak` plays others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/run.h"

namespace stanchion::sim {
namespace {

// Sanitizers make everything about ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kWorlds = 40;
#else
constexpr std::uint64_t kWorlds = 300;
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
}

TEST_F(Simulation, TheSameSeedGivesTheSameWorld) {
  for (std::uint64_t seed = 1; seed <= kWorldsPlayedTwice; ++seed)
    EXPECT_EQ(run_world(seed).hash, run_world(seed).hash) << "seed " << seed;
}

}  // namespace
}  // namespace stanchion::sim
