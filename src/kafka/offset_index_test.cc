#include "kafka/offset_index.h"

#include <gtest/gtest.h>

namespace stanchion::kafka {
namespace {

using journal::LogOffset;

TEST(OffsetIndex, FindsTheLastEntryThatBeginsAtOrBeforeAPosition) {
  OffsetIndex index;
  EXPECT_EQ(index.at_or_before(Position(1)), std::nullopt);
  index.note(Position(5), LogOffset(20));
  index.note(Position(9), LogOffset(22));
  EXPECT_EQ(index.at_or_before(Position(4)), std::nullopt);
  EXPECT_EQ(index.at_or_before(Position(5)), LogOffset(20));
  EXPECT_EQ(index.at_or_before(Position(8)), LogOffset(20));
  EXPECT_EQ(index.at_or_before(Position(9)), LogOffset(22));
  EXPECT_EQ(index.at_or_before(Position(1000)), LogOffset(22));
}

TEST(OffsetIndex, StaysSmallAndNeverPointsTooFar) {
  OffsetIndex index;
  constexpr std::uint64_t kEntries = 100'000;
  for (std::uint64_t i = 0; i < kEntries; ++i) index.note(Position(1 + 3 * i), LogOffset(2 * i));
  EXPECT_LE(index.size(), OffsetIndex::kPointsMax);
  for (std::uint64_t position = 1; position < 3 * kEntries; position += 997) {
    const auto at = index.at_or_before(Position(position));
    ASSERT_TRUE(at);
    const std::uint64_t first = 1 + 3 * (at->value() / 2);
    EXPECT_LE(first, position);
    EXPECT_LE(position - first, 3 * kEntries / (OffsetIndex::kPointsMax / 4));
  }
}

TEST(OffsetIndex, ForgetsWhatIsTrimmed) {
  OffsetIndex index;
  for (std::uint64_t i = 1; i <= 10; ++i) index.note(Position(i), LogOffset(i));
  index.forget_before(LogOffset(6));
  EXPECT_EQ(index.size(), 5u);
  EXPECT_EQ(index.at_or_before(Position(5)), std::nullopt);
  EXPECT_EQ(index.at_or_before(Position(6)), LogOffset(6));
}

}  // namespace
}  // namespace stanchion::kafka
