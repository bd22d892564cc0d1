// Fleets whose logs lose their ends, or everything, or are restored: see lost_log_run.h.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "os/entropy.h"
#include "sim/lost_log_run.h"

namespace stanchion::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kWorlds = 4;
constexpr std::uint64_t kNewWorlds = 2;
#else
constexpr std::uint64_t kWorlds = 60;
constexpr std::uint64_t kNewWorlds = 20;
#endif
constexpr std::uint64_t kBrokenWorlds = 60;

TEST(LostTails, AreGoneOnWithByNobodyWhoHasMore) {
  std::uint64_t held_back = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const LostLogOutcome outcome = run_lost_log(seed);
    EXPECT_FALSE(outcome.violation) << report(outcome);
    held_back += outcome.held_back;
  }
  fmt::print("{} of {} fleets have a shard that is given up somewhere\n", held_back, kWorlds);
  EXPECT_GT(held_back, kWorlds / 3);
}

TEST(LostTails, AreGoneOnWithByNobodyWhoHasMoreInNewWorlds) {
  os::SystemEntropy entropy;
  const std::uint64_t first = entropy.u64() >> 16;
  fmt::print("note: {} new fleets that lose a log's end from seed {} on\n", kNewWorlds, first);
  std::fflush(stdout);
  for (std::uint64_t seed = first; seed < first + kNewWorlds; ++seed) {
    const LostLogOutcome outcome = run_lost_log(seed);
    EXPECT_FALSE(outcome.violation) << report(outcome);
  }
}

// The log has lost an entry, and its writer heard afterwards that it was there.
TEST(LostTails, AWriterGivesWayWhoseEntryIsLostBeforeItIsAcknowledged) {
  const LostLogOutcome outcome = run_lost_log(940'000'088);
  EXPECT_FALSE(outcome.violation) << report(outcome);
}

// The log is made anew, and soon has more records than a store that was last saved by a release that
// knew no digests.
TEST(LostTails, AStoreWithoutADigestDoesNotGoOnWithALogThatHasOne) {
  const LostLogOutcome outcome = run_lost_log(930'000'000'284);
  EXPECT_FALSE(outcome.violation) << report(outcome);
}

// An owner that does not know that the log has lost its end trims the rest: no store fits any more.
TEST(LostTails, AShardIsHeldBackAlsoIfNobodyHasAStoreToCopy) {
  const LostLogOutcome outcome = run_lost_log(930'000'000'528);
  EXPECT_FALSE(outcome.violation) << report(outcome);
}

// The engine's own checks may notice it first.
TEST(LostTailsDeathTest, NoticesWhoGoesOnWithAnotherPast) {
  const auto play_all = [] {
    for (std::uint64_t seed = 1; seed <= kBrokenWorlds; ++seed)
      if (const auto outcome = run_lost_log(seed, {.checks_past = false}); outcome.violation) {
        fmt::print(stderr, "check failed: seed {}: {}\n", seed, *outcome.violation);
        std::_Exit(1);
      }
    fmt::print(stderr, "nobody noticed\n");
    std::_Exit(1);
  };
  EXPECT_DEATH(play_all(), "check failed");
}

}  // namespace
}  // namespace stanchion::sim
