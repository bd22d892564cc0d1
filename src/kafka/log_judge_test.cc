#include "kafka/log_judge.h"

#include <gtest/gtest.h>

#include <string>

#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::LogOffset;
using Verdict = journal::LogReader::Verdict;

std::string records(std::uint64_t position) {
  return entry_bytes(Epoch(1), Position(position), "record " + std::to_string(position));
}

// A log of which the first two entries were read: a claim, and the record 1.
LogJudge begun(ShardLog log = test_log()) {
  LogJudge judge(std::move(log));
  const std::string claim = journal::LogEntryBuilder().finish(
      journal::LogEntryKind::kClaim, Epoch(1), Position(1), std::nullopt,
      {.fleet = kTestFleet, .shard = ShardIndex(0), .node = 1, .writer = 99}, 1);
  EXPECT_EQ(judge.judge(LogOffset(0), claim).verdict, Verdict::kClaim);
  EXPECT_EQ(judge.judge(LogOffset(1), records(1)).verdict, Verdict::kRecords);
  return judge;
}

std::string changed(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

TEST(LogJudge, WhatStandsBehindAMissingOffsetIsDamaged) {
  LogJudge judge = begun();
  const std::string next = records(2);
  const LogJudge::Judged judged = judge.judge(LogOffset(3), next);
  EXPECT_EQ(judged.verdict, Verdict::kDamaged);
  EXPECT_TRUE(
      judged.problem.starts_with("the entry at offset 2 of Kafka's partition log[0] is missing"))
      << judged.problem;
  EXPECT_TRUE(judged.entry) << "it can be read itself";
  judge.go_on_behind(judged);
  EXPECT_EQ(judge.judge(LogOffset(4), records(3)).verdict, Verdict::kRecords);
}

TEST(LogJudge, WhoOnlyLooksGoesOnBehindAClaimThatCannotBeJudged) {
  LogJudge judge = begun();
  const std::string claim = journal::LogEntryBuilder().finish(
      journal::LogEntryKind::kClaim, Epoch(2), Position(1), std::nullopt,
      {.fleet = kTestFleet, .shard = ShardIndex(0), .node = 2, .writer = 98}, 1);
  const LogJudge::Judged judged = judge.judge(LogOffset(3), claim);
  EXPECT_EQ(judged.verdict, Verdict::kDamaged);
  EXPECT_TRUE(judged.missing);
  judge.go_on_behind(judged);
  EXPECT_EQ(judge.epoch(), Epoch(2));
  EXPECT_EQ(judge.next(), Position(2)) << "who claimed had not read everything";
  EXPECT_EQ(judge.judge(LogOffset(4), entry_bytes(Epoch(2), Position(2), "two")).verdict,
            Verdict::kRecords);
}

TEST(LogJudge, AMissingOffsetThatIsSkippedHasNoEffect) {
  ShardLog log = test_log();
  log.is_skipped = [](LogOffset at) { return at == LogOffset(2) || at == LogOffset(3); };
  EXPECT_EQ(begun(log).judge(LogOffset(4), records(2)).verdict, Verdict::kRecords);
  EXPECT_EQ(begun(log).judge(LogOffset(5), records(2)).verdict, Verdict::kDamaged);
  EXPECT_TRUE(begun(log).check_end(LogOffset(4)));
  EXPECT_FALSE(begun(log).check_end(LogOffset(5)));
}

TEST(LogJudge, AnOffsetIsNotReadTwice) {
  EXPECT_EQ(begun().judge(LogOffset(1), records(2)).verdict, Verdict::kDamaged);
}

TEST(LogJudge, NothingIsMissingAtTheEnd) {
  const LogJudge judge = begun();
  EXPECT_TRUE(judge.check_end(LogOffset(1))) << "of a broker that has less";
  EXPECT_TRUE(judge.check_end(LogOffset(2)));
  const Status missing = judge.check_end(LogOffset(3));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("offset 2 of"), std::string::npos)
      << missing.error().message;
}

TEST(LogJudge, WhereALogBeginsIsNotKnownBefore) {
  LogJudge judge(test_log());
  EXPECT_TRUE(judge.check_end(LogOffset(7)));
  EXPECT_EQ(judge.judge(LogOffset(7), records(5)).verdict, Verdict::kRecords);
  EXPECT_FALSE(judge.check_end(LogOffset(9)));
}

// No byte of the last entry may change so that it is taken for nothing: it may be a claim.
TEST(LogJudge, AnEntryOfWhichAByteHasChangedIsNotTakenForSomethingElse) {
  const std::string good = records(2);
  for (std::size_t at = 0; at < good.size(); ++at)
    EXPECT_EQ(begun().judge(LogOffset(2), changed(good, at)).verdict, Verdict::kDamaged) << at;
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(begun().judge(LogOffset(2), good.substr(0, size)).verdict, Verdict::kDamaged) << size;
  // The size before it was longer or shorter than it is now.
  for (const std::string& moved : {"\x01" + good, "\x01\x02" + good, good.substr(1)})
    EXPECT_EQ(begun().judge(LogOffset(2), moved).verdict, Verdict::kDamaged);
  EXPECT_EQ(begun().judge(LogOffset(2), "rest", "xx" + good).verdict, Verdict::kDamaged);
}

TEST(LogJudge, WhatNoNodeCanHaveWrittenIsVoid) {
  for (const std::string stranger : {"hello, who is there?", "STXX and so on", "{}{}{}{}"})
    EXPECT_EQ(begun().judge(LogOffset(2), stranger, "a key").verdict, Verdict::kVoid) << stranger;
}

}  // namespace
}  // namespace stanchion::kafka
