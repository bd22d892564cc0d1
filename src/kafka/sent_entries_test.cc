#include "kafka/sent_entries.h"

#include <gtest/gtest.h>

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::LogEntry;
using journal::LogEntryKind;
using journal::LogOffset;
using Step = SentEntries::Step;

LogEntry records(std::uint64_t first) {
  return {.kind = LogEntryKind::kRecords, .epoch = Epoch(5), .first = Position(first), .count = 1};
}

LogEntry claim(std::uint64_t epoch) {
  return {.kind = LogEntryKind::kClaim, .epoch = Epoch(epoch), .first = {}};
}

// The owner of epoch 5, whose claim is at the offset 10.
SentEntries owner() {
  return SentEntries(Epoch(5), LogOffset(10));
}

TEST(SentEntries, AnEntryAtTheNextOffsetCountsAtOnce) {
  SentEntries sent = owner();
  EXPECT_EQ(sent.next(), Step::kWait);
  const std::uint64_t number = sent.add(records(1));
  EXPECT_EQ(sent.next(), Step::kWait);
  sent.acknowledge(number, LogOffset(11));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().number, number);
  EXPECT_TRUE(sent.empty());
}

TEST(SentEntries, ALaterEntryWaitsForTheOneBefore) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.add(records(2));
  sent.acknowledge(2, LogOffset(12));
  EXPECT_EQ(sent.next(), Step::kWait);
  sent.acknowledge(1, LogOffset(11));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().number, 1u);
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().number, 2u);
}

TEST(SentEntries, AGapIsReadAndVoidEntriesInItAreHarmless) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.acknowledge(1, LogOffset(13));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_EQ(sent.gap(), LogOffset(11));
  EXPECT_EQ(sent.gap_end(), LogOffset(13));
  EXPECT_TRUE(sent.look_at(records(1), false));
  EXPECT_TRUE(sent.look_at(claim(5), false));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().at, LogOffset(13));
}

TEST(SentEntries, AHigherClaimInTheGapMeansThatTheLogHasMoved) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.acknowledge(1, LogOffset(12));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_FALSE(sent.look_at(claim(6), false));
}

TEST(SentEntries, AnEntryWithoutAnOffsetIsOpenUntilABarrierClosesIt) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.acknowledge(1, std::nullopt);
  ASSERT_EQ(sent.next(), Step::kSendBarrier);
  sent.add({.kind = LogEntryKind::kBarrier, .epoch = Epoch(5), .first = Position(2)});
  EXPECT_EQ(sent.next(), Step::kWait);
  sent.acknowledge(2, LogOffset(12));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_TRUE(sent.look_at(records(1), true));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().at, LogOffset(11));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().number, 2u);
}

TEST(SentEntries, SeveralOpenEntriesAreClosedByOne) {
  SentEntries sent = owner();
  for (std::uint64_t i = 1; i <= 3; ++i) sent.add(records(i));
  sent.acknowledge(1, std::nullopt);
  sent.acknowledge(2, std::nullopt);
  sent.acknowledge(3, LogOffset(14));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_TRUE(sent.look_at(records(1), true));
  ASSERT_EQ(sent.next(), Step::kTake);
  EXPECT_EQ(sent.take_first().number, 1u);
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_TRUE(sent.look_at(records(9), false));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  EXPECT_TRUE(sent.look_at(records(2), true));
  EXPECT_EQ(sent.take_first().at, LogOffset(13));
  EXPECT_EQ(sent.take_first().number, 3u);
}

TEST(SentEntries, AnAcknowledgedEntryThatIsNotInTheLogIsLost) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.add(records(2));
  sent.acknowledge(1, std::nullopt);
  sent.acknowledge(2, LogOffset(12));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  // Somebody else's entry has the same position.
  EXPECT_TRUE(sent.look_at(records(1), false));
  EXPECT_EQ(sent.next(), Step::kLost);
}

TEST(SentEntries, AnEntryBehindWhatIsKnownIsLost) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.acknowledge(1, LogOffset(9));
  EXPECT_EQ(sent.next(), Step::kLost);
}

TEST(SentEntries, OffsetsThatTheLogUsesForItselfAreSkipped) {
  SentEntries sent = owner();
  sent.add(records(1));
  sent.acknowledge(1, LogOffset(12));
  ASSERT_EQ(sent.next(), Step::kReadGap);
  sent.skip_gap();
  EXPECT_EQ(sent.next(), Step::kTake);
}

}  // namespace
}  // namespace stanchion::kafka
