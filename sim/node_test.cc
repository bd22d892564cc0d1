// One node of a simulated fleet, whose control log the test has in its hands: rules of fleet/node.h
// whose lack hardly shows in a random world. fleet_test.cc has whole fleets.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "fleet/node.h"
#include "sim/shared_log.h"
#include "sim/sim_loop.h"
#include "sim/sim_store.h"
#include "sim/violation.h"
#include "sim/world.h"

namespace stanchion::sim {
namespace {

using fleet::Assignment;
using fleet::AssignmentNo;
using fleet::Beat;
using fleet::ControlRecord;
using fleet::CoordinatorClaim;
using fleet::Term;
using journal::Epoch;

constexpr Owner kNode = 1;
constexpr ShardIndex kShard(0);

// Has what was put there, and what the node appends, unless that is to be lost.
class ScriptedControlLog final : public fleet::ControlLog {
 public:
  void follow(std::function<void()> arrived) override { arrived_ = std::move(arrived); }
  Status read(const std::function<void(const ControlRecord&)>& visit) override {
    while (read_ < records_.size()) visit(records_[read_++]);
    return {};
  }
  bool has_caught_up() const override { return !half; }
  void append(ControlRecord record) override {
    said.push_back(record);
    if (!loses || !loses(record)) add(std::move(record));
  }

  void add(ControlRecord record) {
    records_.push_back(std::move(record));
    if (arrived_) arrived_();
  }
  template <class Record>
  std::vector<Record> said_of() const {
    std::vector<Record> found;
    for (const ControlRecord& record : said)
      if (const auto* one = std::get_if<Record>(&record)) found.push_back(*one);
    return found;
  }

  bool half = false;  // There is more than it has shown.
  std::function<bool(const ControlRecord&)> loses;
  std::vector<ControlRecord> said;  // By the node.

 private:
  std::vector<ControlRecord> records_;
  std::size_t read_ = 0;
  std::function<void()> arrived_;
};

struct NoLinks final : fleet::Transport {
  bool send(const fleet::NodeName&, fleet::Frame) override { return false; }
};

class NodeTest : public testing::Test {
 protected:
  NodeTest() { time_.begin(Instant()); }
  // Everything outlives the node.
  ~NodeTest() override { node_.reset(); }

  void boot() {
    node_ = std::make_unique<fleet::Node>(
        fleet::NodeOptions{.name = "n1", .zone = "a", .address = "n1", .format = 2}, control_,
        links_, time_, entropy_, background_,
        fleet::Node::Outside{.open = [this](ShardIndex) { return open(); },
                             .copy_store = [](ShardIndex) { return fail("there is no other"); },
                             .not_copied = [](ShardIndex, const Failure&) {},
                             .note_past = [](ShardIndex, bool) { return Status(); },
                             .gave_up = [](ShardIndex, const Failure&) {},
                             .failed = [](const Failure& why) { throw Violation(why.message); }});
    node_->start({&loop_});
  }
  Result<fleet::Replica::Storage> open() {
    if (std::exchange(fails_to_open_, false)) return fail("the disk is full");
    return fleet::Replica::Storage{
        std::make_unique<SharedLogJournal>(world_, kNode, log_, uplink_, FleetRules(),
                                           SharedLogJournal::Site{.format = 2}),
        nullptr};
  }

  void let_pass(Micros time) {
    bool over = false;
    world_.schedule(time, kWorldOwner, [&] { over = true; });
    while (!over) world_.step();
  }
  template <class Record>
  static bool is_a(const ControlRecord& record) {
    return std::holds_alternative<Record>(record);
  }
  static Beat beat_of(const fleet::NodeName& name, std::uint64_t process) {
    return {.node = name, .process = process, .zone = name, .address = name};
  }
  static Assignment assignment_of(const fleet::NodeName& owner, std::uint64_t number) {
    return {.term = Term(1), .shard = kShard, .number = AssignmentNo(number), .owner = owner};
  }

  SharedLog log_;
  World world_{1, false};
  ScriptedControlLog control_;
  bool fails_to_open_ = false;  // Once.
  std::unique_ptr<fleet::Node> node_;

 private:
  Uplink uplink_;
  NoLinks links_;
  WorldClock clock_{world_};
  WorldSteadyClock steady_{world_};
  WorldEntropy entropy_{world_.random().fork()};
  Threads threads_;
  SimLoop loop_{world_, kNode, threads_, 0};
  SimBackground background_{world_, kNode, kMillisecond};
  os::Timekeeper time_{clock_, steady_};
};

// It would take the shard from its owner, and decide as a coordinator that was replaced long ago.
TEST_F(NodeTest, NobodyActsUponHalfOfTheControlLog) {
  control_.add(CoordinatorClaim{Term(1), "n1", 5});
  control_.add(assignment_of("n1", 1));
  control_.half = true;
  boot();
  let_pass(5 * kSecond);
  EXPECT_EQ(node_->replica(kShard), nullptr);
  EXPECT_EQ(log_.epoch(), Epoch());
  EXPECT_TRUE(std::ranges::all_of(control_.said, is_a<Beat>));
  Assignment latest = assignment_of("n2", 2);
  latest.standbys = {"n1"};
  control_.add(latest);
  control_.add(beat_of("n2", 9));
  control_.half = false;
  let_pass(kSecond / 2);
  ASSERT_NE(node_->replica(kShard), nullptr);
  EXPECT_TRUE(node_->replica(kShard)->following());
  EXPECT_EQ(log_.epoch(), Epoch());
}

TEST_F(NodeTest, AClaimToBeTheCoordinatorThatWasLostIsRepeated) {
  control_.loses = is_a<CoordinatorClaim>;
  boot();
  let_pass(4 * kSecond);
  const std::size_t claims = control_.said_of<CoordinatorClaim>().size();
  EXPECT_GE(claims, 3u);
  EXPECT_LE(claims, 4u) << "it has a moment to come back";
  EXPECT_EQ(node_->state().coordinator(), "");
  control_.loses = nullptr;
  let_pass(2 * kSecond);
  EXPECT_EQ(node_->state().coordinator(), "n1");
}

TEST_F(NodeTest, AnAssignmentThatWasLostIsRepeated) {
  control_.loses = is_a<Assignment>;
  boot();
  let_pass(4 * kSecond);
  const auto assignments = control_.said_of<Assignment>();
  ASSERT_GE(assignments.size(), 3u);
  EXPECT_LE(assignments.size(), 4u) << "it has a moment to come back";
  for (const Assignment& one : assignments) EXPECT_EQ(one, assignments.front());
  control_.loses = nullptr;
  let_pass(3 * kSecond);
  ASSERT_NE(node_->replica(kShard), nullptr);
  EXPECT_TRUE(node_->replica(kShard)->serving());
}

// RE3: the process before this one has sent more beats. They do not show that this process has read
// what was decided while it had given its shard up.
TEST_F(NodeTest, ABeatOfTheProcessBeforeIsNotOnesOwn) {
  Beat before = beat_of("n1", 9);
  before.count = 1'000;
  control_.add(before);
  control_.add(CoordinatorClaim{Term(1), "n2", 5});
  control_.add(assignment_of("n1", 1));
  fails_to_open_ = true;
  control_.loses = is_a<Beat>;
  boot();
  let_pass(10 * kSecond);
  ASSERT_NE(node_->replica(kShard), nullptr);
  EXPECT_TRUE(node_->replica(kShard)->following());
  EXPECT_EQ(log_.epoch(), Epoch());
  control_.loses = nullptr;
  let_pass(2 * kSecond);
  EXPECT_TRUE(node_->replica(kShard)->serving());
}

}  // namespace
}  // namespace stanchion::sim
