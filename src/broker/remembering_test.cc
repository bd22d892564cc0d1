// What FIFO queues remember for five minutes, when it fills memory.
#include <gtest/gtest.h>

#include <string>

#include "broker/keeper_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class RememberingTest : public KeeperTest {
 protected:
  void SetUp() override {
    engine_options.memory.spare = 0;
    start(20'000);
    submit(CreateQueue{kSteps, {{"FifoQueue", "true"}}, {}});
  }

  Answer send_step(int number) {
    SendMessage request{kSteps, "me", {}};
    request.message.body = "hello";
    request.message.group_id = "group";
    request.message.deduplication_id = std::to_string(number);
    return submit(request);
  }

  Answer attempt(int number) {
    ReceiveMessage request;
    request.queue = kSteps;
    request.visibility_timeout = 600;
    request.attempt_id = std::to_string(number);
    return submit(request);
  }

  static ErrorCode code_of(const Answer& answer) { return (*answer)->error().code; }
};

TEST_F(RememberingTest, DeduplicationIdsThatFillMemoryThrottleTheirQueue) {
  int accepted = 0;
  Answer last;
  while (accepted < 2'000 && was_accepted(last = send_step(accepted))) {
    ++accepted;
    settle();
    const Answer received = receive(kSteps);
    settle();
    const auto& messages = std::get<ReceiveMessageResult>(***received).messages;
    ASSERT_EQ(messages.size(), 1U);
    submit(DeleteMessage{kSteps, messages[0].receipt_handle});
    settle();
  }
  EXPECT_GT(accepted, 250);
  EXPECT_LT(accepted, 450) << "each takes 70 bytes, and they may take five quarters of the budget";
  EXPECT_EQ(code_of(last), ErrorCode::kRequestThrottled);
  EXPECT_NE((*last)->error().message.find("--memory"), std::string::npos);
  EXPECT_TRUE(was_accepted(send(kOrders, "small"))) << "it is not what fills memory";
  clock.at += 5min;
  shard->tick();
  EXPECT_TRUE(was_accepted(send_step(accepted)));
}

TEST_F(RememberingTest, AReceiveUnderAnAttemptIsThrottledWhenMemoryIsFull) {
  int attempts = 0;
  Answer last;
  for (;; ++attempts) {
    SendMessage request{kSteps, "me", {}};
    request.message.body = "hello";
    request.message.group_id = request.message.deduplication_id = std::to_string(attempts);
    if (!was_accepted(submit(request))) break;
    settle();
    last = attempt(attempts);
    settle();
    if (!was_accepted(last)) break;
  }
  EXPECT_GT(attempts, 20);
  EXPECT_LT(attempts, 200);
  const Answer refused = attempt(1'000);
  ASSERT_TRUE(*refused);
  EXPECT_EQ(code_of(refused), ErrorCode::kRequestThrottled);
  const Answer again = attempt(3);
  settle();
  EXPECT_EQ(body_of(again), "hello") << "what is remembered can be repeated";
}

}  // namespace
}  // namespace stanchion::broker
