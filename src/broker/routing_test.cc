#include "broker/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace stanchion::broker {
namespace {

QueueRef queue(std::string name, std::string account = "000000000000",
               std::string region = "us-east-1") {
  return {std::move(account), std::move(region), std::move(name)};
}

// Data directories are divided by this function. If this test fails, the new release cannot find
// the queues of existing directories: change the function back, not the numbers.
TEST(Routing, AQueueStaysWhereEarlierReleasesPutIt) {
  const std::vector<QueueRef> queues = {queue("orders"),
                                        queue("orders.fifo"),
                                        queue("a"),
                                        queue("orders", "123456789012"),
                                        queue("orders", "000000000000", "eu-central-1"),
                                        queue(std::string(80, 'x'))};
  struct Expected {
    std::uint32_t shards;
    std::vector<std::uint32_t> homes;
  };
  for (const Expected& expected : std::vector<Expected>{
           {1, {0, 0, 0, 0, 0, 0}},
           {2, {1, 0, 1, 0, 1, 1}},
           {3, {0, 2, 0, 1, 0, 1}},
           {16, {1, 6, 1, 12, 15, 1}},
           {256, {209, 214, 17, 124, 31, 113}},
       }) {
    for (std::size_t i = 0; i < queues.size(); ++i)
      EXPECT_EQ(shard_of(queues[i], expected.shards).value(), expected.homes[i])
          << queues[i].arn() << " of " << expected.shards;
  }
}

TEST(Routing, QueuesSpreadEvenlyOverTheShards) {
  constexpr std::uint32_t kQueues = 10'000;
  for (const std::uint32_t shards : {2u, 3u, 7u, 16u, 64u}) {
    std::vector<std::uint32_t> counts(shards);
    for (std::uint32_t i = 0; i < kQueues; ++i)
      ++counts.at(shard_of(queue("queue-" + std::to_string(i)), shards).value());
    // Five standard deviations of a fair draw.
    const double fair = static_cast<double>(kQueues) / shards;
    for (const std::uint32_t count : counts)
      EXPECT_NEAR(static_cast<double>(count), fair, 5 * std::sqrt(fair)) << shards;
  }
}

TEST(Routing, AccountAndRegionAreParts) {
  constexpr std::uint32_t kMany = 256;
  EXPECT_NE(shard_of(queue("orders"), kMany), shard_of(queue("orders", "123456789012"), kMany));
  EXPECT_NE(shard_of(queue("orders"), kMany),
            shard_of(queue("orders", "000000000000", "eu-central-1"), kMany));
}

}  // namespace
}  // namespace stanchion::broker
