// What a queue remembers for five minutes is counted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class Remembering : public testing::Test {
 protected:
  Remembering() {
    EXPECT_TRUE(world_.ask(
        CreateQueue{steps_, {{"FifoQueue", "true"}, {"ContentBasedDeduplication", "true"}}, {}}));
  }

  void send(const std::string& body) {
    SendMessage request{steps_, "", {}};
    request.message.body = body;
    request.message.group_id = body;
    ASSERT_TRUE(world_.ask(request));
  }

  ReceiveMessageResult receive(const std::string& attempt, std::int64_t visibility) {
    ReceiveMessage request;
    request.queue = steps_;
    request.attempt_id = attempt;
    request.visibility_timeout = visibility;
    return world_.get<ReceiveMessageResult>(request);
  }

  std::size_t remembered() { return world_.engine().find(steps_)->remembered_bytes(); }

  TestWorld world_{false, {.spare = 0}};
  const QueueRef steps_ = TestWorld::ref("steps.fifo");
};

TEST_F(Remembering, AttemptsThatCannotBeRepeatedAreForgotten) {
  send("one");
  for (int i = 0; i < 1'000; ++i)
    ASSERT_EQ(receive(fmt::format("attempt-{}", i), 0).messages.size(), 1U);
  EXPECT_LT(remembered(), 5'000U) << "each of them made the one before worthless";
  EXPECT_TRUE(world_.restart());
}

TEST_F(Remembering, AttemptsThatCanBeRepeatedAreKept) {
  constexpr int kAttempts = 200;
  std::vector<std::string> handles;
  for (int i = 0; i < kAttempts; ++i) {
    send(fmt::format("body-{}", i));
    handles.push_back(receive(fmt::format("attempt-{}", i), 300).messages.at(0).receipt_handle);
  }
  EXPECT_GT(remembered(), kAttempts * (70 + 200U));
  EXPECT_GE(world_.engine().structure_bytes(), remembered()) << "they are counted";
  for (int i = 0; i < kAttempts; ++i) {
    const auto again = receive(fmt::format("attempt-{}", i), 300);
    ASSERT_EQ(again.messages.size(), 1U);
    EXPECT_EQ(again.messages[0].receipt_handle, handles[static_cast<std::size_t>(i)]);
  }
  EXPECT_TRUE(world_.restart());
}

TEST_F(Remembering, DeduplicationIdsCountForFiveMinutes) {
  for (int i = 0; i < 1'000; ++i) send(fmt::format("body-{}", i));
  const std::size_t before = world_.engine().structure_bytes();
  EXPECT_GE(remembered(), 70'000U);
  world_.tick(6min);
  EXPECT_EQ(remembered(), 0U);
  EXPECT_LE(world_.engine().structure_bytes(), before - 70'000);
}

TEST_F(Remembering, APurgeForgetsAll) {
  send("one");
  receive("attempt", 30);
  EXPECT_GT(remembered(), 0U);
  ASSERT_TRUE(world_.ask(PurgeQueue{steps_}));
  EXPECT_EQ(remembered(), 0U);
  EXPECT_EQ(world_.engine().structure_bytes(), 0U);
}

}  // namespace
}  // namespace stanchion::engine
