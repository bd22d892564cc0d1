#include "service/advice.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stanchion::service {
namespace {

// Each queue gives advice: it is a FIFO queue with a dead-letter queue.
std::vector<broker::ShardFigures> queues(std::size_t count) {
  std::vector<broker::ShardFigures> shards(2);
  for (std::size_t i = 0; i < count; ++i) {
    broker::QueueFigures& queue = shards[i % 2].queues.emplace_back();
    queue.queue = {"000000000000", "us-east-1", fmt::format("q{:06}.fifo", count - i)};
    queue.fifo = true;
    queue.dead_letter_target = "arn:aws:sqs:us-east-1:000000000000:dead.fifo";
  }
  return shards;
}

std::size_t bytes_of(const Advised& advised) {
  std::size_t bytes = 0;
  for (const Advice& one : advised.advice) bytes += one.text.size() + one.command.size();
  return bytes;
}

TEST(AdviceTest, IsGivenAboutTheFirstQueuesAndSaysHowMuchMoreThereIs) {
  constexpr std::size_t kQueues = 20'000;
  const Advised advised = advise(queues(kQueues), {}, "http://localhost:9324");
  EXPECT_LE(bytes_of(advised), kAdviceBytesMax);
  EXPECT_GT(bytes_of(advised), kAdviceBytesMax / 3);
  EXPECT_EQ(advised.advice.size() + advised.left_out, kQueues);
  for (std::size_t i = 0; i < advised.advice.size(); ++i)
    ASSERT_EQ(advised.advice[i].queue.name, fmt::format("q{:06}.fifo", i + 1));
}

TEST(AdviceTest, AHostOfManyBytesDoesNotMakeItLonger) {
  const Advised advised = advise(queues(2'000), {}, "http://" + std::string(8'000, 'h'));
  EXPECT_LE(bytes_of(advised), kAdviceBytesMax);
  EXPECT_FALSE(advised.advice.empty());
  EXPECT_EQ(advised.advice.size() + advised.left_out, 2'000U);
}

TEST(AdviceTest, AFewPiecesAreAllGiven) {
  const Advised advised = advise(queues(3), {}, "http://localhost:9324");
  EXPECT_EQ(advised.advice.size(), 3U);
  EXPECT_EQ(advised.left_out, 0U);
  EXPECT_FALSE(advised.advice[0].command.empty());
}

TEST(AdviceTest, KindsHaveNoTextsAndMoreOfThemFit) {
  const Advised kinds = kinds_of_advice(queues(20'000));
  EXPECT_EQ(bytes_of(kinds), 0U);
  EXPECT_EQ(kinds.advice.size() + kinds.left_out, 20'000U);
  EXPECT_GT(kinds.advice.size(), 2 * advise(queues(20'000), {}, "").advice.size());
  EXPECT_EQ(kinds.advice[0].kind, "FifoDeadLetters");
}

}  // namespace
}  // namespace stanchion::service
