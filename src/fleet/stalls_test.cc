#include "fleet/stalls.h"

#include <gtest/gtest.h>

#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

using News = Stalls::News;

constexpr ShardIndex kShard(7);

class StallsTest : public testing::Test {
 protected:
  Stalls::Change look(const Stalls::Look& look) { return stalls_.look_at(kShard, look, now_); }
  // The first entry that the log has not taken waits for so long.
  Stalls::Change look_stalled(Duration waiting, bool serving = true) {
    return look({true, serving, journal::LogStall{waiting, "one replica is in sync"}});
  }
  void pass(Duration time) {
    now_.now += time;
    now_.steady += time;
  }
  bool is_stalled() const { return stalls_.all().contains(kShard); }

  os::TimeReading now_{from_millis(1'700'000'000'000), SteadyInstant(1h)};
  Stalls stalls_;
};

TEST_F(StallsTest, AStallIsToldOnceWhenItBeginsAndOnceWhenItEnds) {
  EXPECT_EQ(look({true, true, {}}).news, News::kNone);
  EXPECT_EQ(look_stalled(6s).news, News::kBegan);
  for (int second = 7; second < 600; ++second) {
    pass(1s);
    EXPECT_EQ(look_stalled(second * 1s).news, News::kNone) << second;
  }
  ASSERT_TRUE(is_stalled());
  const Stalls::Change ended = look({true, true, {}});
  EXPECT_EQ(ended.news, News::kTaken);
  EXPECT_EQ(ended.lasted, 599s);
  EXPECT_FALSE(is_stalled());
  EXPECT_EQ(look({true, true, {}}).news, News::kNone);
}

TEST_F(StallsTest, ItIsKnownSinceWhenAndTheReasonIsTheLatest) {
  const Instant began = now_.now - 6s;
  look_stalled(6s);
  pass(100s);
  // Another entry waits now.
  look({true, true, journal::LogStall{8s, "it has no leader"}});
  EXPECT_EQ(stalls_.all().at(kShard), (Beat::Stall{began, "it has no leader"}));
}

TEST_F(StallsTest, ItLastsWhileTheReplicaBeginsAnewAndClaimsInVain) {
  look_stalled(6s);
  EXPECT_EQ(look({true, false, {}}).news, News::kNone) << "nothing was sent yet";
  EXPECT_TRUE(is_stalled());
  EXPECT_EQ(look_stalled(6s, false).news, News::kNone);
  EXPECT_EQ(look({true, true, {}}).news, News::kTaken) << "the claim was taken";
}

TEST_F(StallsTest, AClaimInVainIsAStallToo) {
  EXPECT_EQ(look_stalled(5s, false).news, News::kBegan);
}

TEST_F(StallsTest, WhoDoesNotOwnTheShardAnyMoreSaysNothingOfIt) {
  look_stalled(6s);
  pass(10s);
  const Stalls::Change left = look({false, true, journal::LogStall{16s, "it has no leader"}});
  EXPECT_EQ(left.news, News::kLeft);
  EXPECT_FALSE(is_stalled());
  EXPECT_EQ(look({false, false, {}}).news, News::kNone);
}

TEST_F(StallsTest, OneThatComesAndGoesIsShownEachTimeAndToldOnceAMinute) {
  int told = 0;
  for (Duration passed{}; passed < 10min; passed += 10s) {
    told += look_stalled(6s).news != News::kNone;
    EXPECT_TRUE(is_stalled());
    pass(5s);
    told += look({true, true, {}}).news != News::kNone;
    EXPECT_FALSE(is_stalled());
    pass(5s);
  }
  EXPECT_EQ(told, 2 * 10);
}

TEST_F(StallsTest, OneThatWasNotToldBecauseItCameAgainIsToldWhenItLasts) {
  look_stalled(6s);
  look({true, true, {}});
  pass(30s);
  EXPECT_EQ(look_stalled(6s).news, News::kNone);
  pass(kTellStallAgain - 30s);
  const Stalls::Change change = look_stalled(36s);
  EXPECT_EQ(change.news, News::kBegan);
  EXPECT_EQ(change.lasted, 36s);
}

TEST_F(StallsTest, TheLinesNameTheShardTheTimeAndTheReason) {
  const Beat::Stall stall{now_.now, "log[7] has no leader"};
  EXPECT_EQ(
      line_about(kShard, {News::kBegan, 6500ms}, &stall),
      "shard 7 is stalled: Kafka has not taken what was written 6 s ago: log[7] has no leader");
  EXPECT_EQ(line_about(kShard, {News::kTaken, 90s}, nullptr),
            "shard 7 is no longer stalled, after 90 s: Kafka takes its writes again");
  EXPECT_EQ(line_about(kShard, {News::kLeft, 90s}, nullptr),
            "shard 7 is no longer stalled, after 90 s: it was given away or given up");
}

TEST(StalledShards, AreThoseThatTheirOwnersTellOf) {
  const Beat::Stall stall{from_millis(1'000), "it has no leader"};
  ControlState state(4);
  const auto assign = [&](std::uint32_t shard, const char* owner) {
    state.apply(Assignment{.term = {},
                           .shard = ShardIndex(shard),
                           .number = AssignmentNo(1),
                           .owner = owner,
                           .standbys = {}},
                SteadyInstant());
  };
  assign(0, "n1");
  assign(1, "n2");
  // Of shard 1 it does not know yet that it has another owner; shard 9 cannot be.
  state.apply(
      Beat{.node = "n1",
           .zone = "a",
           .address = "n1",
           .stalled = {{ShardIndex(0), stall}, {ShardIndex(1), stall}, {ShardIndex(9), stall}}},
      SteadyInstant());
  const auto stalled = stalled_shards(state, SteadyInstant());
  ASSERT_EQ(stalled.size(), 1u);
  EXPECT_EQ(stalled.at(ShardIndex(0)).owner, "n1");
  EXPECT_EQ(stalled.at(ShardIndex(0)).stall, stall);
  EXPECT_TRUE(stalled_shards(state, SteadyInstant() + kDeadAfter + 1ms).empty())
      << "n1 may be dead";
}

}  // namespace
}  // namespace stanchion::fleet
