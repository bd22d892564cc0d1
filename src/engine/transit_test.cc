// What is under way to other queues is bounded in bytes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;
using Road = TestWorld::Road;

constexpr std::size_t kMost = 40'000;

// Queues q and dlq, where q becomes dead letters after one receive; and none arrives until the road
// is open.
class Transit : public testing::Test {
 protected:
  Transit() {
    create("dlq");
    create("q", dead_letters_to("dlq"));
    world_.set_road(Road::kClosed);
  }

  static StringMap dead_letters_to(const std::string& name) {
    return {{"RedrivePolicy", fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})",
                                          TestWorld::ref(name).arn())}};
  }

  void create(const std::string& name, StringMap attributes = {}) {
    ASSERT_TRUE(world_.ask(CreateQueue{TestWorld::ref(name), std::move(attributes), {}}));
  }

  void send(const QueueRef& queue, int count) {
    SendMessage request{queue, "", {}};
    request.message.body = std::string(1'000, 'x');
    for (int i = 0; i < count; ++i) ASSERT_TRUE(world_.ask(request));
  }

  ReceiveMessageResult receive(const QueueRef& queue) {
    ReceiveMessage request;
    request.queue = queue;
    request.max_number_of_messages = 10;
    return world_.get<ReceiveMessageResult>(request);
  }

  // Received once, so that the next receive finds dead letters.
  void send_poison(const QueueRef& queue, int count) {
    send(queue, count);
    for (int received = 0; received < count;) {
      const auto result = receive(queue);
      ASSERT_FALSE(result.messages.empty());
      received += static_cast<int>(result.messages.size());
    }
    world_.tick(31s);
  }

  std::size_t visible(const std::string& name) {
    return world_.engine().find(TestWorld::ref(name))->counts().visible;
  }
  std::size_t under_way() { return world_.engine().transfers_from(TransferNo(1)).size(); }

  TestWorld world_{false, {.in_transit = kMost}};
  const QueueRef q_ = TestWorld::ref("q");
};

TEST_F(Transit, AMoveTaskHasOnlySoManyBytesUnderWay) {
  send(TestWorld::ref("dlq"), 100);
  ASSERT_TRUE(world_.ask(StartMessageMoveTask{TestWorld::ref("dlq").arn(), q_.arn(), {}}));
  EXPECT_GT(under_way(), 5U);
  EXPECT_LT(world_.engine().bytes_under_way(), kMost / 2 + 2'000) << "the half of one account";
  EXPECT_GE(world_.engine().message_bytes(), 100 * 1'000U) << "they count while they are under way";
  world_.engine().check_invariants();
  ASSERT_TRUE(world_.restart());
  world_.set_road(Road::kOpen);
  EXPECT_EQ(visible("q"), 100U);
  EXPECT_EQ(visible("dlq"), 0U);
  EXPECT_EQ(world_.engine().bytes_under_way(), 0U);
  EXPECT_EQ(world_.engine().find(TestWorld::ref("dlq"))->tasks.back().status,
            MoveTaskStatus::kCompleted);
}

TEST_F(Transit, DeadLettersWaitUntilOthersHaveArrived) {
  send_poison(q_, 100);
  world_.engine().watch(q_, true);
  const auto held_back = receive(q_);
  EXPECT_TRUE(held_back.messages.empty());
  EXPECT_GE(held_back.wait, Duration(1s)) << "until there is room";
  const std::size_t first = under_way();
  EXPECT_LT(world_.engine().bytes_under_way(), kMost / 2 + 2'000);
  EXPECT_EQ(visible("q"), 100 - first);
  EXPECT_TRUE(receive(q_).messages.empty());
  EXPECT_EQ(under_way(), first) << "no more of them leave";
  world_.engine().take_awakened();
  world_.set_road(Road::kOpen);
  EXPECT_EQ(world_.engine().take_awakened(), std::vector{q_}) << "whoever waits goes on";
  for (int i = 0; i < 20; ++i) receive(q_);
  EXPECT_EQ(visible("dlq"), 100U);
  world_.engine().check_invariants();
}

TEST_F(Transit, ThoseThatWaitForRoomAreWokenAFewAtATime) {
  std::set<QueueRef> waiting;
  for (int i = 0; i < 20; ++i) {
    const std::string name = fmt::format("q-{}", i);
    create(name, dead_letters_to("dlq"));
    send_poison(TestWorld::ref(name), 1);
    waiting.insert(TestWorld::ref(name));
    world_.engine().watch(TestWorld::ref(name), true);
  }
  send_poison(q_, 100);
  receive(q_);
  for (const QueueRef& queue : waiting) EXPECT_TRUE(receive(queue).messages.empty());
  world_.engine().take_awakened();
  world_.set_road(Road::kOpen);
  while (!waiting.empty()) {
    const auto woken = world_.engine().take_awakened();
    EXPECT_LE(woken.size(), 8U);
    ASSERT_FALSE(woken.empty());
    for (const QueueRef& queue : woken) EXPECT_EQ(waiting.erase(queue), 1U);
  }
  EXPECT_TRUE(world_.engine().take_awakened().empty());
}

TEST_F(Transit, WhatStandsBehindDeadLettersThatMayNotLeaveIsReceived) {
  send_poison(q_, 100);
  send(q_, 3);
  ASSERT_GT(visible("q"), 100U);
  for (int i = 0; i < 3; ++i) {
    ReceiveMessage request;
    request.queue = q_;
    const auto found = world_.get<ReceiveMessageResult>(request);
    ASSERT_EQ(found.messages.size(), 1U) << i;
    EXPECT_EQ(found.messages[0].receive_count, 1U);
    world_.engine().check_invariants();
  }
  EXPECT_TRUE(receive(q_).messages.empty());
  ASSERT_TRUE(world_.restart());
  world_.set_road(Road::kOpen);
  for (int i = 0; i < 20; ++i) receive(q_);
  EXPECT_EQ(visible("dlq"), 100U);
}

TEST_F(Transit, OnlyTheGroupOfADeadLetterThatMayNotLeaveIsHeldBack) {
  const QueueRef steps = TestWorld::ref("steps.fifo");
  create("dead.fifo", {{"FifoQueue", "true"}});
  StringMap attributes = dead_letters_to("dead.fifo");
  attributes["FifoQueue"] = "true";
  create(steps.name, attributes);
  const auto send_step = [&](int group, const char* id) {
    SendMessage request{steps, "", {}};
    request.message.body = std::string(1'000, 'x');
    request.message.group_id = fmt::format("group-{}", group);
    request.message.deduplication_id = fmt::format("{}-{}", id, group);
    ASSERT_TRUE(world_.ask(request));
  };
  for (int group = 0; group < 50; ++group) send_step(group, "poison");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(receive(steps).messages.size(), 10U);
  world_.tick(31s);
  for (int group = 48; group < 53; ++group) send_step(group, "sound");
  const auto found = receive(steps);
  ASSERT_EQ(found.messages.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(found.messages[i].content->group(), fmt::format("group-{}", 50 + i));
  EXPECT_TRUE(receive(steps).messages.empty());
  world_.engine().check_invariants();
  ASSERT_TRUE(world_.restart());
}

TEST_F(Transit, OneAccountDoesNotTakeTheRoomOfAnother) {
  const QueueRef other{"111111111111", "us-east-1", "q"};
  const QueueRef dead{"111111111111", "us-east-1", "dlq"};
  ASSERT_TRUE(world_.ask(CreateQueue{dead, {}, {}}));
  ASSERT_TRUE(world_.ask(CreateQueue{
      other,
      {{"RedrivePolicy",
        fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})", dead.arn())}},
      {}}));
  send_poison(q_, 100);
  send_poison(other, 3);
  receive(q_);
  const std::size_t before = under_way();
  receive(q_);
  EXPECT_EQ(under_way(), before);
  receive(other);
  EXPECT_EQ(under_way(), before + 3);
}

// The account whose message waits longest has the first half of the numbers.
TEST(TransferNumbers, AreLeftForOtherAccounts) {
  TestWorld world{false, {.transfer_numbers = 8}};
  const auto queue_of = [&](const std::string& account) {
    const QueueRef dead{account, "us-east-1", "dlq"};
    const QueueRef queue{account, "us-east-1", "q"};
    EXPECT_TRUE(world.ask(CreateQueue{dead, {}, {}}));
    EXPECT_TRUE(world.ask(CreateQueue{
        queue,
        {{"VisibilityTimeout", "0"},
         {"RedrivePolicy",
          fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})", dead.arn())}},
        {}}));
    return queue;
  };
  // Sends one and lets it become a dead letter.
  const auto leave = [&](const QueueRef& queue) {
    SendMessage request{queue, "", {}};
    request.message.body = "x";
    EXPECT_TRUE(world.ask(request));
    ReceiveMessage receive;
    receive.queue = queue;
    receive.max_number_of_messages = 10;
    world.ask(receive);
    world.ask(receive);
  };
  const auto under_way = [&] { return world.engine().transfers_from(TransferNo(1)).size(); };
  const QueueRef stuck = queue_of("000000000000");
  const QueueRef other = queue_of("111111111111");
  world.set_road(Road::kClosed);
  for (int i = 0; i < 6; ++i) leave(stuck);
  EXPECT_EQ(under_way(), 4U);
  for (int i = 0; i < 6; ++i) leave(other);
  EXPECT_EQ(under_way(), 8U) << "but no more of all together";
  world.engine().check_invariants();
}

TEST_F(Transit, AMessageLargerThanAllThatMayBeUnderWayLeavesByItself) {
  SendMessage request{q_, "", {}};
  request.message.body = std::string(2 * kMost, 'x');
  ASSERT_TRUE(world_.ask(request));
  ASSERT_TRUE(world_.ask(request));
  EXPECT_EQ(receive(q_).messages.size(), 2U);
  world_.tick(31s);
  receive(q_);
  receive(q_);
  EXPECT_EQ(under_way(), 1U);
  world_.set_road(Road::kOpen);
  receive(q_);
  EXPECT_EQ(visible("dlq"), 2U);
}

TEST_F(Transit, AChosenDeadLetterStaysWhileThereIsNoRoom) {
  send_poison(q_, 100);
  receive(q_);
  const std::size_t before = under_way();
  StanchionPeek look;
  look.queue = q_;
  const auto shown = world_.get<StanchionPeekResult>(look);
  ReceiveMessage choice;
  choice.queue = q_;
  choice.positions = {shown.messages.front().position};
  EXPECT_TRUE(world_.get<ReceiveMessageResult>(choice).messages.empty());
  EXPECT_EQ(under_way(), before);
}

}  // namespace
}  // namespace stanchion::engine
