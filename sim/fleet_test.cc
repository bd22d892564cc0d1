// Fleets of nodes, with everything that can go wrong: see fleet.h. Each rule that a fleet rests on
// is left out once, to see that its lack is noticed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "os/entropy.h"
#include "sim/fleet_run.h"

namespace stanchion::sim {
namespace {

// Sanitizers make everything about ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kWorlds = 12;
constexpr std::uint64_t kNewWorlds = 4;
#else
constexpr std::uint64_t kWorlds = 100;
constexpr std::uint64_t kNewWorlds = 50;
#endif
constexpr std::uint64_t kBrokenWorlds = 300;

// Looks for it from the world on in which it was last found; the worlds change with everything that
// they simulate.
std::optional<FleetOutcome> find_violation(const FleetRules& rules, std::uint64_t from) {
  for (std::uint64_t seed = from; seed < from + kBrokenWorlds; ++seed) {
    FleetOutcome outcome = run_fleet(seed, rules);
    if (outcome.violation) return outcome;
  }
  return std::nullopt;
}

TEST(FleetSimulation, PromisesHoldInEveryWorld) {
  Fleet::Statistics sum;
  std::uint64_t doubts = 0, dead_letters = 0, redrives = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    const FleetOutcome outcome = run_fleet(seed);
    ASSERT_FALSE(outcome.violation) << report(outcome);
    sum.add(outcome.fleet);
    doubts += outcome.audit.doubts;
    dead_letters += outcome.audit.dead_letters;
    redrives += outcome.audit.redrives;
  }
  fmt::print("{}\n", describe(sum));
  if (kWorlds < 100) return;
  // A world without faults keeps every promise.
  for (const std::uint64_t happened : {sum.kills,      sum.lost_disks,    sum.pauses,
                                       sum.cuts,       sum.drains,        sum.moves,
                                       sum.promotions, sum.losses,        sum.releases,
                                       sum.refusals,   sum.copies,        sum.forwarded,
                                       sum.held,       sum.unknown,       sum.comparisons,
                                       sum.damages,    sum.given_up,      doubts,
                                       dead_letters,   redrives,          sum.partition_cuts,
                                       sum.pair_cuts,  sum.stale_brokers, sum.litter,
                                       sum.fatal,      sum.broken_copies, sum.struck,
                                       sum.clocks,     sum.later_entries})
    EXPECT_GT(happened, kWorlds / 100);
}

// F5.
TEST(FleetSimulation, NoticesClaimsWithoutEnd) {
  const auto claim_every = [](Micros interval) {
    SharedLog log;
    for (std::uint64_t epoch = 1; epoch <= 100; ++epoch)
      log.append({{.kind = journal::LogEntryKind::kClaim,
                   .epoch = journal::Epoch(epoch),
                   .writer = epoch,
                   .first = Position(1)},
                  {}},
                 static_cast<Micros>(epoch) * interval);
  };
  EXPECT_NO_THROW(claim_every(kSecond));
  EXPECT_THROW(claim_every(100 * kMillisecond), Violation);
}

TEST(FleetSimulation, PromisesHoldInNewWorlds) {
  os::SystemEntropy entropy;
  const std::uint64_t first = entropy.u64() >> 16;
  fmt::print("note: {} new fleets from seed {} on\n", kNewWorlds, first);
  std::fflush(stdout);
  for (std::uint64_t seed = first; seed < first + kNewWorlds; ++seed) {
    const FleetOutcome outcome = run_fleet(seed);
    EXPECT_FALSE(outcome.violation) << report(outcome);
  }
}

// Each had a cause of its own: a checkpoint with a time that no record had, records that were
// applied beside a checkpoint, a reader that took claims for missing records, an answer that a node's
// next process took for its own, an idle owner that did not hear of the one between two assignments, a
// dead letter that came from a clock ahead of its queue's.
TEST(FleetSimulation, PromisesHoldInWorldsInWhichOneWasBroken) {
  for (const std::uint64_t seed :
       {136ULL, 180ULL, 218ULL, 553ULL, 997ULL, 1438ULL, 1730ULL, 60'623'966'122'256ULL,
        115'357'624'064'537ULL, 249'479'355'790'500ULL, 196'176'598'160'233ULL, 4'400'013'659ULL,
        8'800'000'591ULL, 8'900'001'179ULL}) {
    // As it was then.
    const FleetOutcome outcome = run_fleet(seed, {.later_faults = false});
    EXPECT_FALSE(outcome.violation) << report(outcome);
  }
}

// Who was late has given way again, so nobody would serve the shard if its owner did not notice.
TEST(FleetSimulation, AnIdleOwnerHearsOfSomebodyWhoClaimedItsShardLate) {
  World world(1, false);
  Auditor auditor(world);
  Fleet fleet(world, auditor, {});
  const auto let_pass = [&](Micros time) {
    for (const Micros until = world.now() + time; world.now() < until;) world.step();
  };
  fleet.boot_all();
  let_pass(20 * kSecond);
  ASSERT_TRUE(fleet.is_whole());
  const Fleet::Statistics before = fleet.statistics();
  fleet.claim_late(ShardIndex(0));
  let_pass(2 * kSecond);
  EXPECT_TRUE(fleet.is_whole());
  EXPECT_EQ(fleet.statistics().losses, before.losses + 1);
  EXPECT_EQ(fleet.statistics().promotions, before.promotions + 1);
}

// A fleet of one shard with a queue, in which everything was saved.
class LostLogTest : public testing::Test {
 protected:
  explicit LostLogTest(int nodes = 3, FleetRules rules = {})
      : fleet_(world_, auditor_, FleetOptions{.nodes = nodes, .shards = 1, .rules = rules}) {}

  void let_pass(Micros time) {
    for (const Micros until = world_.now() + time; world_.now() < until;) world_.step();
  }
  void send(int messages) {
    for (int i = 0; i < messages; ++i) {
      SendMessage request{kQueue, "", {}};
      request.message.body = fmt::format("m{}", ++sent_);
      fleet_.call(std::move(request), [](const Reply*) {});
      let_pass(kSecond);
    }
  }
  void SetUp() override {
    fleet_.boot_all();
    let_pass(20 * kSecond);
    fleet_.restart_all();
    let_pass(20 * kSecond);
    fleet_.call(CreateQueue{kQueue, {}, {}}, [](const Reply*) {});
    send(60);
    let_pass(40 * kSecond);
    ASSERT_TRUE(fleet_.is_whole());
  }
  void lose_the_only_store_that_is_up_to_date();
  std::size_t count(std::string_view what) const {
    const std::string text = fleet_.describe_replicas();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
  }

  const QueueRef kQueue{"000000000000", "us-east-1", "orders"};
  World world_{1, false};
  Auditor auditor_{world_};
  int sent_ = 0;
  Fleet fleet_;
};

// The store that is behind the others has nothing that the log has lost. Its node serves.
TEST_F(LostLogTest, WhoeverHasOtherRecordsThanTheLogOwnsAndFollowsNothing) {
  fleet_.lose_end(ShardIndex(0));
  let_pass(60 * kSecond);
  EXPECT_EQ(count("serves"), 1u) << fleet_.describe_replicas();
  const std::size_t ahead = count("has given up (the store is ahead of its log)");
  EXPECT_GE(ahead, 1u) << fleet_.describe_replicas();
  // Then the log is longer again, and has other records.
  send(100);
  let_pass(700 * kSecond);
  EXPECT_EQ(count("serves"), 1u) << fleet_.describe_replicas();
  EXPECT_EQ(count("has given up (the store has another past)") +
                count("has given up (its store had other records"),
            ahead)
      << fleet_.describe_replicas();
}

// RE4 outlives the process: what the log has lost may be in such a store and nowhere else.
TEST_F(LostLogTest, AStoreThatHasOtherRecordsThanTheLogIsKeptWhenItsNodeIsStartedAgain) {
  fleet_.lose_end(ShardIndex(0));
  let_pass(60 * kSecond);
  const std::size_t ahead = count("has given up");
  ASSERT_GE(ahead, 1u) << fleet_.describe_replicas();
  // The others go on, and trim the log.
  send(100);
  let_pass(700 * kSecond);
  const std::uint64_t copies = fleet_.statistics().copies;
  fleet_.restart_all();
  let_pass(60 * kSecond);
  EXPECT_EQ(fleet_.statistics().copies, copies) << fleet_.describe_replicas();
  EXPECT_EQ(count("has given up (its store had other records"), ahead)
      << fleet_.describe_replicas();
}

// RE5. Their stores are older than the loss, so that only memory knows of it; somebody claims the log,
// so that its owner begins anew, too.
TEST_F(LostLogTest, WhoHasReadWhatTheLogHasLostDoesNotGoOnWithAnOlderStore) {
  send(1);
  let_pass(2 * kSecond);  // A checkpoint is due with the first record; the next ones are not saved.
  send(5);
  ASSERT_TRUE(fleet_.is_whole());
  fleet_.lose_newest(ShardIndex(0), 3);
  fleet_.claim_late(ShardIndex(0));
  let_pass(60 * kSecond);
  EXPECT_EQ(count("has given up (this node has seen the records up to"), 3u)
      << fleet_.describe_replicas();
  const std::uint64_t promotions = fleet_.statistics().promotions;
  let_pass(300 * kSecond);
  EXPECT_EQ(count("serves"), 0u) << fleet_.describe_replicas();
  EXPECT_EQ(fleet_.statistics().promotions, promotions);
}

// Nobody would know why its calls get 500: the owner is alive, and serves.
TEST_F(LostLogTest, AnOwnerWhoseLogTakesNothingSaysSoUntilItDoes) {
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 0u);
  fleet_.cut_log_of_owner(ShardIndex(0), 60 * kSecond);
  let_pass(20 * kSecond);
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 0u) << "nothing was written";
  send(1);
  let_pass(2 * kSecond);
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 0u) << "that happens when a broker is lost";
  let_pass(4 * kSecond);
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 3u) << fleet_.describe_replicas();
  let_pass(30 * kSecond);
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 3u) << fleet_.describe_replicas();
  let_pass(10 * kSecond);
  EXPECT_EQ(fleet_.know_of_stall(ShardIndex(0)), 0u) << fleet_.describe_replicas();
}

// Its standbys do not reach the log for two minutes, in which the owner writes, saves what it has, and
// loses it.
void LostLogTest::lose_the_only_store_that_is_up_to_date() {
  fleet_.cut_logs_of_standbys(ShardIndex(0), 120 * kSecond);
  send(80);
  fleet_.lose_disk_of_owner(ShardIndex(0));
  let_pass(400 * kSecond);
}

TEST_F(LostLogTest, TheLogKeepsWhatOnlyItsOwnerHasSaved) {
  lose_the_only_store_that_is_up_to_date();
  EXPECT_TRUE(fleet_.is_whole()) << fleet_.describe_replicas();
}

class EarlyTrimmedLogTest : public LostLogTest {
 protected:
  EarlyTrimmedLogTest() : LostLogTest(3, {.trims_by_all = false}) {}
};

TEST_F(EarlyTrimmedLogTest, NoticesALogThatIsTrimmedWhenOnlyItsOwnerHasACheckpoint) {
  lose_the_only_store_that_is_up_to_date();
  EXPECT_FALSE(fleet_.is_whole()) << fleet_.describe_replicas();
}

class LostLogOfFourTest : public LostLogTest {
 protected:
  LostLogOfFourTest() : LostLogTest(4) {}
};

// One of the nodes has nothing of the shard, so that any log is good enough for it.
TEST_F(LostLogOfFourTest, NobodyServesALogThatIsEmptyWhileOthersHaveWhatItHad) {
  ASSERT_EQ(count("has no replica"), 1u) << fleet_.describe_replicas();
  fleet_.make_log_anew(ShardIndex(0));
  let_pass(300 * kSecond);
  EXPECT_EQ(count("has given up (the store is ahead of its log)"), 3u)
      << fleet_.describe_replicas();
  EXPECT_EQ(count("serves"), 0u) << fleet_.describe_replicas();
  // Until an operator gives the stores up.
  fleet_.remove_stores(ShardIndex(0));
  let_pass(60 * kSecond);
  EXPECT_EQ(count("serves"), 1u) << fleet_.describe_replicas();
  EXPECT_EQ(count("has given up"), 0u) << fleet_.describe_replicas();
}

// A fleet of which all nodes say whom they have links with.
class LinksTest : public testing::Test {
 protected:
  void let_pass(Micros time) {
    for (const Micros until = world_.now() + time; world_.now() < until;) world_.step();
  }
  void found(int nodes, const FleetRules& rules = {}) {
    fleet_ = std::make_unique<Fleet>(world_, auditor_,
                                     FleetOptions{.nodes = nodes, .shards = 6, .rules = rules});
    fleet_->boot_all();
    let_pass(20 * kSecond);
    fleet_->restart_all();
    let_pass(60 * kSecond);
    ASSERT_TRUE(fleet_->is_whole());
  }
  // How many shards each node serves.
  std::map<std::string, int> served() const {
    std::map<std::string, int> found;
    const std::string text = fleet_->describe_replicas();
    for (const char* name : {"n1", "n2", "n3"})
      for (std::size_t at = 0;
           (at = text.find(fmt::format("{} serves", name), at)) != std::string::npos; ++at)
        ++found[name];
    return found;
  }

  World world_{1, false};
  Auditor auditor_{world_};
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(LinksTest, ANodeThatCannotReachItsPeersOwnsNothingUntilItCan) {
  found(3);
  ASSERT_EQ(served().size(), 3u) << fleet_->describe_replicas();
  fleet_->cut_links(1, 100 * kSecond);
  let_pass(15 * kSecond);
  EXPECT_EQ(served()["n2"], 0) << fleet_->describe_replicas();
  EXPECT_EQ(served()["n1"] + served()["n3"], 6) << fleet_->describe_replicas();
  EXPECT_TRUE(fleet_->is_whole()) << "it follows" << fleet_->describe_replicas();
  let_pass(60 * kSecond);
  EXPECT_EQ(served()["n2"], 0) << fleet_->describe_replicas();
  let_pass(60 * kSecond);
  EXPECT_GT(served()["n2"], 0) << fleet_->describe_replicas();
}

TEST_F(LinksTest, ALinkThatIsLostForAMomentMovesNothing) {
  found(3);
  const Fleet::Statistics before = fleet_->statistics();
  for (int i = 0; i < 5; ++i) {
    fleet_->cut_links(1, 3 * kSecond);
    let_pass(5 * kSecond);
  }
  EXPECT_EQ(fleet_->statistics().promotions, before.promotions);
}

// Each has links with most, and nobody else hears of it.
TEST_F(LinksTest, TwoOfThreeNodesWithoutALinkKeepWhatTheyHave) {
  found(3);
  const Fleet::Statistics before = fleet_->statistics();
  fleet_->cut_pair(0, 1, 30 * kSecond);
  let_pass(60 * kSecond);
  EXPECT_EQ(fleet_->statistics().promotions, before.promotions);
  EXPECT_TRUE(fleet_->is_whole()) << fleet_->describe_replicas();
}

// RE3: how often shards change their owners while one of three nodes does not hear what is decided.
class BlindNodeTest : public LinksTest {
 protected:
  std::uint64_t promotions(const FleetRules& rules) {
    found(3, rules);
    EXPECT_EQ(served()["n2"], 2) << fleet_->describe_replicas();
    const std::uint64_t before = fleet_->statistics().promotions;
    fleet_->cut_control(1, 60 * kSecond);
    // An owner that has nothing to do does not notice that it is none any more.
    for (int i = 0; i < 590; ++i) {
      GetQueueAttributes request{{"000000000000", "us-east-1", fmt::format("q{}", i % 20)}, {}};
      fleet_->call(std::move(request), [](const Reply*) {});
      let_pass(100 * kMillisecond);
    }
    return fleet_->statistics().promotions - before;
  }
};

TEST_F(BlindNodeTest, WhoDoesNotHearOfItsSuccessorTakesNothingFromIt) {
  EXPECT_EQ(promotions({}), 2u);
}

TEST_F(BlindNodeTest, NoticesWhoClaimsWithoutHavingHeard) {
  EXPECT_GT(promotions({.rereads_beats = false}), 10u);
}

// Queues in all shards whose messages become dead letters of one when they are received again.
class DeadLettersTest : public LinksTest {
 protected:
  void found_queues(const FleetRules& rules) {
    found(3, rules);
    call(CreateQueue{queue("dead"), {}, {}});
    for (int i = 0; i < kSources; ++i)
      call(CreateQueue{source(i),
                       {{"RedrivePolicy", R"({"maxReceiveCount":1,"deadLetterTargetArn":")" +
                                              queue("dead").arn() + "\"}"}},
                       {}});
  }
  // A message to each, which is received once.
  void send_to_all() {
    for (int i = 0; i < kSources; ++i) {
      SendMessage send{source(i), "", {}};
      send.message.body = fmt::format("m{}", ++sent_);
      call(std::move(send));
    }
    receive_from_all();
    let_pass(kSecond);
  }
  void receive_from_all() {
    for (int i = 0; i < kSources; ++i) {
      ReceiveMessage receive;
      receive.queue = source(i);
      receive.visibility_timeout = 0;
      fleet_->call(std::move(receive), [](const Reply*) {});
    }
  }

 private:
  static constexpr int kSources = 12;

  static QueueRef queue(const std::string& name) { return {"000000000000", "us-east-1", name}; }
  static QueueRef source(int number) { return queue(fmt::format("source-{}", number)); }
  void call(Request request) {
    fleet_->call(std::move(request), [](const Reply*) {});
    let_pass(kSecond);
  }

  int sent_ = 0;
};

// Verdicts about dead letters go to owners that are none any more, and nothing happens afterwards.
class LostVerdictsTest : public DeadLettersTest {
 protected:
  bool are_settled(const FleetRules& rules) {
    found_queues(rules);
    send_to_all();
    fleet_->lose_verdicts(100);
    receive_from_all();
    let_pass(kSecond);
    EXPECT_TRUE(fleet_->has_transfers());
    fleet_->lose_verdicts(0);
    let_pass(130 * kSecond);
    return !fleet_->has_transfers();
  }
};

TEST_F(LostVerdictsTest, WhatIsNotSettledIsHandedOverAgain) {
  EXPECT_TRUE(are_settled({}));
}

TEST_F(LostVerdictsTest, NoticesTransfersThatAreHandedOverOnce) {
  EXPECT_FALSE(are_settled({.hands_over_again = false}));
}

// RO2, where nothing is handed over again only because time has passed.
class HandedOverOnceTest : public DeadLettersTest {
 protected:
  void SetUp() override { found_queues({.hands_over_again = false}); }
};

// It has the transfers when it wakes up, and cannot accept them any more. No connection breaks.
TEST_F(HandedOverOnceTest, WhatWentToAnOwnerThatWasReplacedGoesToTheNext) {
  int had_transfers = 0;
  for (std::size_t machine = 0; machine < 3; ++machine) {
    send_to_all();
    fleet_->pause(machine, 6 * kSecond);
    receive_from_all();
    let_pass(kSecond);
    had_transfers += fleet_->has_transfers();
    let_pass(60 * kSecond);
    EXPECT_FALSE(fleet_->has_transfers()) << "while " << machine << " was paused";
  }
  EXPECT_GT(had_transfers, 0);
}

// Each has its shards before and after.
TEST_F(HandedOverOnceTest, WhatWasLostWithAConnectionGoesOverTheNext) {
  send_to_all();
  const Fleet::Statistics before = fleet_->statistics();
  for (const auto& [one, other] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)})
    fleet_->cut_pair(static_cast<std::size_t>(one), static_cast<std::size_t>(other), 3 * kSecond);
  // Where a call goes in decides whether its queue can be reached.
  for (int tries = 0; tries < 5; ++tries) receive_from_all();
  let_pass(2 * kSecond);
  EXPECT_TRUE(fleet_->has_transfers());
  let_pass(20 * kSecond);
  EXPECT_FALSE(fleet_->has_transfers());
  EXPECT_EQ(fleet_->statistics().promotions, before.promotions);
}

TEST_F(LinksTest, OfTwoNodesThatAreApartOneServesEverything) {
  found(2);
  ASSERT_EQ(served().size(), 2u) << fleet_->describe_replicas();
  fleet_->cut_links(0, 100 * kSecond);
  let_pass(20 * kSecond);
  EXPECT_EQ(served().size(), 1u) << fleet_->describe_replicas();
  EXPECT_TRUE(fleet_->is_whole()) << fleet_->describe_replicas();
  const Fleet::Statistics before = fleet_->statistics();
  let_pass(60 * kSecond);
  EXPECT_EQ(fleet_->statistics().promotions, before.promotions);
}

// While Kafka has no quorum: whoever wrote is told that nobody knows, whoever looked that it may look
// again, wherever the call went in. The auditor sees that what was told is true.
TEST_F(LostLogTest, NoCallWaitsForEver) {
  constexpr Micros kOutage = 120 * kSecond;
  const Micros timeout = 1000 * Micros{fleet::kWriteTimeout.count()};
  fleet_.cut_logs(kOutage);
  let_pass(2 * kSecond);  // No proof is recent.
  int unknown = 0, refused = 0;
  for (int i = 0; i < 10; ++i) {
    SendMessage request{kQueue, "", {}};
    request.message.body = fmt::format("m{}", ++sent_);
    fleet_.call(std::move(request), [&](const Reply* reply) { unknown += reply == nullptr; });
    fleet_.call(GetQueueAttributes{kQueue, {"All"}}, [&](const Reply* reply) {
      refused +=
          reply != nullptr && !*reply && reply->error().code == ErrorCode::kServiceUnavailable;
    });
  }
  let_pass(timeout - kSecond);
  EXPECT_EQ(unknown + refused, 0) << "there is still hope";
  let_pass(2 * kSecond);
  EXPECT_EQ(unknown, 10);
  EXPECT_EQ(refused, 10);
  let_pass(kOutage);
  ASSERT_TRUE(fleet_.is_whole());
  int there = 0;
  fleet_.call(GetQueueAttributes{kQueue, {"All"}}, [&](const Reply* reply) {
    ASSERT_TRUE(reply != nullptr && *reply);
    there = std::stoi(
        std::get<QueueAttributesResult>(**reply).attributes.at("ApproximateNumberOfMessages"));
  });
  let_pass(2 * kSecond);
  EXPECT_EQ(there, sent_) << "the log took them when it could";
}

// What it is to have was decided, and is not in the log.
TEST_F(LostLogTest, ABackupOfAnOwnerEndsAlthoughTheLogTakesNothing) {
  fleet_.cut_logs(900 * kSecond);
  let_pass(2 * kSecond);
  SendMessage request{kQueue, "", {}};
  request.message.body = "undurable";
  fleet_.call(std::move(request), [](const Reply*) {});
  let_pass(2 * kSecond);
  std::optional<Status> ended;
  const auto back_up = [&] {
    fleet_.back_up_owner(ShardIndex(0), [&](const Status& status) { ended = status; });
  };
  back_up();
  let_pass(590 * kSecond);
  EXPECT_FALSE(ended);
  let_pass(20 * kSecond);
  ASSERT_TRUE(ended) << fleet_.describe_replicas();
  ASSERT_FALSE(*ended);
  EXPECT_NE(ended->error().message.find("within 10 minutes"), std::string::npos)
      << ended->error().message;
  ended.reset();
  let_pass(400 * kSecond);
  back_up();
  let_pass(20 * kSecond);
  EXPECT_TRUE(ended && *ended) << fleet_.describe_replicas();
}

void expect_violation(const FleetRules& rules, std::uint64_t from) {
  const auto found = find_violation(rules, from);
  ASSERT_TRUE(found) << "nobody noticed";
  fmt::print("seed {}: {}\n", found->seed, *found->violation);
}

TEST(FleetSimulation, TheSameSeedPlaysTheSameWorld) {
  EXPECT_EQ(run_fleet(7).hash, run_fleet(7).hash);
}

TEST(FleetSimulation, NoticesMissingBarriers) {
  expect_violation({.barriers = false}, 412);
}

TEST(FleetSimulation, NoticesAcknowledgementsThatAreTakenForGranted) {
  expect_violation({.continuity = false}, 1);
}

TEST(FleetSimulation, NoticesOwnersThatHaveNotReadToTheirClaim) {
  expect_violation({.reads_to_claim = false}, 121);
}

TEST(FleetSimulation, NoticesARequestThatIsTakenToItsOwnerTwice) {
  expect_violation({.frames_once = false}, 1);
}

TEST(FleetSimulation, NoticesEntriesThatAreSentBeforeTheLastOneIsKnown) {
  expect_violation({.one_under_way = false}, 7);
}

TEST(FleetSimulation, NoticesASuccessWithoutAnOffsetThatIsTakenForOne) {
  expect_violation({.sees_unplaced = false}, 18);
}

TEST(FleetSimulation, NoticesAClaimThatIsWaitedForAlthoughItIsLost) {
  expect_violation({.gives_up_claims = false}, 112);
}

TEST(FleetSimulation, NoticesAnEntryThatIsNotSkippedAlthoughAnOperatorSaysSo) {
  expect_violation({.heeds_skips = false}, 4);
}

TEST(FleetSimulation, NoticesReadersThatStopAtBytesOfAStranger) {
  expect_violation({.skips_foreign = false}, 4);
}

TEST(FleetSimulation, NoticesNodesThatOwnShardsWithoutLinks) {
  expect_violation({.tells_links = false}, 519);
}

TEST(FleetSimulation, NoticesALogThatLooksAtTheClocksOfNodes) {
  expect_violation({.log_stamps = false}, 3);
}

TEST(FleetSimulation, NoticesWhoPassesOverWhatALaterReleaseHasWritten) {
  expect_violation({.heeds_later = false}, 10);
}

TEST(FleetSimulation, NoticesALaterFormatThatIsWrittenBeforeAllReadIt) {
  const auto found = find_violation({.waits_for_all = false}, 1);
  ASSERT_TRUE(found) << "nobody noticed";
  fmt::print("seed {}: {}\n", found->seed, *found->violation);
  EXPECT_TRUE(found->violation->starts_with("F4: ")) << *found->violation;
}

// Promises hold all the same: it follows no further, owns nothing, and goes on when it is upgraded.
TEST(FleetSimulation, ANodeThatMeetsALaterFormatDoesNotGuess) {
  std::uint64_t given_up = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds / 3; ++seed) {
    const FleetOutcome outcome = run_fleet(seed, {.waits_for_all = false, .meets_newer = true});
    EXPECT_FALSE(outcome.violation) << report(outcome);
    given_up += outcome.fleet.given_up;
  }
  EXPECT_GT(given_up, 0u);
}

// The engine's own checks may notice these before a client does.
void expect_death(const FleetRules& rules, std::uint64_t from) {
  const auto play = [&] {
    const auto found = find_violation(rules, from);
    fmt::print(stderr, "{}\n", found ? "check failed: " + *found->violation : "nobody noticed");
    std::_Exit(1);
  };
  EXPECT_DEATH(play(), "check failed");
}

TEST(FleetSimulationDeathTest, NoticesTwoOwnersOfOneEpoch) {
  expect_death({.one_at_a_time = false}, 185);
}

TEST(FleetSimulationDeathTest, NoticesReadersThatTakeWhatIsVoid) {
  expect_death({.skips_void = false}, 1);
}

TEST(FleetSimulationDeathTest, NoticesReadersThatTakeWhatArrivedTwice) {
  expect_death({.skips_doubled = false}, 1);
}

}  // namespace
}  // namespace stanchion::sim
