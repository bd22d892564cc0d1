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

// Hands frames over at once, and keeps the guards of those that had one.
class Wire final : public Transport {
 public:
  explicit Wire(NodeName name) : name_(std::move(name)) {}
  bool send(const NodeName& to, Frame frame) override {
    if (cut) return false;
    if (const auto* forward = std::get_if<Forward>(&frame)) guards.push_back(forward->guard);
    if (const auto end = ends.find(to); end != ends.end())
      end->second->take(name_, std::move(frame));
    return true;
  }

  std::map<NodeName, Router*> ends;
  std::vector<std::string> guards;
  bool cut = false;

 private:
  const NodeName name_;
};

// One that takes the request, and one that serves the shard.
class RouterTest : public testing::Test {
 protected:
  struct OneNode {
    OneNode(RouterTest& test, NodeName name, UnpackGuard unpack_guard)
        : wire(std::move(name)),
          router(
              1, wire, test.clock, [](ShardIndex, std::string_view) {}, std::move(unpack_guard)),
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
  Shard shard{{}, std::make_unique<HeldJournal>(), nullptr, {}, clock, entropy};
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

}  // namespace
}  // namespace stanchion::fleet
