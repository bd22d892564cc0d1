// No tenant or group may hold up another. Counted in receives, not in time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using std::chrono::seconds;

class Fairness : public testing::Test {
 protected:
  void create(const std::string& name, StringMap attributes) {
    world_.get<QueueUrlResult>(CreateQueue{TestWorld::ref(name), std::move(attributes), {}});
  }

  void send(const std::string& name, const std::string& group, int count) {
    SendMessage request{TestWorld::ref(name), "", {}};
    request.message.body = "x";
    if (!group.empty()) request.message.group_id = group;
    for (int i = 0; i < count; ++i) {
      if (is_fifo_name(name)) request.message.deduplication_id = fmt::format("{}", ++sent_);
      world_.get<SentMessage>(request);
    }
  }

  // Groups of the messages that one receive gets.
  std::vector<std::string> receive(const std::string& name, std::int64_t most = 1) {
    ReceiveMessage request;
    request.queue = TestWorld::ref(name);
    request.max_number_of_messages = most;
    request.visibility_timeout = 43'200;
    std::vector<std::string> groups;
    for (const auto& message : world_.get<ReceiveMessageResult>(request).messages) {
      groups.emplace_back(message.content->group());
      receipts_.push_back(message.receipt_handle);
    }
    return groups;
  }

  // How many single receives it takes until a message of the group comes.
  int receives_until(const std::string& name, const std::string& group) {
    for (int i = 1; i <= 200; ++i) {
      const auto got = receive(name);
      if (!got.empty() && got.front() == group) return i;
    }
    return 1'000;
  }

  const Queue& queue(const std::string& name) {
    return *world_.engine().find(TestWorld::ref(name));
  }

  TestWorld world_;
  std::vector<std::string> receipts_;
  int sent_ = 0;
};

TEST_F(Fairness, QuietTenantIsServedNextWhileAnotherHasAHundredThousandWaiting) {
  create("q", {});
  send("q", "loud", 100'000);
  for (int i = 0; i < 10; ++i) receive("q");
  send("q", "calm", 1);
  EXPECT_LE(receives_until("q", "calm"), 2);
}

TEST_F(Fairness, QuietTenantIsServedNextWhileAnotherHasManyInFlight) {
  create("q", {});
  send("q", "loud", 100'000);
  for (int i = 0; i < 5'000; ++i) receive("q", 10);
  ASSERT_EQ(queue("q").noisy_lane_count(), 1U);
  send("q", "calm", 1);
  EXPECT_EQ(receives_until("q", "calm"), 1);
}

TEST_F(Fairness, QuietTenantIsServedSoonAmongAThousandLoudOnes) {
  create("q", {});
  for (int tenant = 0; tenant < 1'000; ++tenant) send("q", fmt::format("loud{}", tenant), 100);
  for (int i = 0; i < 1'000; ++i) receive("q", 10);
  send("q", "calm", 1);
  // A tenant that has had its turn comes after it: at most the rest of this round comes before.
  int receives = 0;
  bool served = false;
  while (!served && ++receives < 200) {
    const auto got = receive("q", 10);
    served = std::ranges::find(got, "calm") != got.end();
  }
  EXPECT_LE(receives, 101);
}

TEST_F(Fairness, QuietTenantIsServedNextWhileMessagesWithoutAGroupWait) {
  create("q", {});
  send("q", "", 100'000);
  receive("q", 10);
  send("q", "calm", 1);
  EXPECT_LE(receives_until("q", "calm"), 2);
}

TEST_F(Fairness, MessagesWithoutAGroupAreServedWhileATenantIsNoisy) {
  create("q", {});
  send("q", "loud", 10'000);
  for (int i = 0; i < 100; ++i) receive("q", 10);
  send("q", "", 1);
  EXPECT_EQ(receives_until("q", ""), 1);
}

TEST_F(Fairness, AGroupIsReceivedAtOnceWhileAnotherOf200000MessagesIsLocked) {
  create("q.fifo", {{"FifoQueue", "true"}});
  send("q.fifo", "large", 200'000);
  EXPECT_EQ(receive("q.fifo", 10), std::vector<std::string>(10, "large"));
  EXPECT_TRUE(receive("q.fifo").empty()) << "the group is locked";
  send("q.fifo", "small", 1);
  EXPECT_EQ(receive("q.fifo", 10), std::vector<std::string>{"small"});
  EXPECT_TRUE(receive("q.fifo").empty());
}

TEST_F(Fairness, AGroupIsReceivedWhileTenThousandOthersAreLocked) {
  create("q.fifo", {{"FifoQueue", "true"}});
  for (int group = 0; group < 10'000; ++group) send("q.fifo", fmt::format("g{}", group), 3);
  for (int i = 0; i < 10'000; ++i) receive("q.fifo", 3);
  send("q.fifo", "late", 1);
  EXPECT_EQ(receive("q.fifo"), std::vector<std::string>{"late"});
}

TEST_F(Fairness, TenantIsNoisyFromThirtyInFlightAndATenthOfAll) {
  create("q", {});
  send("q", "loud", 100);
  for (int i = 0; i < 29; ++i) receive("q");
  EXPECT_EQ(queue("q").noisy_lane_count(), 0U);
  receive("q");
  EXPECT_EQ(queue("q").noisy_lane_count(), 1U);
}

TEST_F(Fairness, TenantBelowATenthIsQuietHoweverManyItHasInFlight) {
  create("q", {});
  for (int tenant = 0; tenant < 20; ++tenant) send("q", fmt::format("t{}", tenant), 50);
  for (int i = 0; i < 100; ++i) receive("q", 10);
  EXPECT_EQ(queue("q").counts().in_flight, 1'000U);
  EXPECT_EQ(queue("q").noisy_lane_count(), 0U);
}

TEST_F(Fairness, TenantThatKeepsConsumersBusyIsNoisyWithFewInFlight) {
  create("q", {});
  send("q", "slow", 5);
  for (int tenant = 0; tenant < 20; ++tenant) send("q", fmt::format("fast{}", tenant), 5);
  receive("q");
  ASSERT_EQ(receipts_.size(), 1U);
  world_.tick(seconds(60));
  world_.get<NoResult>(DeleteMessage{TestWorld::ref("q"), receipts_.front()});
  EXPECT_EQ(queue("q").noisy_lane_count(), 1U);
  EXPECT_EQ(receives_until("q", "slow"), 101) << "all that quiet tenants have comes first";
}

TEST_F(Fairness, TenantIsQuietAgainWhenItsBacklogIsGone) {
  create("q", {});
  send("q", "loud", 50);
  for (int i = 0; i < 5; ++i) receive("q", 10);
  ASSERT_EQ(queue("q").noisy_lane_count(), 1U);
  for (const auto& receipt : receipts_)
    world_.get<NoResult>(DeleteMessage{TestWorld::ref("q"), receipt});
  EXPECT_EQ(queue("q").noisy_lane_count(), 0U);
  EXPECT_EQ(queue("q").lane_count(), 0U) << "an idle tenant costs nothing";
}

TEST_F(Fairness, EveryTenantGetsItsTurn) {
  create("q", {});
  for (int tenant = 0; tenant < 5; ++tenant) send("q", fmt::format("t{}", tenant), 5 + tenant);
  std::map<std::string, int> served;
  for (int i = 0; i < 25; ++i) ++served[receive("q").front()];
  for (const auto& [tenant, count] : served) EXPECT_EQ(count, 5) << tenant;
}

}  // namespace
}  // namespace stanchion::engine
