// Who is linked well enough to own shards, and what the coordinator makes of it: LK1 to LK3, WA6.
#include "fleet/linkage.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fleet/coordinator.h"
#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

constexpr std::uint32_t kShards = 12;
using Names = std::set<NodeName>;

class LinkageTest : public testing::Test {
 protected:
  void beat(const Names& up) {
    for (const NodeName& name : up) {
      Beat beat{.node = name,
                .process = process_[name],
                .zone = name,
                .address = name,
                .clock = Instant(now_.time_since_epoch()),
                .draining = draining_.contains(name)};
      for (std::uint32_t i = 0; i < kShards; ++i)
        if (const auto& assignment = state_.shard(ShardIndex(i)).assignment;
            assignment && assignment->includes(name))
          beat.reached[ShardIndex(i)] = {Position(100), Position(50), 0};
      if (!silent_.contains(name)) {
        beat.linked.emplace();
        for (const NodeName& other : up)
          if (other != name && !no_link_.contains({name, other})) beat.linked->insert(other);
      }
      state_.apply(beat, now_);
    }
  }
  // Nodes beat and the coordinator decides. How much that is.
  std::size_t let_pass(Duration time, const Names& up) {
    std::size_t made = 0;
    for (const SteadyInstant until = now_ + time; now_ < until;) {
      now_ += kBeatInterval;
      beat(up);
      for (const Assignment& assignment : plan_assignments(state_, now_)) {
        state_.apply(assignment, now_);
        ++made;
      }
    }
    return made;
  }
  void found(const Names& up) {
    state_.apply(CoordinatorClaim{Term(1), *up.begin()}, now_);
    let_pass(kLong, up);
    EXPECT_EQ(let_pass(kLong, up), 0U);
  }
  // The first says so, or both.
  void cut(const NodeName& one, const NodeName& other, bool both = true) {
    no_link_.insert({one, other});
    if (both) no_link_.insert({other, one});
  }
  void heal() { no_link_.clear(); }

  std::size_t owned_by(const NodeName& name) const {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kShards; ++i)
      if (const auto& assignment = state_.shard(ShardIndex(i)).assignment)
        count += assignment->owner == name;
    return count;
  }
  Names owners(const Names& up) const {
    Names found;
    for (const NodeName& name : up)
      if (owned_by(name) > 0) found.insert(name);
    return found;
  }

  static constexpr Duration kLong = 4 * kLinkGrace;
  ControlState state_{kShards};
  SteadyInstant now_{std::chrono::hours(1)};
  std::map<NodeName, std::uint64_t> process_;
  std::set<std::pair<NodeName, NodeName>> no_link_;
  Names silent_, draining_;
};

TEST_F(LinkageTest, AnOwnerThatLosesItsLinksHandsItsShardsOver) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  ASSERT_GT(owned_by("n2"), 0U);
  cut("n2", "n1"), cut("n2", "n3");
  EXPECT_EQ(let_pass(kLinkGrace, all), 0U) << "it may be a blip";
  let_pass(kLong, all);
  EXPECT_EQ(owners(all), (Names{"n1", "n3"}));
  EXPECT_EQ(well_linked(state_, now_), (Names{"n1", "n3"}));
  EXPECT_EQ(let_pass(kLong, all), 0U) << "WA3";
  for (std::uint32_t i = 0; i < kShards; ++i)
    EXPECT_TRUE(state_.shard(ShardIndex(i)).assignment->includes("n2")) << "it follows the logs";
  heal();
  let_pass(kLong, all);
  EXPECT_EQ(owners(all), all);
}

TEST_F(LinkageTest, OneSideThatHasNoLinkIsEnough) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  cut("n1", "n2", false), cut("n3", "n2", false);
  let_pass(kLong, all);
  EXPECT_EQ(owners(all), (Names{"n1", "n3"}));
}

TEST_F(LinkageTest, ABlipMovesNothing) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  for (int i = 0; i < 5; ++i) {
    cut("n2", "n1"), cut("n2", "n3");
    EXPECT_EQ(let_pass(kLinkGrace - kBeatInterval, all), 0U);
    heal();
    EXPECT_EQ(let_pass(kBeatInterval, all), 0U);
  }
}

TEST_F(LinkageTest, WithALinkToMostANodeOwnsAsBefore) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  cut("n1", "n3");
  EXPECT_EQ(let_pass(kLong, all), 0U);
  EXPECT_EQ(well_linked(state_, now_), all);
}

TEST_F(LinkageTest, ANodeThatIsStartedHasTimeToMakeItsLinks) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  // The others have no link with it while it is away.
  cut("n1", "n3"), cut("n2", "n3");
  let_pass(kLong, {"n1", "n2"});
  ASSERT_EQ(owned_by("n3"), 0U);
  ++process_["n3"];
  let_pass(kLinkGrace - kBeatInterval, all);
  EXPECT_TRUE(well_linked(state_, now_).contains("n3"));
  EXPECT_EQ(owned_by("n3"), 0U) << "it gets nothing before it has links";
  heal();
  let_pass(kLong, all);
  EXPECT_GT(owned_by("n3"), 0U);
}

TEST_F(LinkageTest, ANodeThatOnlyTheOthersHaveNoLinkWithGetsNothing) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  let_pass(kLong, {"n1", "n2"});
  ASSERT_EQ(owned_by("n3"), 0U);
  cut("n1", "n3", false), cut("n2", "n3", false);
  ++process_["n3"];
  let_pass(kLinkGrace - kBeatInterval, all);
  EXPECT_TRUE(well_linked(state_, now_).contains("n3"));
  EXPECT_EQ(owned_by("n3"), 0U);
}

TEST_F(LinkageTest, ANodeThatIsStartedAgainSoonKeepsWhatItHas) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  // Its process is another one already when the others miss it, and they are slow to connect.
  cut("n2", "n1"), cut("n2", "n3");
  let_pass(kLinkGrace - 2 * kBeatInterval, all);
  ++process_["n2"];
  EXPECT_EQ(let_pass(kLinkGrace, all), 0U);
}

TEST_F(LinkageTest, ANewNodeWithAnotherSecretGetsNothing) {
  found({"n2"});
  const Names both{"n1", "n2"};
  cut("n1", "n2");
  let_pass(kLong, both);
  EXPECT_EQ(owners(both), Names{"n2"}) << "although n1 is the first by name";
  EXPECT_EQ(well_linked(state_, now_), Names{"n2"});
  EXPECT_EQ(let_pass(kLong, both), 0U);
}

TEST_F(LinkageTest, AMoveToANodeWithoutLinksWaits) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  cut("n3", "n1"), cut("n3", "n2");
  let_pass(kLong, all);
  state_.apply(Move{.id = 7, .shard = ShardIndex(0), .to = "n3"}, now_);
  EXPECT_EQ(let_pass(kLong, all), 0U);
  heal();
  let_pass(kLong, all);
  EXPECT_EQ(state_.shard(ShardIndex(0)).assignment->owner, "n3");
}

// LK3.
TEST_F(LinkageTest, OfTwoNodesThatAreApartOneOwnsEverything) {
  const Names both{"n1", "n2"};
  found(both);
  ASSERT_EQ(owners(both), both);
  cut("n1", "n2");
  let_pass(kLong, both);
  EXPECT_EQ(owners(both).size(), 1U);
  EXPECT_EQ(owners(both), well_linked(state_, now_));
  const NodeName owner = *owners(both).begin();
  EXPECT_EQ(let_pass(kLong, both), 0U);
  // It dies: the other one is alone then, and stays the owner when it is back.
  Names left = both;
  left.erase(owner);
  let_pass(kLong, left);
  EXPECT_EQ(owners(both), left);
  ++process_[owner];
  let_pass(kLong, both);
  EXPECT_EQ(owners(both), left);
}

TEST_F(LinkageTest, OfTwoNodesThatAreApartTheOneThatDoesNotEndOwns) {
  const Names both{"n1", "n2"};
  found(both);
  cut("n1", "n2");
  let_pass(kLong, both);
  draining_ = owners(both);
  let_pass(kLong, both);
  EXPECT_NE(owners(both), draining_);
}

TEST_F(LinkageTest, OfAFleetInPiecesTheLargestOneOwns) {
  const Names all{"n1", "n2", "n3", "n4", "n5"};
  found(all);
  for (const char* one : {"n1", "n2", "n3"})
    for (const char* other : {"n4", "n5"}) cut(one, other);
  cut("n1", "n2"), cut("n1", "n3"), cut("n2", "n3");
  let_pass(2 * kLong, all);
  const Names piece{"n4", "n5"};
  EXPECT_EQ(well_linked(state_, now_), piece);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    const Assignment& made = *state_.shard(ShardIndex(i)).assignment;
    // Where neither follows, neither can take over.
    EXPECT_EQ(piece.contains(made.owner), made.includes("n4") || made.includes("n5"));
  }
  EXPECT_EQ(let_pass(kLong, all), 0U);
}

TEST_F(LinkageTest, OfPiecesOfTheSameSizeOneOwnsAndStaysIt) {
  const Names all{"n1", "n2", "n3", "n4"};
  found(all);
  for (const char* one : {"n1", "n2"})
    for (const char* other : {"n3", "n4"}) cut(one, other);
  let_pass(2 * kLong, all);
  EXPECT_EQ(owners(all).size(), 2U);
  EXPECT_TRUE(owners(all) == (Names{"n1", "n2"}) || owners(all) == (Names{"n3", "n4"}));
  EXPECT_EQ(let_pass(kLong, all), 0U);
}

TEST_F(LinkageTest, ARingThatHasNoMajorityComesToRest) {
  const Names all{"n1", "n2", "n3", "n4", "n5", "n6"};
  found(all);
  for (int i = 0; i < 6; ++i)
    for (int j : {2, 3, 4}) cut("n" + std::to_string(i + 1), "n" + std::to_string((i + j) % 6 + 1));
  let_pass(4 * kLong, all);
  EXPECT_LE(owners(all).size(), 3U);
  EXPECT_EQ(let_pass(kLong, all), 0U);
}

TEST_F(LinkageTest, NodesThatHaveNoLinksAtAllAreFoundedAllTheSame) {
  const Names both{"n1", "n2"};
  cut("n1", "n2");
  state_.apply(CoordinatorClaim{Term(1), "n1"}, now_);
  let_pass(kLong, both);
  EXPECT_EQ(owners(both).size(), 1U);
  EXPECT_EQ(owned_by("n1") + owned_by("n2"), kShards);
}

TEST_F(LinkageTest, AFleetIsFoundedWithOneNodeThatIsAlone) {
  const Names all{"n1", "n2", "n3"};
  cut("n1", "n2"), cut("n1", "n3");
  let_pass(kLong, all);  // Nobody is coordinator yet.
  state_.apply(CoordinatorClaim{Term(1), "n1"}, now_);
  let_pass(kLong, all);
  EXPECT_EQ(owners(all), (Names{"n2", "n3"}));
}

// A rolling upgrade.
TEST_F(LinkageTest, ANodeThatSaysNothingOfLinksHasThemAll) {
  const Names all{"n1", "n2", "n3"};
  found(all);
  silent_ = all;
  EXPECT_EQ(let_pass(kLong, all), 0U);
  silent_ = {"n2", "n3"};
  EXPECT_EQ(let_pass(kLong, all), 0U);
  EXPECT_EQ(well_linked(state_, now_), all);
  // What the upgraded node says of the others counts.
  cut("n1", "n2", false), cut("n1", "n3", false);
  let_pass(kLong, all);
  EXPECT_EQ(owners(all), (Names{"n2", "n3"}));
}

TEST_F(LinkageTest, WhyANodeHasNoLinksIsToldByWhoKnows) {
  const Names all{"n1", "n2", "n3", "n4"};
  Beat dialler{.node = "n1", .zone = "z", .address = ""}, listener = dialler;
  dialler.linked.emplace();
  dialler.unlinked["n2"] = "another secret";
  listener.node = "n2";
  listener.linked = Names{"n4"};
  state_.apply(dialler, now_);
  state_.apply(listener, now_);
  for (const char* name : {"n3", "n4"})
    state_.apply(Beat{.node = name, .zone = "z", .address = ""}, now_);
  EXPECT_EQ(why_apart(state_, "n2", all), "n1: it says: another secret; n3: no link");
  EXPECT_EQ(why_apart(state_, "n1", all), "n2: another secret; n3: no link; n4: no link");
}

}  // namespace
}  // namespace stanchion::fleet
