#include "fleet_admin/fleet_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "model/limits.h"

namespace stanchion::fleet_admin {
namespace {

using fleet::Beat;

constexpr Instant kNow = from_millis(1'700'000'000'000);

// Three nodes in three zones, and two shards that they share.
class FleetReportTest : public testing::Test {
 protected:
  void SetUp() override {
    apply(fleet::FleetMetadata{.id = 1, .name = "orders", .shards = 2, .format = 1});
    apply(fleet::CoordinatorClaim{fleet::Term(1), "n1"});
    for (const char* name : {"n1", "n2", "n3"}) {
      beats_[name] = {.node = name,
                      .process = 1,
                      .zone = std::string("zone-") + name,
                      .address = std::string(name) + ":19324",
                      .version = "1.0.0",
                      .clock = kNow,
                      .ready = true};
      heard_[name] = {kNow, true};
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      apply(fleet::Assignment{.term = fleet::Term(1),
                              .shard = ShardIndex(i),
                              .number = fleet::AssignmentNo(1),
                              .owner = i == 0 ? "n1" : "n2",
                              .standbys = {i == 0 ? "n2" : "n1", "n3"}});
      for (auto& [name, beat] : beats_)
        beat.reached[ShardIndex(i)] = {Position(100), Position(50), 0};
    }
    beats_["n1"].reached[ShardIndex(0)].service = 7;
    beats_["n2"].reached[ShardIndex(1)].service = 8;
  }

  void apply(const fleet::ControlRecord& record) { state_.apply(record, SteadyInstant()); }
  FleetReport report(const std::vector<std::optional<std::uint64_t>>& entries = {10, 20}) {
    for (const auto& [name, beat] : beats_) apply(beat);
    return make_report(state_, heard_, entries);
  }
  // The only warning.
  std::string warning() {
    const FleetReport made = report();
    EXPECT_EQ(made.warnings.size(), 1u) << to_text(made, kNow);
    return made.warnings.empty() ? "" : made.warnings.front();
  }
  static bool has(const FleetReport& made, std::string_view text) {
    return std::ranges::any_of(made.warnings,
                               [&](const std::string& one) { return one.find(text) != one.npos; });
  }

  fleet::ControlState state_{limits::kShardsMax};
  std::map<fleet::NodeName, Beat> beats_;
  std::map<fleet::NodeName, Heard> heard_;
};

TEST_F(FleetReportTest, AShardThatIsGivenUpIsNamedWithTheReason) {
  beats_["n3"].reached.erase(ShardIndex(1));
  beats_["n3"].given_up[ShardIndex(1)] = "its log is damaged";
  beats_["n3"].ready = false;
  const FleetReport made = report();
  EXPECT_TRUE(has(made, "node n3 has given up shard 1: its log is damaged")) << to_text(made, kNow);
  EXPECT_FALSE(has(made, "is not ready")) << "the reason says more";
}

TEST_F(FleetReportTest, AShardThatIsGivenToNobodyIsNamedWithThoseWhoKnowMore) {
  for (const char* name : {"n1", "n2"}) {
    beats_[name].reached.erase(ShardIndex(1));
    beats_[name].given_up[ShardIndex(1)] = "the log ends with record 60";
    beats_[name].other_past.insert(ShardIndex(1));
  }
  const FleetReport made = report();
  EXPECT_TRUE(
      has(made, "and it is assigned to no node, because n1, n2 have other records than its log"))
      << to_text(made, kNow);
}

TEST_F(FleetReportTest, AShardWhoseLogTakesNothingIsNamedWithItsOwnerTheTimeAndTheReason) {
  const fleet::Beat::Stall stall{kNow, "orders.log[1] has no leader"};
  beats_["n2"].stalled[ShardIndex(1)] = stall;
  EXPECT_EQ(warning(),
            "shard 1 is stalled: Kafka has taken no writes from n2 since 2023-11-14T22:13:20Z: "
            "orders.log[1] has no leader");
  const FleetReport made = report();
  EXPECT_EQ(made.shards[0].stall, std::nullopt);
  EXPECT_EQ(made.shards[1].stall, stall);
  const boost::json::value shards = boost::json::parse(to_json(made)).at("shards");
  EXPECT_EQ(shards.at(1).at("stalled_since_millis").as_int64(), to_millis(kNow));
  EXPECT_EQ(shards.at(1).at("stalled_reason").as_string(), stall.why);
  EXPECT_FALSE(shards.at(0).as_object().contains("stalled_reason"));
}

TEST_F(FleetReportTest, OnlyAnOwnerThatIsAliveHasAStalledShard) {
  beats_["n3"].stalled[ShardIndex(1)] = {kNow, "orders.log[1] has no leader"};
  EXPECT_FALSE(has(report(), "is stalled")) << "n3 owned it before";
  beats_["n2"].stalled = std::exchange(beats_["n3"].stalled, {});
  EXPECT_TRUE(has(report(), "is stalled"));
  heard_["n2"].alive = false;
  EXPECT_FALSE(has(report(), "is stalled"));
}

TEST_F(FleetReportTest, AFleetThatIsWellHasNoWarnings) {
  const FleetReport made = report();
  EXPECT_EQ(made.warnings, std::vector<std::string>());
  EXPECT_FALSE(made.has_shard_without_owner());
  ASSERT_EQ(made.nodes.size(), 3u);
  EXPECT_EQ(made.nodes[0].owned, 1u);
  EXPECT_EQ(made.nodes[0].followed, 1u);
  EXPECT_EQ(made.nodes[2].owned, 0u);
  ASSERT_EQ(made.shards.size(), 2u);
  EXPECT_EQ(made.shards[1].entries, 20u);
}

TEST_F(FleetReportTest, ALogOfWhichKafkaSaysNothingIsToldAndNotTakenForEmpty) {
  const FleetReport made = report({7, std::nullopt});
  EXPECT_EQ(made.shards[1].entries, std::nullopt);
  ASSERT_EQ(made.warnings.size(), 1u);
  EXPECT_EQ(made.warnings[0], "Kafka does not respond for the log of shard 1");
  EXPECT_EQ(to_json(made).find("\"log_entries\":0"), std::string::npos);
}

TEST_F(FleetReportTest, AStandbyIsAsFarBehindAsItsOwnerIsAhead) {
  beats_["n3"].reached[ShardIndex(0)].applied = Position(70);
  const FleetReport made = report();
  EXPECT_EQ(made.shards[0].standbys[1].lag, 30u);
  EXPECT_EQ(made.shards[1].standbys[1].lag, 0u);
}

TEST_F(FleetReportTest, AShardWhoseOwnerIsDeadHasNone) {
  heard_["n1"].alive = false;
  const FleetReport made = report();
  EXPECT_TRUE(made.has_shard_without_owner());
  EXPECT_TRUE(has(made, "shard 0 has no owner"));
  EXPECT_TRUE(has(made, "shard 1 is under-replicated"));
  EXPECT_TRUE(has(made, "node n1 is down"));
}

TEST_F(FleetReportTest, AnOwnerThatDoesNotServeIsNone) {
  beats_["n1"].reached[ShardIndex(0)].service = 0;
  EXPECT_TRUE(report().has_shard_without_owner());
}

TEST_F(FleetReportTest, AFleetWithoutNodesHasShardsWithoutOwners) {
  beats_.clear();
  heard_.clear();
  EXPECT_TRUE(report().has_shard_without_owner());
}

TEST_F(FleetReportTest, AStandbyThatDoesNotFollowIsMissing) {
  beats_["n3"].reached.erase(ShardIndex(0));
  EXPECT_NE(warning().find("shard 0 is under-replicated: 2 of 3"), std::string::npos);
}

TEST_F(FleetReportTest, ClocksAreComparedWithTheMedian) {
  // The brokers' own clock does not matter.
  for (auto& [name, beat] : beats_) beat.clock = kNow + std::chrono::seconds(100);
  EXPECT_TRUE(report().warnings.empty());
  beats_["n2"].clock += std::chrono::milliseconds(900);
  EXPECT_NE(warning().find("the clock of node n2 is 900 ms off; it owns nothing"),
            std::string::npos);
}

TEST_F(FleetReportTest, ANodeThatIsNotLinkedIsNamedWithTheReason) {
  beats_["n1"].linked = {{"n2"}};
  beats_["n2"].linked = {{"n1"}};
  beats_["n3"].linked.emplace();
  beats_["n1"].unlinked["n3"] = "another secret";
  EXPECT_EQ(warning(),
            "node n3 is not linked with most other nodes and will own nothing: n1: it says: "
            "another secret; n2: no link");
  const FleetReport made = report();
  EXPECT_NE(to_text(made, kNow).find("not linked  "), std::string::npos) << to_text(made, kNow);
  EXPECT_NE(to_json(made).find("\"linked\":false"), std::string::npos);
}

TEST_F(FleetReportTest, ALinkThatIsMissingBetweenNodesThatAreLinkedWithMostIsTold) {
  beats_["n1"].linked = {{"n2"}};
  beats_["n1"].unlinked["n3"] = "cannot be reached";
  EXPECT_EQ(warning(),
            "nodes n1 and n3 have no link, so requests that one accepts for shards of the other "
            "fail: cannot be reached");
  heard_["n3"].alive = false;
  EXPECT_FALSE(has(report(), "no link"));
}

TEST_F(FleetReportTest, TwoReplicasInOneZoneAreToldIfThereAreZonesEnough) {
  beats_["n3"].zone = "zone-n2";
  EXPECT_TRUE(report().warnings.empty()) << "there are only two zones";
  beats_["n4"] = beats_["n3"];
  beats_["n4"].node = "n4";
  beats_["n4"].zone = "zone-n4";
  beats_["n4"].reached.clear();
  heard_["n4"] = {kNow, true};
  EXPECT_TRUE(has(report(), "shard 0: n2 and n3 are both in zone zone-n2"));
}

TEST_F(FleetReportTest, DifferentVersionsAndNodesThatAreNotReadyAreTold) {
  beats_["n2"].version = "1.1.0";
  EXPECT_EQ(warning(), "nodes have different versions: 1.0.0, 1.1.0");
  beats_["n2"].version = "1.0.0";
  beats_["n2"].ready = false;
  EXPECT_EQ(warning(), "node n2 is not ready");
}

TEST_F(FleetReportTest, TheTextHasEveryNodeAndShard) {
  apply(fleet::Drain{"n3", true});
  apply(fleet::Move{.id = 5, .shard = ShardIndex(1), .to = "n1"});
  heard_["n2"] = {kNow - std::chrono::seconds(10), false};
  const std::string text = to_text(report(), kNow);
  for (const char* part :
       {"Fleet orders: 2 shards, 3 nodes, coordinator n1", "ready, drained", "heard 10 s ago",
        "n2 (not serving), to n1", "n2 (down), n3 (0)", "\nwarning: shard 1 has no owner"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(FleetReportTest, TheJsonSaysTheSame) {
  const boost::json::value made = boost::json::parse(to_json(report()));
  EXPECT_EQ(made.at("fleet").as_string(), "orders");
  EXPECT_EQ(made.at("nodes").as_array().size(), 3u);
  EXPECT_EQ(made.at("nodes").at(0).at("clock_offset_millis").as_int64(), 0);
  EXPECT_EQ(made.at("shards").at(0).at("standbys").at(1).at("lag").to_number<int>(), 0);
  EXPECT_TRUE(made.at("shards").at(1).at("served").as_bool());
  EXPECT_TRUE(made.at("warnings").as_array().empty());
}

}  // namespace
}  // namespace stanchion::fleet_admin
