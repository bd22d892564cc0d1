#include "fleet/coordinator.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

constexpr std::uint32_t kShards = 12;

class CoordinatorTest : public testing::Test {
 protected:
  // Every node that is up says so.
  void beat(const std::set<NodeName>& up) {
    for (const NodeName& name : up) {
      Beat beat{.node = name,
                .process = 1,
                .zone = zone_of(name),
                .address = name,
                .clock = clock() + skew_[name],
                .draining = draining_.contains(name),
                .reached = {}};
      for (std::uint32_t i = 0; i < kShards; ++i)
        if (const auto& assignment = state_.shard(ShardIndex(i)).assignment;
            given_up_.contains({name, i}))
          beat.given_up[ShardIndex(i)] = "its log is damaged";
        else if (assignment && assignment->includes(name) && !opening_.contains({name, i}))
          beat.reached[ShardIndex(i)] = {Position(100), saved_[name],
                                         assignment->owner == name && !claiming_.contains(i)};
      for (const std::uint32_t shard : other_past_)
        if (beat.given_up.contains(ShardIndex(shard))) beat.other_past.emplace(shard);
      state_.apply(beat, now_);
    }
  }

  // Nodes beat and the coordinator decides, until there is nothing left to decide.
  std::size_t settle(const std::set<NodeName>& up) {
    std::size_t made = 0;
    for (int round = 0; round < 100; ++round) {
      now_ += kBeatInterval;
      beat(up);
      const auto planned = plan_assignments(state_, now_);
      if (planned.empty()) return made;
      made += planned.size();
      for (const Assignment& assignment : planned) state_.apply(assignment, now_);
    }
    ADD_FAILURE() << "the coordinator never comes to rest";
    return made;
  }

  void SetUp() override {
    state_.apply(CoordinatorClaim{Term(1), "a1"}, now_);
    settle(all_);
  }

  Instant clock() const { return Instant(now_.time_since_epoch()); }
  static std::string zone_of(const NodeName& name) { return name.substr(0, 1); }
  const Assignment& assignment(std::uint32_t shard) const {
    return *state_.shard(ShardIndex(shard)).assignment;
  }
  std::size_t owned_by(const NodeName& name) const {
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < kShards; ++i) count += assignment(i).owner == name;
    return count;
  }

  const std::set<NodeName> all_{"a1", "b1", "c1"};
  ControlState state_{kShards};
  SteadyInstant now_{std::chrono::hours(1)};
  std::map<NodeName, Duration> skew_;
  std::map<NodeName, Position> saved_;
  std::set<NodeName> draining_;
  std::set<std::pair<NodeName, std::uint32_t>> given_up_;
  std::set<std::pair<NodeName, std::uint32_t>> opening_;  // They do not follow yet.
  std::set<std::uint32_t> claiming_;                      // Shards whose owners do not serve them.
  std::set<std::uint32_t> other_past_;                    // Shards that are given up for that.
};

TEST_F(CoordinatorTest, EveryShardHasReplicasInThreeZonesAndNodesOwnAboutAsMany) {
  for (std::uint32_t i = 0; i < kShards; ++i) {
    std::set<std::string> zones;
    for (const NodeName& name : assignment(i).replicas()) zones.insert(zone_of(name));
    EXPECT_EQ(zones.size(), 3U);
  }
  for (const NodeName& name : all_) {
    EXPECT_GE(owned_by(name), 3U) << name;
    EXPECT_LE(owned_by(name), 5U) << name;
  }
}

TEST_F(CoordinatorTest, WhileNothingChangesNothingIsDecided) {
  EXPECT_EQ(settle(all_), 0U);
}

TEST_F(CoordinatorTest, TheShardsOfADeadNodeGoToTheirStandbysAndOnlyThose) {
  const std::size_t owned = owned_by("b1");
  now_ += kDeadAfter;
  EXPECT_GE(settle({"a1", "c1"}), owned);
  EXPECT_EQ(owned_by("b1"), 0U);
  for (std::uint32_t i = 0; i < kShards; ++i)
    EXPECT_TRUE(assignment(i).includes("b1")) << "it still has a store";
}

TEST_F(CoordinatorTest, AShardThatItsOwnerHasGivenUpGoesToAStandbyAndTheOthersStay) {
  const NodeName owner = assignment(3).owner;
  const std::size_t owned = owned_by(owner);
  given_up_.insert({owner, 3});
  EXPECT_GE(settle(all_), 1U);
  EXPECT_NE(assignment(3).owner, owner);
  EXPECT_TRUE(assignment(3).includes(owner)) << "it tries again, and then follows";
  EXPECT_GE(owned_by(owner) + 1, owned);
}

TEST_F(CoordinatorTest, AReplicaThatIsGivenUpHoldsUpNoTrimmingAndIsReplacedInTime) {
  std::set<NodeName> four = all_;
  four.insert("d1");
  for (const NodeName& name : four) saved_[name] = Position(50);
  settle(four);
  const NodeName standby = assignment(3).standbys.front();
  given_up_.insert({standby, 3});
  settle(four);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position(50));
  EXPECT_TRUE(assignment(3).includes(standby)) << "it may come back soon";
  now_ += kReplaceAfter;
  settle(four);
  EXPECT_FALSE(assignment(3).includes(standby));
  EXPECT_EQ(assignment(3).replicas().size(), kReplicas);
}

// Its broker may be behind the others for a moment, and its store cannot be replaced by a copy.
TEST_F(CoordinatorTest, ALogIsNotTrimmedAsSoonAsAReplicaHasAnotherPast) {
  for (const NodeName& name : all_) saved_[name] = Position(50);
  settle(all_);
  const NodeName standby = assignment(3).standbys.front();
  given_up_.insert({standby, 3});
  other_past_.insert(3);
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position());
  now_ += kOtherPastWait;
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position(50)) << "it takes too long";
}

TEST_F(CoordinatorTest, ALogWaitsForAReplicaWithAnotherPastThatWasGivenUpForAnotherReasonBefore) {
  for (const NodeName& name : all_) saved_[name] = Position(50);
  settle(all_);
  given_up_.insert({assignment(3).standbys.front(), 3});
  settle(all_);
  now_ += kOtherPastWait;
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position(50));
  other_past_.insert(3);
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position());
}

// A node that comes back with a clock that is behind would own shards for as long as the one before
// is remembered.
TEST_F(CoordinatorTest, ANodeThatIsStartedAgainHasAClockOfItsOwn) {
  Beat beat{.node = "a1", .process = 1, .zone = "a", .address = {}, .clock = clock()};
  state_.apply(beat, now_);
  now_ += kBeatInterval;
  beat.process = 2;
  beat.clock = clock() - 1h;
  state_.apply(beat, now_);
  EXPECT_EQ(state_.find("a1")->clock_ahead, -Duration(1h));
}

TEST_F(CoordinatorTest, WithOneReplicaLeftTheLogKeepsEverything) {
  for (const NodeName& name : all_) saved_[name] = Position(50);
  for (const NodeName& standby : assignment(3).standbys) given_up_.insert({standby, 3});
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(3), now_), Position());
}

TEST_F(CoordinatorTest, AShardThatNobodyCanReadStaysWhereItIs) {
  const NodeName owner = assignment(3).owner;
  for (const NodeName& name : all_) given_up_.insert({name, 3});
  settle(all_);
  EXPECT_EQ(assignment(3).owner, owner);
}

// WA7. The fourth node has nothing of the shard, so that any log is good enough for it.
TEST_F(CoordinatorTest, WhileANodeHasWhatTheLogHasLostTheShardIsGivenToNobody) {
  std::set<NodeName> four = all_;
  four.insert("d1");
  settle(four);
  const Assignment before = assignment(3);
  other_past_.insert(3);
  for (const NodeName& name : before.replicas()) given_up_.insert({name, 3});
  settle(four);
  now_ += 2 * kReplaceAfter;
  settle(four);
  EXPECT_EQ(assignment(3), before);
  // Also if one that follows the log is there already.
  given_up_.erase({before.standbys.front(), 3});
  settle(four);
  EXPECT_EQ(assignment(3), before);
  EXPECT_EQ(state_.with_other_past(ShardIndex(3), now_),
            (std::vector{std::min(before.owner, before.standbys.back()),
                         std::max(before.owner, before.standbys.back())}));
  // Whose stores were given up, or who is away, does not say so any more.
  given_up_.clear();
  given_up_.insert({before.owner, 3});
  four.erase(before.owner);
  now_ += kDeadAfter;
  settle(four);
  EXPECT_NE(assignment(3).owner, before.owner);
}

TEST_F(CoordinatorTest, AShardThatIsServedGoesOnAlthoughANodeHasAnotherPast) {
  std::set<NodeName> four = all_;
  four.insert("d1");
  settle(four);
  const NodeName doubting = assignment(3).standbys.front();
  other_past_.insert(3);
  given_up_.insert({doubting, 3});
  settle(four);
  now_ += 2 * kReplaceAfter;
  settle(four);
  const NodeName owner = assignment(3).owner;
  EXPECT_NE(owner, doubting);
  EXPECT_EQ(assignment(3).replicas().size(), kReplicas + 1) << "another one follows";
  EXPECT_TRUE(assignment(3).includes(doubting)) << "it goes on saying so";
  draining_.insert(owner);
  settle(four);
  EXPECT_NE(assignment(3).owner, owner) << "by plan, to one that has what is served";
  EXPECT_NE(assignment(3).owner, doubting);
  draining_.clear();
  given_up_.clear();
  settle(four);
  EXPECT_EQ(assignment(3).replicas().size(), kReplicas);
}

TEST_F(CoordinatorTest, ANodeThatHasNotFollowedAShardIsNotGivenIt) {
  now_ += kDeadAfter;
  for (const char* name : {"a1", "c1"})
    state_.apply(
        Beat{.node = name, .zone = zone_of(name), .address = {}, .clock = {}, .reached = {}}, now_);
  EXPECT_TRUE(plan_assignments(state_, now_).empty())
      << "a beat without the shard says that it has no replica of it";
}

TEST_F(CoordinatorTest, ADeadStandbyIsReplacedWhenItWillNotComeBackSoon) {
  const std::set<NodeName> left{"a1", "c1", "b2"};
  now_ += kDeadAfter;
  settle(left);
  for (std::uint32_t i = 0; i < kShards; ++i) EXPECT_FALSE(assignment(i).includes("b2"));
  for (Duration waited{}; waited <= kReplaceAfter; waited += kBeatInterval) {
    now_ += kBeatInterval;
    beat(left);
  }
  settle(left);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    EXPECT_TRUE(assignment(i).includes("b2"));
    EXPECT_FALSE(assignment(i).includes("b1"));
  }
}

TEST_F(CoordinatorTest, ADrainingNodeGivesItsShardsAway) {
  draining_.insert("a1");
  settle(all_);
  EXPECT_EQ(owned_by("a1"), 0U);
}

TEST_F(CoordinatorTest, ADrainedNodeOwnsNothingAndStaysAReplicaWhereThereIsNobodyElse) {
  state_.apply(Drain{"a1", true}, now_);
  settle(all_);
  EXPECT_EQ(owned_by("a1"), 0U);
  for (std::uint32_t i = 0; i < kShards; ++i) EXPECT_TRUE(assignment(i).includes("a1"));
  state_.apply(Drain{"a1", false}, now_);
  settle(all_);
  EXPECT_GE(owned_by("a1"), 3U) << "it is used again";
}

TEST_F(CoordinatorTest, ADrainedNodeFollowsNothingWhenOthersHaveItsReplicas) {
  const std::set<NodeName> more{"a1", "b1", "c1", "a2"};
  state_.apply(Drain{"a1", true}, now_);
  settle(more);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    EXPECT_FALSE(assignment(i).includes("a1"));
    EXPECT_EQ(assignment(i).replicas().size(), kReplicas);
  }
}

TEST_F(CoordinatorTest, ADrainedReplicaIsNotGivenUpBeforeAnotherHasFollowed) {
  state_.apply(Drain{"a1", true}, now_);
  settle(all_);
  now_ += kBeatInterval;
  beat(all_);
  state_.apply(Beat{.node = "a2", .zone = "a", .address = {}, .clock = clock()}, now_);
  for (const Assignment& made : plan_assignments(state_, now_)) {
    EXPECT_TRUE(made.includes("a1") && made.includes("a2"));
    state_.apply(made, now_);
  }
  // It has not said that it follows anything.
  state_.apply(Beat{.node = "a2", .zone = "a", .address = {}, .clock = clock()}, now_);
  EXPECT_TRUE(plan_assignments(state_, now_).empty());
}

TEST_F(CoordinatorTest, AnOwnerThatIsDrainedWithoutAStandbyGetsOneFirst) {
  now_ += kDeadAfter;
  settle({"a1"});
  state_.apply(Forget{"b1"}, now_);
  state_.apply(Forget{"c1"}, now_);
  settle({"a1"});
  EXPECT_EQ(owned_by("a1"), kShards);
  state_.apply(Drain{"a1", true}, now_);
  settle({"a1", "b2"});
  EXPECT_EQ(owned_by("b2"), kShards);
}

TEST_F(CoordinatorTest, AShardIsMovedToTheStandbyThatAnOperatorNamesAndStaysThere) {
  const NodeName to = assignment(0).standbys.front();
  state_.apply(Move{.id = 7, .shard = ShardIndex(0), .to = to}, now_);
  settle(all_);
  EXPECT_EQ(assignment(0).owner, to);
  EXPECT_EQ(assignment(0).applied_move, 7U);
  EXPECT_FALSE(state_.shard(ShardIndex(0)).has_open_move());
}

TEST_F(CoordinatorTest, AMoveIsObeyedOnce) {
  const NodeName to = assignment(0).standbys.front();
  state_.apply(Move{.id = 7, .shard = ShardIndex(0), .to = to}, now_);
  settle(all_);
  std::set<NodeName> left = all_;
  left.erase(to);
  now_ += kDeadAfter;
  settle(left);
  EXPECT_NE(assignment(0).owner, to);
  const NodeName now = assignment(0).owner;
  // It is back, and could have the shard again; whether it gets it is for the balance to say.
  draining_.insert(to);
  settle(all_);
  EXPECT_EQ(assignment(0).owner, now);
}

TEST_F(CoordinatorTest, AMoveToANodeThatIsNoReplicaMakesItOneFirst) {
  const std::set<NodeName> more{"a1", "b1", "c1", "a2"};
  settle(more);
  ASSERT_FALSE(assignment(0).includes("a2"));
  state_.apply(Move{.id = 7, .shard = ShardIndex(0), .to = "a2"}, now_);
  auto planned = plan_assignments(state_, now_);
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_NE(planned[0].owner, "a2") << "it has nothing yet";
  EXPECT_EQ(planned[0].replicas().size(), kReplicas + 1);
  settle(more);
  EXPECT_EQ(assignment(0).owner, "a2");
  EXPECT_EQ(assignment(0).replicas().size(), kReplicas);
  std::set<std::string> zones;
  for (const NodeName& name : assignment(0).replicas()) zones.insert(zone_of(name));
  EXPECT_EQ(zones.size(), 3U) << "the one of its zone went";
}

TEST_F(CoordinatorTest, AMoveToANodeThatIsNotFitWaits) {
  draining_.insert("a1");
  settle(all_);
  state_.apply(Move{.id = 7, .shard = ShardIndex(0), .to = "a1"}, now_);
  EXPECT_EQ(settle(all_), 0U);
  draining_.clear();
  settle(all_);
  EXPECT_EQ(assignment(0).owner, "a1");
}

TEST_F(CoordinatorTest, AForgottenNodeIsReplacedAtOnce) {
  const std::set<NodeName> left{"a1", "c1", "b2"};
  now_ += kDeadAfter;
  settle(left);
  state_.apply(Forget{"b1"}, now_);
  settle(left);
  for (std::uint32_t i = 0; i < kShards; ++i) {
    EXPECT_TRUE(assignment(i).includes("b2"));
    EXPECT_FALSE(assignment(i).includes("b1"));
  }
}

TEST_F(CoordinatorTest, AForgottenNodeIsGivenUpThoughNobodyTakesItsPlace) {
  saved_ = {{"a1", Position(70)}, {"b1", Position(50)}, {"c1", Position(90)}};
  now_ += kDeadAfter;
  settle({"a1", "c1"});
  state_.apply(Forget{"b1"}, now_);
  settle({"a1", "c1"});
  for (std::uint32_t i = 0; i < kShards; ++i) EXPECT_FALSE(assignment(i).includes("b1"));
  EXPECT_EQ(state_.saved_by_all(ShardIndex(0), now_), Position(70))
      << "the log is trimmed without it";
}

TEST_F(CoordinatorTest, AForgottenNodeThatIsHeardOfIsANewOne) {
  state_.apply(Forget{"b1"}, now_);
  EXPECT_EQ(state_.find("b1"), nullptr);
  settle(all_);
  EXPECT_FALSE(state_.is_forgotten("b1"));
  for (std::uint32_t i = 0; i < kShards; ++i) EXPECT_TRUE(assignment(i).includes("b1"));
}

TEST_F(CoordinatorTest, ANodeWhoseClockIsOffOwnsNothing) {
  skew_["c1"] = 2 * kClockOffMax;
  settle(all_);
  EXPECT_EQ(owned_by("c1"), 0U);
  EXPECT_FALSE(clock_is_good(state_, "c1", now_));
  EXPECT_TRUE(clock_is_good(state_, "a1", now_));
}

TEST_F(CoordinatorTest, ABeatThatWasUnderWayForLongIsNoBadClock) {
  skew_["c1"] = -2 * kClockOffMax;
  now_ += kBeatInterval;
  beat(all_);
  EXPECT_TRUE(clock_is_good(state_, "c1", now_));
  const SteadyInstant since = now_;
  while (now_ - since <= kClockMemory) {
    now_ += kBeatInterval;
    beat(all_);
  }
  EXPECT_FALSE(clock_is_good(state_, "c1", now_)) << "one that stays behind is behind";
}

TEST_F(CoordinatorTest, AnAssignmentOfAnEarlierTermIsVoidWhereThereIsALaterOne) {
  Assignment stale = assignment(0);
  state_.apply(CoordinatorClaim{Term(2), "c1"}, now_);
  draining_.insert(stale.owner);
  settle(all_);
  EXPECT_EQ(assignment(0).term, Term(2));
  stale.number = stale.number.next();
  EXPECT_LT(stale.number, assignment(0).number);
  stale.owner = "nobody";
  state_.apply(stale, now_);
  EXPECT_NE(assignment(0).owner, "nobody");
  EXPECT_EQ(state_.coordinator(), "c1");
  state_.apply(CoordinatorClaim{Term(2), "b1"}, now_);
  EXPECT_EQ(state_.coordinator(), "c1") << "the first claim of a term counts";
}

TEST_F(CoordinatorTest, AnOwnerThatIsAliveAndDoesNotServeItsShardIsNoneAfterAWhile) {
  const auto beat_for = [&](Duration time) {
    for (const SteadyInstant end = now_ + time; now_ < end;) beat(all_), now_ += kBeatInterval;
  };
  beat_for(10s);
  EXPECT_TRUE(unserved_shards(state_, now_).empty());
  opening_ = {{assignment(3).owner, 3}};  // It loads, or copies.
  claiming_ = {5};                        // It follows, and claims in vain.
  beat_for(kUnservedAfter - kBeatInterval);
  EXPECT_TRUE(unserved_shards(state_, now_).empty()) << "a change of owners takes a moment";
  beat_for(2 * kBeatInterval);
  const std::map<ShardIndex, std::string> both{{ShardIndex(3), ""}, {ShardIndex(5), ""}};
  EXPECT_EQ(unserved_shards(state_, now_), both);
  claiming_.clear();
  beat_for(kBeatInterval);
  EXPECT_EQ(unserved_shards(state_, now_).size(), 1u) << "it is served again";
}

// Somebody else may take itself for the owner, whom the router does not ask.
TEST_F(CoordinatorTest, OnlyItsOwnerServesAShard) {
  Assignment moved = assignment(0);
  moved.number = moved.number.next();
  moved.previous = std::exchange(moved.owner, moved.standbys.front());
  moved.standbys.front() = moved.previous;
  state_.apply(moved, now_);
  for (int i = 0; i < 20; ++i) {
    now_ += kBeatInterval;
    claiming_ = {0};
    beat(all_);
    state_.apply(Beat{.node = moved.previous,
                      .zone = "",
                      .address = "",
                      .reached = {{ShardIndex(0), {Position(100), Position(), 7}}}},
                 now_);
  }
  EXPECT_TRUE(unserved_shards(state_, now_).contains(ShardIndex(0)));
}

TEST_F(CoordinatorTest, AShardWithoutALivingOwnerIsUnservedAtOnceAndSaysWhoHoldsItBack) {
  const NodeName owner = assignment(2).owner, doubter = assignment(2).standbys.front();
  given_up_ = {{doubter, 2}};
  other_past_ = {2};
  now_ += kBeatInterval;
  beat(all_);
  EXPECT_TRUE(unserved_shards(state_, now_).empty()) << "it is served, whoever doubts its log";
  given_up_.emplace(owner, 2);
  given_up_.emplace(assignment(4).owner, 4);
  now_ += kBeatInterval;
  beat(all_);
  const std::map<ShardIndex, std::string> unserved = unserved_shards(state_, now_);
  ASSERT_EQ(unserved.size(), 2u);
  EXPECT_EQ(unserved.at(ShardIndex(4)), "") << "a standby takes it";
  EXPECT_TRUE(unserved.at(ShardIndex(2)).contains(doubter)) << unserved.at(ShardIndex(2));
  EXPECT_TRUE(unserved.at(ShardIndex(2)).contains("other records than its log"));
  now_ += 2 * kDeadAfter;
  EXPECT_EQ(unserved_shards(state_, now_).size(), kShards) << "nobody is heard of";
}

TEST(ControlState, AShardThatWasNeverAssignedIsUnservedAndANewOneHasAMoment) {
  const SteadyInstant start{std::chrono::seconds(100)};
  ControlState state(1);
  EXPECT_TRUE(state.is_unserved(ShardIndex(0), start));
  state.apply(Beat{.node = "a", .zone = "z", .address = ""}, start);
  state.apply(
      Assignment{.term = Term(1), .shard = ShardIndex(0), .number = AssignmentNo(1), .owner = "a"},
      start);
  EXPECT_FALSE(state.is_unserved(ShardIndex(0), start));
}

TEST_F(CoordinatorTest, ALogMayDropWhatAllReplicasHaveSaved) {
  saved_ = {{"a1", Position(70)}, {"b1", Position(50)}, {"c1", Position(90)}};
  settle(all_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(0), now_), Position(50));
  state_.apply(Beat{.node = "b1", .zone = "b", .address = {}, .clock = {}, .reached = {}}, now_);
  EXPECT_EQ(state_.saved_by_all(ShardIndex(0), now_), Position()) << "b1 has lost its store";
}

TEST(ControlState, AFormatIsThatOfAllWhenEveryNodeReadsItAlsoThoseThatAreAway) {
  ControlState state(1);
  EXPECT_EQ(state.format_of_all(), 0u);
  const auto beat = [&](const char* node, std::uint32_t format) {
    state.apply(Beat{.node = node, .zone = "a", .address = node, .format = format},
                SteadyInstant());
  };
  beat("n1", 1);
  beat("n2", 2);
  EXPECT_EQ(state.format_of_all(), 1u);
  beat("n1", 3);
  EXPECT_EQ(state.format_of_all(), 2u);
  beat("n3", 1);
  EXPECT_FALSE(state.is_alive("n3", SteadyInstant() + 10 * kDeadAfter));
  EXPECT_EQ(state.format_of_all(), 1u) << "it may come back";
  state.apply(Forget{"n3"}, SteadyInstant());
  EXPECT_EQ(state.format_of_all(), 2u);
}

TEST(ControlState, ANodeWhoseConnectionBrokeIsDeadSoonerUnlessItIsHeardOf) {
  const SteadyInstant start{std::chrono::seconds(100)};
  ControlState state(1);
  state.apply(Beat{.node = "a", .zone = "z", .address = ""}, start);
  state.suspect("a", start + 100ms);
  EXPECT_TRUE(state.is_alive("a", start + 100ms + kDeadAfterBreak));
  EXPECT_FALSE(state.is_alive("a", start + 101ms + kDeadAfterBreak));
  state.apply(Beat{.node = "a", .zone = "z", .address = ""}, start + 500ms);
  EXPECT_TRUE(state.is_alive("a", start + 500ms + kDeadAfter));
  state.suspect("nobody", start);
}

}  // namespace
}  // namespace stanchion::fleet
