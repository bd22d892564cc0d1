// How much of the shared memory one account may take.
#include <gtest/gtest.h>

#include <string>

#include "broker/keeper_test_kit.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

// Two accounts: one of them fills memory with many queues that each hold little.
class SharesTest : public KeeperTest {
 protected:
  static constexpr std::size_t kBudget = std::size_t{1} << 20;

  static QueueRef queue_of(const std::string& account, int i = 0) {
    return {account, "us-east-1", "queue-" + std::to_string(i)};
  }

  // Sends until it is refused, or until it holds four times the budget.
  Answer fill(const std::string& account) {
    const int queues = 64;
    for (int i = 0; i < queues; ++i) submit(CreateQueue{queue_of(account, i), {}, {}});
    Answer answer;
    for (int i = 0; i < 420; ++i) {
      answer = send(queue_of(account, i % queues), std::string(10'000, 'x'));
      if (!was_accepted(answer)) break;
    }
    return answer;
  }

  void SetUp() override {
    store->fails_with = 0;
    start(kBudget);
    submit(CreateQueue{queue_of("222222222222"), {}, {}});
    // What was sent stays in memory: the checkpoint that would permit eviction does not end.
    settle();
  }
};

TEST_F(SharesTest, OneAccountDoesNotTakeAllOfMemory) {
  const Answer refused = fill("111111111111");
  EXPECT_FALSE(was_accepted(refused));
  clock.at += limits::kRoomWaitMax;
  shard->tick();
  ASSERT_TRUE(*refused);
  EXPECT_NE((*refused)->error().message.find("account 111111111111 takes more than its share"),
            std::string::npos)
      << (*refused)->error().message;
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(was_accepted(send(queue_of("222222222222"), std::string(10'000, 'x')))) << i;
  EXPECT_LT(shard->engine().message_bytes(), 2 * kBudget);
}

TEST_F(SharesTest, AnAccountAloneMayTakeAllOfIt) {
  submit(DeleteQueue{queue_of("222222222222")});
  submit(DeleteQueue{kOrders});
  submit(DeleteQueue{kBills});
  fill("111111111111");
  EXPECT_GT(shard->engine().message_bytes(), kBudget * 19 / 10);
}

}  // namespace
}  // namespace stanchion::broker
