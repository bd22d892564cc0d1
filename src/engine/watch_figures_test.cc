// The figures that CloudWatch shows besides the counts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class WatchFiguresTest : public testing::Test {
 protected:
  void create(const std::string& name, StringMap attributes = {}) {
    ASSERT_TRUE(world.ask(CreateQueue{TestWorld::ref(name), std::move(attributes), {}}));
  }

  void send(const std::string& name, int count = 1, const std::string& group = "",
            const std::string& body = "x") {
    SendMessage request{TestWorld::ref(name), "me", {}};
    request.message.body = body;
    if (!group.empty()) request.message.group_id = group;
    for (int i = 0; i < count; ++i) {
      if (is_fifo_name(name)) request.message.deduplication_id = fmt::format("{}", ++sent);
      ASSERT_TRUE(world.ask(request));
    }
  }

  std::vector<std::string> receive(const std::string& name, int timeout, int most = 1) {
    ReceiveMessage request;
    request.queue = TestWorld::ref(name);
    request.max_number_of_messages = most;
    request.visibility_timeout = timeout;
    std::vector<std::string> receipts;
    for (const auto& message : world.get<ReceiveMessageResult>(request).messages)
      receipts.push_back(message.receipt_handle);
    return receipts;
  }

  const Queue& queue(const std::string& name) { return *world.engine().find(TestWorld::ref(name)); }
  WatchFigures figures(const std::string& name) { return queue(name).watch_figures(); }

  TestWorld world;
  int sent = 0;
};

TEST_F(WatchFiguresTest, AMessageReceivedMoreThanThreeTimesIsNotTheOldest) {
  create("q");
  EXPECT_EQ(figures("q").oldest, std::nullopt);
  send("q");
  const Instant first = world.now();
  world.tick(10s);
  send("q");
  const Instant second = world.now();
  for (int i = 0; i < 3; ++i) receive("q", 0);
  EXPECT_EQ(figures("q").oldest, first);
  receive("q", 0);
  EXPECT_EQ(figures("q").oldest, second);
  EXPECT_EQ(queue("q").oldest_entered(), first) << "Prometheus is told of all";
}

TEST_F(WatchFiguresTest, ADeadLetterCountsFromItsArrival) {
  create("dead");
  create("q",
         {{"RedrivePolicy", fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":5}})",
                                        TestWorld::ref("dead").arn())}});
  send("q");
  for (int i = 0; i < 5; ++i) receive("q", 0);
  world.tick(10s);
  receive("q", 0);
  world.tick(5s);
  EXPECT_EQ(figures("q").oldest, std::nullopt);
  EXPECT_EQ(figures("dead").oldest, world.now() - 5s);
}

TEST_F(WatchFiguresTest, OnFifoQueuesEveryMessageCountsAndSoDoBusyGroups) {
  create("q.fifo", {{"FifoQueue", "true"}});
  send("q.fifo", 2, "a");
  send("q.fifo", 1, "b");
  const Instant first = world.now();
  EXPECT_EQ(figures("q.fifo").busy_groups, 0U);
  for (int i = 0; i < 5; ++i) receive("q.fifo", 0, 10);
  EXPECT_EQ(figures("q.fifo").oldest, first);
  receive("q.fifo", 30, 10);
  EXPECT_EQ(figures("q.fifo").busy_groups, 2U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(figures("q.fifo").busy_groups, 2U);
  world.tick(31s);
  EXPECT_EQ(figures("q.fifo").busy_groups, 0U);
  world.engine().check_invariants();
}

TEST_F(WatchFiguresTest, QuietGroupsAreAllButTheNoisyOnes) {
  create("q");
  send("q", 50, "loud");
  world.tick(10s);
  send("q", 2, "calm");
  const Instant calm = world.now();
  for (int i = 0; i < 5; ++i) receive("q", 600, 10);
  ASSERT_EQ(queue("q").noisy_lane_count(), 1U);
  const WatchFigures seen = figures("q");
  EXPECT_EQ(seen.quiet.visible + seen.quiet.in_flight, 2U);
  EXPECT_EQ(seen.oldest_quiet, calm);
  EXPECT_LT(seen.oldest, calm);
}

TEST_F(WatchFiguresTest, SizesAreKnownByMinuteAlsoAfterAReplay) {
  create("q");
  send("q", 2, "", "12345");
  const Minute minute = minute_of(world.now());
  EXPECT_EQ(queue("q").sent_sizes.between(minute, minute).count(), 2U);
  EXPECT_EQ(queue("q").sent_sizes.between(minute, minute).max(), 5U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(queue("q").sent_sizes.between(minute, minute).count(), 2U);
}

TEST_F(WatchFiguresTest, ADeletedQueueLeavesItsTotalsForAWhile) {
  create("q");
  send("q", 3);
  ASSERT_TRUE(world.ask(DeleteQueue{TestWorld::ref("q")}));
  ASSERT_EQ(world.engine().last_words().all().size(), 1U);
  EXPECT_EQ(world.engine().last_words().all().front().activity.sent, 3U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(world.engine().last_words().all().size(), 1U) << "a replay finds them too";
  world.tick(limits::kLastWordsKept);
  create("r");
  ASSERT_TRUE(world.ask(DeleteQueue{TestWorld::ref("r")}));
  EXPECT_EQ(world.engine().last_words().all().size(), 1U);
  EXPECT_EQ(world.engine().last_words().all().front().queue.name, "r");
}

}  // namespace
}  // namespace stanchion::engine
