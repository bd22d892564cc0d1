// One replica of a shard on a simulated log, of which the test is everybody else: rules of
// fleet/replica.h whose lack hardly shows in a random world. fleet_test.cc has whole fleets.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "fleet/replica.h"
#include "model/fact.h"
#include "sim/shared_log.h"
#include "sim/sim_loop.h"
#include "sim/sim_store.h"
#include "sim/violation.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

using fleet::Replica;
using journal::Epoch;
using journal::LogDigest;
using journal::LogOffset;
using Role = Replica::Role;

constexpr Owner kNode = 1;
constexpr std::uint64_t kOther = 7;  // Who writes the log besides the replica.
constexpr ShardIndex kShard(0);
// Nothing is saved unless a test wants it.
constexpr broker::KeeperOptions kSavesNothing{.checkpoint_interval = std::chrono::hours(1'000)};
constexpr broker::KeeperOptions kSavesEachRecord{.checkpoint_bytes = 1};

LogDigest digest_of(const std::vector<std::string>& records) {
  LogDigest digest;
  for (const std::string& record : records) digest = journal::extended(digest, record);
  return digest;
}

// The store of a replica that has read these records.
std::shared_ptr<store::MemoryStore> store_with(const std::vector<std::string>& records) {
  engine::Engine engine(engine::Options{.shard = kShard});
  Instant at{};
  for (const std::string& record : records) engine.advance(at = parse_record(record)->at);
  engine.begin_checkpoint(Position(records.size()), at, digest_of(records).value());
  while (!engine.save_some(1'000)) continue;
  auto store = std::make_shared<store::MemoryStore>();
  EXPECT_TRUE(store->commit(engine.take_checkpoint()));
  return store;
}

// One whose commits and openings may have to wait, as with a slow disk.
class SlowBackground final : public broker::Background {
 public:
  explicit SlowBackground(World& world) : running_(world, kNode, kMillisecond) {}

  void run(broker::Work work, broker::Task task) override {
    if (!is_slow_ || work != broker::Work::kCheckpoint) return running_.run(work, std::move(task));
    held_.push_back(std::move(task));
  }
  void be_slow() { is_slow_ = true; }
  std::size_t waiting() const { return held_.size(); }
  void go_on() {
    is_slow_ = false;
    for (broker::Task& task : std::exchange(held_, {}))
      running_.run(broker::Work::kCheckpoint, std::move(task));
  }

 private:
  SimBackground running_;
  bool is_slow_ = false;
  std::deque<broker::Task> held_;
};

class ReplicaTest : public testing::Test, private broker::RemoteShards {
 protected:
  explicit ReplicaTest(const broker::KeeperOptions& keeping = kSavesNothing) {
    time_.begin(Instant());
    broker_->start(
        {&loop_}, background_, [] {},
        [](const Failure& failure) { throw Violation(failure.message); });
    replica_ = std::make_unique<Replica>(
        kShard, Replica::Options{.engine = {.shard = kShard}, .keeping = keeping}, *broker_, loop_,
        background_, time_, entropy_, outside());
  }
  // Everything outlives the replica.
  ~ReplicaTest() override { replica_.reset(); }

  Replica::Outside outside() {
    return {.open = [this] { return open(); },
            .copy_store = [this] { return copy_store(); },
            .not_copied = [this](const Failure& why) { not_copied_.push_back(why.message); },
            .note_past =
                [this](bool is_other) {
                  is_noted_ = is_other;
                  return Status();
                },
            .gave_up = [this](const Failure& why) { given_up_.push_back(why.message); },
            .released = [](fleet::AssignmentNo) {},
            .role_changed = [] {},
            .overtaken = [] {}};
  }

  Result<Replica::Storage> open() {
    ++openings_;
    const SharedLogJournal::Site site{.format = 2, .trouble = &trouble_, .seed = 1};
    return Replica::Storage{
        std::make_unique<SharedLogJournal>(world_, kNode, log_, uplink_, FleetRules(), site),
        std::make_shared<SimStore>(disk_, faults_, world_.random().fork()), is_noted_};
  }

  Status copy_store() {
    ++copies_;
    EXPECT_FALSE(is_noted_) << "the store is to be kept";
    if (copies_to_get_.empty()) return fail("nobody has a store to copy");
    disk_ = copies_to_get_.front();
    copies_to_get_.pop_front();
    return {};
  }

  void on_loop(broker::Task task) { loop_.run(task); }
  // As one more assignment says.
  void be(Role role) {
    assignment_ = assignment_.next();
    on_loop([&] { replica_->set_role(role, assignment_); });
  }
  void verify_ownership() {
    on_loop([&] { replica_->verify_ownership(); });
  }

  void let_pass(Micros time) {
    bool over = false;
    world_.schedule(time, kWorldOwner, [&] { over = true; });
    while (!over) world_.step();
  }
  template <class Condition>
  void run_until(const Condition& condition) {
    for (const Micros end = world_.now() + 60 * kSecond; !condition();)
      ASSERT_TRUE(world_.now() < end && world_.step()) << "it does not happen";
  }
  // It has served the log before, and has nothing to write now.
  void serve_and_give_way() {
    claim();
    be(Role::kOwner);
    run_until([&] { return replica_->serving(); });
    be(Role::kStandby);
    run_until([&] { return replica_->following(); });
    ASSERT_EQ(counted().promotions, 1u);
  }
  // It has followed six records of somebody else, and follows no more.
  void follow_and_leave() {
    claim();
    write(6);
    be(Role::kStandby);
    let_pass(kSecond);
    ASSERT_EQ(applied(), 6u);
    be(Role::kNone);
  }

  // What somebody else does.
  void claim() {
    log_.append({{.kind = journal::LogEntryKind::kClaim,
                  .epoch = log_.epoch().next(),
                  .writer = kOther,
                  .first = log_.next()},
                 {}},
                world_.now());
  }
  void write(int records) {
    for (; records > 0; --records)
      log_.append({{.kind = journal::LogEntryKind::kRecords,
                    .epoch = log_.epoch(),
                    .writer = kOther,
                    .first = log_.next(),
                    .count = 1,
                    .before = digest_of(log_.history())},
                   {some_record()}},
                  world_.now());
  }
  // Each is another one.
  std::string some_record() { return RecordWriter(from_millis(++millis_)).bytes(); }
  // The first records of the log.
  std::vector<std::string> records(std::size_t count) const {
    return {log_.history().begin(), log_.history().begin() + static_cast<std::ptrdiff_t>(count)};
  }
  // The entries of the log are a claim and the records, one each; what is before this one goes.
  void trim_before(std::uint64_t record) { log_.trim_before(LogOffset(record)); }

  const Replica::Statistics& counted() const { return replica_->statistics(); }
  std::uint64_t applied() const {
    return replica_->shard() == nullptr ? 0 : replica_->shard()->applied().value();
  }
  bool gave_up_last_because(std::string_view why) const {
    return !given_up_.empty() && given_up_.back().starts_with(why);
  }

  SharedLog log_;
  World world_{1, false};
  Uplink uplink_;
  LogTrouble trouble_;
  SlowBackground background_{world_};
  std::shared_ptr<store::MemoryStore> disk_ = std::make_shared<store::MemoryStore>();
  std::deque<std::shared_ptr<store::MemoryStore>> copies_to_get_;  // From the others.
  int openings_ = 0, copies_ = 0;
  bool is_noted_ = false;  // That the store has another past than the log.
  std::vector<std::string> not_copied_, given_up_;
  std::unique_ptr<Replica> replica_;

 private:
  void submit(ShardIndex, Request&&, const engine::Neighbours&, broker::Ticket,
              broker::Respond respond, broker::Guard) override {
    respond(NoResult());
  }
  void cancel(ShardIndex, broker::Ticket) override {}
  void contribute(ShardIndex, const engine::Needs&, engine::Neighbours neighbours,
                  Contributed then) override {
    then(std::move(neighbours), false);
  }
  void lost(ShardIndex, std::string_view why) override { replica_->lost(why); }
  void deliver(ShardIndex, Transfer, SourceEpoch) override {}
  void tell_verdict(ShardIndex, const Settlement&) override {}

  WorldClock clock_{world_};
  WorldSteadyClock steady_{world_};
  WorldEntropy entropy_{world_.random().fork()};
  Threads threads_;
  SimLoop loop_{world_, kNode, threads_, 0};
  os::Timekeeper time_{clock_, steady_};
  StoreFaults faults_;
  std::unique_ptr<broker::Broker> broker_ = broker::Broker::of_a_node(1, *this);
  fleet::AssignmentNo assignment_;
  std::int64_t millis_ = 0;
};

// Before, it does not know which epoch is the next: its claim would be void, and it would wait until it
// is told once more that it is the owner.
TEST_F(ReplicaTest, ALogIsClaimedWhenItsEndWasRead) {
  claim();
  write(3);
  claim();
  uplink_.cut_until = world_.now() + kSecond;
  be(Role::kOwner);
  let_pass(kSecond / 2);
  EXPECT_EQ(counted().claims, 0u);
  let_pass(kSecond);
  EXPECT_TRUE(replica_->serving());
  EXPECT_EQ(counted().claims, 1u);
  EXPECT_EQ(counted().refusals, 0u);
}

// RE5: a log that was made anew is nobody's, so that a claim of it would count.
TEST_F(ReplicaTest, WhoHasSeenMoreThanTheLogHasDoesNotClaimItBeforeItsEndWasRead) {
  ASSERT_NO_FATAL_FAILURE(follow_and_leave());
  log_.make_anew();
  uplink_.cut_until = world_.now() + kSecond;
  be(Role::kOwner);
  let_pass(10 * kSecond);
  EXPECT_TRUE(gave_up_last_because("this node has seen the records up to 6, but the log ends"));
  EXPECT_TRUE(is_noted_);
  EXPECT_EQ(counted().promotions, 0u);
  EXPECT_EQ(log_.epoch(), Epoch());
}

// RE5: the store is older than what the log has lost, and the log is longer again.
TEST_F(ReplicaTest, WhoHasReadOtherRecordsThanTheLogHasNowDoesNotGoOn) {
  ASSERT_NO_FATAL_FAILURE(follow_and_leave());
  log_.lose_behind(Position(3));
  write(5);
  be(Role::kStandby);
  let_pass(kSecond);
  EXPECT_TRUE(gave_up_last_because("this node has read other records up to 6 than the log has"));
  EXPECT_TRUE(is_noted_);
  let_pass(60 * kSecond);
  EXPECT_FALSE(replica_->following());
}

// What was read together may have had another owner in between.
TEST_F(ReplicaTest, AnIdleOwnerThatIsAssignedItsShardAgainFindsOutWhetherItHasTheLog) {
  serve_and_give_way();
  be(Role::kOwner);
  let_pass(kSecond);
  ASSERT_TRUE(replica_->serving());
  claim();
  let_pass(60 * kSecond);
  ASSERT_TRUE(replica_->serving()) << "an idle owner is not told";
  const std::uint64_t losses = counted().losses;
  be(Role::kOwner);
  let_pass(kSecond);
  EXPECT_EQ(counted().losses, losses + 1);
  EXPECT_FALSE(replica_->serving());
}

// Its claim is in the log, and so is a later one, when it hears that another serves the shard.
TEST_F(ReplicaTest, WhoIsDoubtedWhileItClaimsFindsOutWhenItServes) {
  serve_and_give_way();
  const std::uint64_t claims = counted().claims, losses = counted().losses;
  be(Role::kOwner);
  run_until([&] { return counted().claims == claims + 1; });
  uplink_.cut_until = world_.now() + kSecond;
  let_pass(kSecond / 10);
  ASSERT_EQ(log_.epoch(), Epoch(3)) << "the claim is there";
  claim();
  verify_ownership();
  let_pass(10 * kSecond);
  EXPECT_EQ(counted().promotions, 2u);
  EXPECT_EQ(counted().losses, losses + 1);
  EXPECT_TRUE(replica_->following());
}

TEST_F(ReplicaTest, AClaimThatCountsIsNotServedWhenTheAssignmentHasChanged) {
  claim();
  be(Role::kOwner);
  run_until([&] { return counted().claims == 1; });
  be(Role::kStandby);
  let_pass(kSecond);
  EXPECT_EQ(log_.epoch(), Epoch(2)) << "the claim was under way";
  EXPECT_EQ(counted().refusals, 0u);
  EXPECT_EQ(counted().promotions, 0u);
  EXPECT_TRUE(replica_->following());
  be(Role::kOwner);
  let_pass(kSecond);
  EXPECT_TRUE(replica_->serving());
  EXPECT_EQ(log_.epoch(), Epoch(3));
}

// Another node may be able to write: the coordinator gives it the shard when it hears of this.
TEST_F(ReplicaTest, AnOwnerWhoseLogRefusesForGoodGivesTheShardUp) {
  claim();
  be(Role::kOwner);
  run_until([&] { return replica_->serving(); });
  trouble_.fatal = 1'000;
  verify_ownership();
  let_pass(kSecond);
  EXPECT_TRUE(gave_up_last_because(SharedLogJournal::kFatal));
  EXPECT_EQ(replica_->why_given_up(), SharedLogJournal::kFatal);
  EXPECT_FALSE(replica_->reached()) << "it is not taken for a standby";
  // Perhaps it was mended.
  trouble_.fatal = 0;
  let_pass(10 * kSecond);
  EXPECT_TRUE(replica_->following());
}

// A replica that needs a copy of another's store, since the log begins later than its own ends.
class TrimmedLogTest : public ReplicaTest {
 protected:
  void SetUp() override {
    claim();
    write(10);
    trim_before(4);
  }
};

TEST_F(TrimmedLogTest, AStoreThatCouldNotBeCopiedIsCopiedAgain) {
  be(Role::kStandby);
  let_pass(kSecond / 2);
  EXPECT_EQ(copies_, 1);
  EXPECT_EQ(not_copied_, std::vector<std::string>{"nobody has a store to copy"});
  copies_to_get_ = {store_with(records(8))};
  let_pass(2 * kSecond);
  EXPECT_EQ(copies_, 2);
  EXPECT_TRUE(replica_->following());
  EXPECT_EQ(applied(), 10u);
}

TEST_F(TrimmedLogTest, AStoreIsCopiedAgainIfTheLogWasTrimmedBehindTheCopy) {
  copies_to_get_ = {store_with(records(1)), store_with(records(8))};
  be(Role::kStandby);
  let_pass(5 * kSecond);
  EXPECT_EQ(copies_, 2);
  EXPECT_EQ(not_copied_.size(), 1u);
  EXPECT_TRUE(given_up_.empty());
  EXPECT_EQ(applied(), 10u);
}

// Whoever has it keeps it, and this node needs one that fits.
TEST_F(TrimmedLogTest, ACopyThatHasAnotherPastIsReplacedByAnother) {
  std::vector<std::string> others = records(5);
  others.push_back(some_record());
  copies_to_get_ = {store_with(others), store_with(records(8))};
  be(Role::kStandby);
  let_pass(kSecond);
  EXPECT_EQ(copies_, 1);
  EXPECT_TRUE(gave_up_last_because("the store has another past"));
  EXPECT_FALSE(is_noted_) << "it is not this node's own";
  let_pass(10 * kSecond);
  EXPECT_EQ(copies_, 2);
  EXPECT_TRUE(replica_->following());
  EXPECT_EQ(applied(), 10u);
}

// RE4: the copy has two records that the log has lost since this node has read them.
TEST_F(TrimmedLogTest, ACopyThatHasWhatTheLogHasLostIsNotReplaced) {
  disk_ = store_with(records(4));
  be(Role::kStandby);
  let_pass(kSecond);
  ASSERT_EQ(applied(), 10u);
  be(Role::kNone);
  const std::vector<std::string> before = records(8);
  trim_before(6);
  log_.lose_behind(Position(8));
  copies_to_get_ = {store_with(before), store_with(records(6))};
  be(Role::kStandby);
  let_pass(kSecond);
  EXPECT_TRUE(gave_up_last_because("this node has seen the records up to 10, but the log ends"));
  EXPECT_TRUE(is_noted_);
  log_.lose_behind(Position(6));
  let_pass(5 * kSecond);
  EXPECT_TRUE(gave_up_last_because("the store is ahead of its log"));
  let_pass(60 * kSecond);
  EXPECT_EQ(copies_, 1);
}

// RE2.
class SavingReplicaTest : public ReplicaTest {
 protected:
  SavingReplicaTest() : ReplicaTest(kSavesEachRecord) {}
};

TEST_F(SavingReplicaTest, AStoreIsOpenedAgainBehindTheCommitThatWasUnderWay) {
  claim();
  write(1);
  be(Role::kStandby);
  let_pass(kSecond);
  background_.be_slow();
  write(1);
  let_pass(kSecond);
  ASSERT_EQ(background_.waiting(), 1u) << "the first record is saved before the next is read";
  be(Role::kNone);
  be(Role::kStandby);
  let_pass(kSecond);
  EXPECT_EQ(openings_, 1) << "the commit may still happen";
  background_.go_on();
  let_pass(kSecond);
  EXPECT_EQ(openings_, 2);
  ASSERT_TRUE(replica_->following());
  EXPECT_EQ(replica_->shard()->keeper().loaded_position(), Position(1));
  EXPECT_EQ(applied(), 2u);
}

}  // namespace
}  // namespace stanchion::sim
