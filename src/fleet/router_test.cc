#include "fleet/router.h"

#include <gtest/gtest.h>

#include "broker/shard_test_kit.h"
#include "fleet/limits.h"

namespace stanchion::fleet {
namespace {

using namespace stanchion::broker;

const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
constexpr ShardIndex kShard(0);

// A guard whose bytes are its verdict.
class Said final : public RequestGuard {
 public:
  explicit Said(std::string verdict) : verdict_(std::move(verdict)) {}
  std::optional<Error> check(const GuardedQueue*) override {
    if (verdict_ == "yes") return std::nullopt;
    return Error{ErrorCode::kAccessDenied, verdict_};
  }
  std::string pack() const override { return verdict_; }

 private:
  const std::string verdict_;
};

Guard unpack(std::string_view packed) {
  return std::make_unique<Said>(std::string(packed));
}

// Hands frames over at once, and keeps what a test asks about them.
class Wire final : public Transport {
 public:
  explicit Wire(NodeName name) : name_(std::move(name)) {}
  bool send(const NodeName& to, Frame frame) override {
    if (cut) return false;
    if (const auto* forward = std::get_if<Forward>(&frame)) {
      guards.push_back(forward->guard);
      ids.push_back(forward->id);
    }
    if (std::holds_alternative<Answered>(frame)) ++answers;
    if (const auto end = ends.find(to); end != ends.end())
      end->second->take(name_, std::move(frame));
    return true;
  }

  std::map<NodeName, Router*> ends;
  std::vector<std::string> guards;
  std::vector<std::uint64_t> ids;
  int answers = 0;
  bool cut = false;

 private:
  const NodeName name_;
};

// One that takes the request, and one that serves the shard.
class RouterTest : public testing::Test {
 protected:
  struct OneNode {
    OneNode(RouterTest& test, NodeName name, UnpackGuard unpack_guard, std::uint64_t process = 1)
        : wire(std::move(name)),
          router(
              1, wire, test.clock, [](ShardIndex, std::string_view) {}, std::move(unpack_guard),
              process),
          broker(Broker::of_a_node(1, router)) {
      router.start(*broker);
      broker->start(
          {&test.loop}, test.background, [] {}, [](const Failure&) { FAIL(); });
    }
    Wire wire;
    Router router;
    std::unique_ptr<Broker> broker;
  };

  void connect(UnpackGuard unpack_guard) {
    front = std::make_unique<OneNode>(*this, "front", unpack);
    owner = std::make_unique<OneNode>(*this, "owner", std::move(unpack_guard));
    front->wire.ends["owner"] = &owner->router;
    owner->wire.ends["front"] = &front->router;
    ASSERT_TRUE(shard.recover());
    shard.start(loop, background, owner->broker->peers());
    owner->broker->serve(kShard, &shard);
    owner->router.serve_here(kShard);
    loop.run();
    front->router.set_owner(kShard, "owner");
  }

  // The node is started again, and the owner notices.
  void start_front_again(std::uint64_t process) {
    front = std::make_unique<OneNode>(*this, "front", unpack, process);
    front->wire.ends["owner"] = &owner->router;
    owner->wire.ends["front"] = &front->router;
    owner->router.connection_broke("front");
    front->router.set_owner(kShard, "owner");
    loop.run();
  }

  Reply ask(Request request, Guard guard) {
    std::optional<Reply> reply;
    front->broker->submit(
        loop, std::move(request), [&](Reply answer) { reply = std::move(answer); },
        std::move(guard));
    loop.run();
    EXPECT_TRUE(reply);
    return reply.value_or(NoResult());
  }

  NumberClock clock;
  CountingEntropy entropy;
  ManualLoop loop;
  ManualBackground background;
  HeldJournal* const journal = new HeldJournal;
  Shard shard{{}, std::unique_ptr<HeldJournal>(journal), nullptr, {}, clock, entropy};
  std::unique_ptr<OneNode> front, owner;
};

TEST_F(RouterTest, TheGuardOfAForwardedRequestIsAskedByTheNodeThatExecutesIt) {
  connect(unpack);
  EXPECT_TRUE(ask(CreateQueue{kOrders, {}, {}}, nullptr));
  EXPECT_TRUE(ask(GetQueueUrl{kOrders}, std::make_unique<Said>("yes")));
  const Reply refused = ask(DeleteQueue{kOrders}, std::make_unique<Said>("not you"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{ErrorCode::kAccessDenied, "not you"}));
  EXPECT_TRUE(ask(GetQueueUrl{kOrders}, nullptr)) << "it was not deleted";
}

TEST_F(RouterTest, ANodeThatUnderstandsNoGuardsRefusesWhatHasOne) {
  connect(nullptr);
  EXPECT_TRUE(ask(CreateQueue{kOrders, {}, {}}, nullptr));
  const Reply refused = ask(DeleteQueue{kOrders}, std::make_unique<Said>("yes"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kServiceUnavailable);
}

// The shard came here and went on before the request was executed.
TEST_F(RouterTest, ARequestThatIsHeldAgainKeepsItsGuard) {
  connect(unpack);
  EXPECT_TRUE(ask(CreateQueue{kOrders, {}, {}}, nullptr));
  for (int round = 0; round < 2; ++round) {
    front->router.set_owner(kShard, "");
    std::optional<Reply> reply;
    front->broker->submit(
        loop, DeleteQueue{kOrders}, [&](Reply answer) { reply = std::move(answer); },
        std::make_unique<Said>("not you"));
    for (int stays = 0; stays <= round; ++stays) {
      front->router.serve_here(kShard);
      loop.run();
      EXPECT_FALSE(reply);
      front->router.set_owner(kShard, "");
    }
    front->router.set_owner(kShard, "owner");
    loop.run();
    EXPECT_EQ(front->wire.guards.back(), "not you");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->error().code, ErrorCode::kAccessDenied);
  }
}

// What was decided when the connection broke becomes durable when the node is connected again, and
// its new process is not told. World 60623966122256: it took the answer for one to its own request.
TEST_F(RouterTest, AProcessThatHasEndedIsNotAnswered) {
  connect(unpack);
  journal->held = true;
  front->broker->submit(
      loop, CreateQueue{kOrders, {}, {}}, [](Reply) { FAIL() << "nobody waits any more"; },
      nullptr);
  loop.run();
  start_front_again(0xFACE);
  std::optional<Reply> reply;
  front->broker->submit(
      loop, GetQueueUrl{{kOrders.account, kOrders.region, "another"}},
      [&](Reply answer) { reply = std::move(answer); }, nullptr);
  loop.run();
  journal->release();
  loop.run();
  EXPECT_EQ(owner->wire.answers, 1);
  ASSERT_TRUE(reply);
  EXPECT_FALSE(*reply) << "there is no such queue";
}

TEST_F(RouterTest, AProcessDoesNotTakeTheAnswersToTheOneBefore) {
  connect(unpack);
  EXPECT_TRUE(ask(CreateQueue{kOrders, {}, {}}, nullptr));
  const std::uint64_t before = front->wire.ids.back();
  start_front_again(0xFACE);
  journal->held = true;
  std::optional<Reply> reply;
  front->broker->submit(
      loop, DeleteQueue{kOrders}, [&](Reply answer) { reply = std::move(answer); }, nullptr);
  loop.run();
  ASSERT_EQ(front->wire.ids.size(), 1u);
  front->router.take("owner", Answered{before, kShard, QueueUrlResult{kOrders}});
  loop.run();
  EXPECT_FALSE(reply);
  journal->release();
  loop.run();
  ASSERT_TRUE(reply && *reply);
  EXPECT_TRUE(std::holds_alternative<NoResult>(**reply));
}

TEST_F(RouterTest, ARequestForANodeThatIsNotConnectedWaitsUntilItIs) {
  connect(unpack);
  front->wire.cut = true;
  std::optional<Reply> reply;
  front->broker->submit(
      loop, CreateQueue{kOrders, {}, {}}, [&](Reply answer) { reply = std::move(answer); },
      nullptr);
  loop.run();
  loop.ring();
  EXPECT_FALSE(reply);
  front->wire.cut = false;
  loop.ring();
  ASSERT_TRUE(reply);
  EXPECT_TRUE(*reply);
}

TEST_F(RouterTest, ARequestForANodeThatStaysAwayIsRefusedAfterAWhile) {
  connect(unpack);
  front->wire.cut = true;
  std::optional<Reply> reply;
  front->broker->submit(
      loop, CreateQueue{kOrders, {}, {}}, [&](Reply answer) { reply = std::move(answer); },
      nullptr);
  loop.run();
  clock.at += kHeldFor + 1s;
  loop.ring();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error().code, ErrorCode::kServiceUnavailable);
}

// One that was replaced while it is paused answers nothing, and its connections stay.
TEST_F(RouterTest, AnOwnerThatWasReplacedHasOnlySoMuchTimeToAnswer) {
  journal->owned = journal::Epoch(1);  // So that what only reads waits for the log, too.
  connect(unpack);
  journal->held = true;
  std::optional<Reply> wrote, looked;
  front->broker->submit(
      loop, CreateQueue{kOrders, {}, {}}, [&](Reply answer) { wrote = std::move(answer); },
      nullptr);
  front->broker->submit(
      loop, GetQueueUrl{kOrders}, [&](Reply answer) { looked = std::move(answer); }, nullptr);
  loop.run();
  ASSERT_EQ(front->wire.ids.size(), 2u);
  front->router.set_owner(kShard, "next");
  for (Duration passed{0}; passed < kLastWords; passed += kTryAgain) {
    EXPECT_FALSE(wrote) << passed.count();
    EXPECT_EQ(front->wire.ids.size(), 2u) << "it may still be answered";
    clock.at += kTryAgain;
    loop.ring_all();
  }
  ASSERT_TRUE(wrote);
  EXPECT_EQ(wrote->error().code, ErrorCode::kInternalFailure) << "nobody knows (RO1)";
  EXPECT_FALSE(looked);
  loop.ring_all();
  EXPECT_EQ(front->wire.ids.size(), 3u) << "the next owner is asked";
}

// An owner that is alive and does not serve the shard, as when it copies a store, sends it back.
TEST_F(RouterTest, AReceiveThatComesBackAgainAndAgainIsRefusedAfterAWhile) {
  connect(unpack);
  EXPECT_TRUE(ask(CreateQueue{kOrders, {}, {}}, nullptr));
  owner->broker->serve(kShard, nullptr);
  ReceiveMessage receive;
  receive.queue = kOrders;
  receive.wait_time_seconds = 20;
  std::optional<Reply> reply;
  front->broker->submit(
      loop, receive, [&](Reply answer) { reply = std::move(answer); }, nullptr);
  loop.run();
  for (Duration passed{0}; passed < kHeldFor; passed += kTryAgain) {
    EXPECT_FALSE(reply) << passed.count();
    clock.at += kTryAgain;
    loop.ring();
  }
  clock.at += kTryAgain;
  loop.ring();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->error().code, ErrorCode::kServiceUnavailable);
}

}  // namespace
}  // namespace stanchion::fleet
