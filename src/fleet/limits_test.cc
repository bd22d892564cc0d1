#include "fleet/limits.h"

#include <gtest/gtest.h>

namespace stanchion::fleet {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(FleetLimits, WhatWaitsForKafkaTakesNoMoreThanTheShardsPartOfMemory) {
  for (const std::size_t memory : {64 * kMiB, 384 * kMiB, 8192 * kMiB})
    for (const std::size_t shards : {1, 3, 12, 64, 256}) {
      const std::size_t part = memory / shards;
      EXPECT_LE(waiting_bytes(part), std::max(part, 2 * limits::kRecordSizeMax));
      EXPECT_LE(read_ahead_bytes(part), std::max(part / 4, 8 * kMiB));
    }
}

TEST(FleetLimits, ANodeWithMuchMemoryHasTheBoundsOfBefore) {
  EXPECT_EQ(waiting_bytes(384 * kMiB / 12), 32 * kMiB);
  EXPECT_EQ(waiting_bytes(64 * 1024 * kMiB), 32 * kMiB);
  EXPECT_EQ(read_ahead_bytes(64 * 1024 * kMiB), 64 * kMiB);
}

}  // namespace
}  // namespace stanchion::fleet
