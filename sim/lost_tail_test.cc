// Fleets whose logs lose their ends, or everything, at a random moment, while clients send and nodes
// are killed, paused and cut off. What was acknowledged is gone then, so no promise to clients is
// looked at, but what the fleet makes of it: nobody goes on with another past, no store that has more
// is replaced (F8), replicas that follow agree (F1), and in the end each shard is served, or given to
// nobody because somebody has what its log has lost, or because the log has a hole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "sim/fleet.h"
#include "sim/violation.h"

namespace stanchion::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kWorlds = 4;
#else
constexpr std::uint64_t kWorlds = 60;
#endif
constexpr std::uint64_t kBrokenWorlds = 60;
constexpr int kQueues = 6;
constexpr Micros kSettling = 400 * kSecond;

class LostTailWorld {
 public:
  LostTailWorld(std::uint64_t seed, const FleetRules& rules)
      : world_(seed, false),
        auditor_(world_),
        random_(world_.random().fork()),
        shards_(random_.between<std::uint32_t>(1, 2)),
        fleet_(world_, auditor_,
               FleetOptions{.nodes = random_.chance(70) ? 3 : 4,
                            .shards = shards_,
                            .trouble = {.one_under_way = random_.chance(50)},
                            .rules = rules}) {}

  void play() {
    fleet_.boot_all();
    let_pass(20 * kSecond);
    fleet_.restart_all();  // With a program that writes digests.
    let_pass(20 * kSecond);
    for (int i = 0; i < kQueues; ++i)
      fleet_.call(CreateQueue{queue(i), {}, {}}, [](const Reply*) {});
    go_on_for(random_.between<Micros>(20, 120) * kSecond);
    lose();
    go_on_for(random_.between<Micros>(30, 300) * kSecond);
    fleet_.end_of_faults();
    for (Micros waited = 0; !fleet_.is_settled(); waited += kSecond) {
      if (waited > kSettling)
        throw Violation("a shard is neither served nor held back" + fleet_.describe_replicas());
      let_pass(kSecond);
    }
    fleet_.compare_replicas();
  }

  bool is_held_back() const { return !fleet_.is_whole(); }

 private:
  static QueueRef queue(int number) {
    return {"000000000000", "us-east-1", fmt::format("orders-{}", number)};
  }
  void let_pass(Micros time) {
    for (const Micros until = world_.now() + time; world_.now() < until;) world_.step();
  }

  void go_on_for(Micros time) {
    const Micros end = world_.now() + time;
    const bool is_calm = random_.chance(30);
    while (world_.now() < end) {
      SendMessage request{queue(random_.between(0, kQueues - 1)), "", {}};
      request.message.body = fmt::format("m{}", ++sent_);
      fleet_.call(std::move(request), [](const Reply*) {});
      if (!is_calm && random_.chance(4)) break_something();
      let_pass(random_.between<Micros>(10, 1000) * kMillisecond);
    }
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
    switch (random_.below(4)) {
      case 0:
        return fleet_.lose_end(shard);
      case 1:
        return fleet_.make_log_anew(shard);
      default:
        return fleet_.lose_newest(shard, random_.between<std::uint64_t>(1, 40));
    }
  }

  World world_;
  Auditor auditor_;
  Random random_;
  const std::uint32_t shards_;
  Fleet fleet_;
  int sent_ = 0;
};

struct Outcome {
  std::optional<std::string> violation;
  bool held_back = false;
};

Outcome play(std::uint64_t seed, const FleetRules& rules = {}) {
  const auto world = std::make_unique<LostTailWorld>(seed, rules);
  try {
    world->play();
  } catch (const Violation& violation) {
    return {violation.what()};
  }
  return {std::nullopt, world->is_held_back()};
}

TEST(LostTails, AreGoneOnWithByNobodyWhoHasMore) {
  std::uint64_t held_back = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const Outcome outcome = play(seed);
    EXPECT_FALSE(outcome.violation) << "seed " << seed << ": " << *outcome.violation;
    held_back += outcome.held_back;
  }
  fmt::print("{} of {} fleets have a shard that is given up somewhere\n", held_back, kWorlds);
  EXPECT_GT(held_back, kWorlds / 3);
}

// The engine's own checks may notice it first.
TEST(LostTailsDeathTest, NoticesWhoGoesOnWithAnotherPast) {
  const auto play_all = [] {
    for (std::uint64_t seed = 1; seed <= kBrokenWorlds; ++seed)
      if (const auto outcome = play(seed, {.checks_past = false}); outcome.violation) {
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
