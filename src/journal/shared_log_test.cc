#include "journal/shared_log.h"

#include <gtest/gtest.h>

namespace stanchion::journal {
namespace {

using Verdict = LogReader::Verdict;

LogEntry claim(std::uint64_t epoch) {
  return {.kind = LogEntryKind::kClaim, .epoch = Epoch(epoch), .first = Position(), .count = 0};
}

LogEntry barrier(std::uint64_t epoch) {
  return {.kind = LogEntryKind::kBarrier, .epoch = Epoch(epoch), .first = Position(), .count = 0};
}

LogEntry records(std::uint64_t epoch, std::uint64_t first, std::uint64_t count) {
  return {.kind = LogEntryKind::kRecords,
          .epoch = Epoch(epoch),
          .first = Position(first),
          .count = count};
}

TEST(LogReader, TakesTheRecordsOfTheLastClaimInOrder) {
  LogReader reader;
  EXPECT_EQ(reader.judge(claim(1)), Verdict::kClaim);
  EXPECT_EQ(reader.judge(records(1, 1, 2)), Verdict::kRecords);
  EXPECT_EQ(reader.judge(barrier(1)), Verdict::kVoid);
  EXPECT_EQ(reader.judge(records(1, 3, 1)), Verdict::kRecords);
  EXPECT_EQ(reader.next(), Position(4));
}

TEST(LogReader, WhatAReplacedOwnerAppendsIsVoid) {
  LogReader reader;
  reader.judge(claim(1));
  reader.judge(records(1, 1, 2));
  EXPECT_EQ(reader.judge(claim(2)), Verdict::kClaim);
  EXPECT_EQ(reader.judge(records(1, 3, 1)), Verdict::kVoid);
  EXPECT_EQ(reader.judge(claim(1)), Verdict::kVoid);
  EXPECT_EQ(reader.judge(claim(2)), Verdict::kVoid) << "a claim counts once";
  EXPECT_EQ(reader.judge(records(2, 3, 1)), Verdict::kRecords);
  EXPECT_EQ(reader.epoch(), Epoch(2));
}

TEST(LogReader, RecordsThatCameTwiceCountOnceAndAHoleIsDamage) {
  LogReader reader;
  reader.judge(claim(1));
  reader.judge(records(1, 1, 2));
  EXPECT_EQ(reader.judge(records(1, 1, 2)), Verdict::kDuplicate);
  EXPECT_EQ(reader.judge(records(1, 4, 1)), Verdict::kDamaged);
}

// LG4.
TEST(LogReader, WhoHasReadOtherRecordsThanAWriterFindsOut) {
  LogReader reader;
  reader.judge(claim(1));
  LogEntry first = records(1, 1, 2);
  first.before = LogDigest();
  EXPECT_EQ(reader.judge(first), Verdict::kRecords);
  reader.pass("one");
  reader.pass("two");
  const LogDigest both = extended(extended(LogDigest(), "one"), "two");
  EXPECT_EQ(reader.digest(), both);
  LogReader other = reader;
  LogEntry next = records(1, 3, 1);
  next.before = both;
  EXPECT_EQ(reader.judge(next), Verdict::kRecords);
  next.before = extended(extended(LogDigest(), "one"), "three");
  EXPECT_EQ(other.judge(next), Verdict::kOtherPast);
  // A claim that was sent before the last records were read says nothing about them.
  LogEntry later = claim(2);
  later.first = Position(2);
  later.before = next.before;
  EXPECT_EQ(LogReader(reader).judge(later), Verdict::kClaim);
  later.first = reader.next();
  EXPECT_EQ(reader.judge(later), Verdict::kVoid) << "nobody but its writer has to stop";
  EXPECT_EQ(reader.epoch(), Epoch(1));
}

// A log that has lost its end, and went on with another owner, behind a reader that waits.
TEST(LogReader, RecordsOfAnOwnerWhoseClaimWasNotReadAreDamage) {
  LogReader reader;
  EXPECT_EQ(reader.judge(records(1, 1, 2)), Verdict::kDamaged);
  EXPECT_EQ(reader.judge(claim(1)), Verdict::kClaim);
  EXPECT_EQ(reader.judge(records(1, 1, 2)), Verdict::kRecords);
  EXPECT_EQ(reader.judge(records(2, 2, 1)), Verdict::kDamaged);
  EXPECT_EQ(reader.judge(records(2, 3, 1)), Verdict::kDamaged);
  EXPECT_EQ(reader.next(), Position(3));
}

TEST(LogReader, AnOwnerThatBeginsBeforeItsClaimHasAnotherPast) {
  LogReader reader;
  reader.judge(claim(1));
  reader.judge(records(1, 1, 4));
  EXPECT_EQ(reader.judge(claim(2)), Verdict::kClaim);
  EXPECT_EQ(reader.judge(records(2, 4, 1)), Verdict::kOtherPast);
  EXPECT_EQ(reader.judge(records(2, 5, 1)), Verdict::kRecords);
  EXPECT_EQ(reader.judge(records(2, 5, 1)), Verdict::kDuplicate);
}

TEST(LogReader, TheChainBeginsWithTheFirstEntryThatSaysADigest) {
  LogReader reader;
  reader.judge(claim(1));
  reader.judge(records(1, 1, 1));
  reader.pass("one");
  EXPECT_FALSE(reader.digest());
  LogEntry next = records(1, 2, 1);
  next.before = LogDigest(77);
  EXPECT_EQ(reader.judge(next), Verdict::kRecords);
  reader.pass("two");
  EXPECT_EQ(reader.digest(), extended(LogDigest(77), "two"));
  next.first = Position(3);
  EXPECT_EQ(LogReader(reader).judge(next), Verdict::kOtherPast);
  // Who writes the first format cannot have read what is there.
  EXPECT_EQ(LogReader(reader).judge(records(1, 3, 1)), Verdict::kOtherPast);
  EXPECT_EQ(reader.judge(claim(2)), Verdict::kClaim) << "a claim need not say anything";
}

TEST(LogWriter, CountsAnEntryOnlyWhenAllBeforeItAreKnown) {
  LogWriter writer(Epoch(2), LogOffset(10));
  ASSERT_TRUE(writer.follows(LogOffset(11)));
  writer.take_own(LogOffset(11));
  EXPECT_FALSE(writer.follows(LogOffset(13)));
  EXPECT_EQ(writer.gap(), LogOffset(12));
  EXPECT_TRUE(writer.look_at(records(1, 7, 1))) << "what an earlier owner appended is void";
  EXPECT_TRUE(writer.follows(LogOffset(13)));
}

TEST(LogWriter, NoticesTheClaimOfALaterOwner) {
  LogWriter writer(Epoch(2), LogOffset(10));
  EXPECT_TRUE(writer.look_at(claim(1)));
  EXPECT_FALSE(writer.look_at(claim(3)));
}

TEST(LogWriterDeathTest, AnEntryBehindAGapIsNotTaken) {
  LogWriter writer(Epoch(2), LogOffset(10));
  EXPECT_DEATH(writer.take_own(LogOffset(12)), "all before it are known");
}

}  // namespace
}  // namespace stanchion::journal
