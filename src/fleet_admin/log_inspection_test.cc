#include "fleet_admin/log_inspection.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fleet/control_codec.h"
#include "fleet_admin/topics.h"
#include "kafka/batch_test_kit.h"
#include "kafka/test_support.h"

namespace stanchion::fleet_admin {
namespace {

using journal::Epoch;
using journal::LogEntryBuilder;
using journal::LogEntryKind;
using kafka::entry_bytes;
using kafka::MockBrokers;
using kafka::test_log;

struct Inspected {
  Status status;
  LogRange range;
  LogSummary summary;
  std::vector<LogFinding> findings;
  std::vector<std::string> why;
};

Inspected inspect(
    MockBrokers& brokers, const std::function<void()>& at_begin = [] {}) {
  Inspected all;
  all.status = inspect_shard_log(
      brokers.reader(), test_log(),
      [&](const LogRange& range) {
        all.range = range;
        at_begin();
      },
      [&](const InspectedEntry& found) {
        EXPECT_EQ(found.offset.value(), all.findings.size());
        all.summary.count(found);
        all.findings.push_back(found.finding);
        all.why.push_back(found.why);
      });
  return all;
}

std::string bytes_without_records(LogEntryKind kind, Epoch epoch, std::uint32_t node = 1) {
  return LogEntryBuilder().finish(
      kind, epoch, Position(1), std::nullopt,
      {.fleet = kafka::kTestFleet, .shard = ShardIndex(0), .node = node, .writer = 99});
}

constexpr auto kValid = LogFinding::kValid;
constexpr auto kVoid = LogFinding::kVoid;
constexpr auto kDuplicate = LogFinding::kDuplicate;
constexpr auto kDamaged = LogFinding::kDamaged;

TEST(LogInspection, AnEmptyLogIsSummedUpAtOnce) {
  MockBrokers brokers;
  const Inspected all = inspect(brokers);
  ASSERT_TRUE(all.status) << all.status.error().message;
  EXPECT_TRUE(all.findings.empty());
  EXPECT_FALSE(all.summary.last_claim);
}

TEST(LogInspection, EveryEntryIsJudgedAsNodesDoItAndSaysWhy) {
  MockBrokers brokers;
  kafka::TestReplica node(brokers.settings(), test_log());
  for (const std::string& bytes :
       {bytes_without_records(LogEntryKind::kBarrier, Epoch(1)),
        bytes_without_records(LogEntryKind::kClaim, Epoch(1)),
        entry_bytes(Epoch(1), Position(1), "one"), entry_bytes(Epoch(1), Position(1), "one"),
        bytes_without_records(LogEntryKind::kBarrier, Epoch(1)), std::string("hello, you!"),
        bytes_without_records(LogEntryKind::kClaim, Epoch(2), 7),
        entry_bytes(Epoch(1), Position(2), "of a replaced owner"),
        bytes_without_records(LogEntryKind::kBarrier, Epoch(1)),
        bytes_without_records(LogEntryKind::kClaim, Epoch(2), 8),
        bytes_without_records(LogEntryKind::kBarrier, Epoch(5)),
        entry_bytes(Epoch(2), Position(2), "two")})
    ASSERT_TRUE(node.append_bytes(bytes));
  const Inspected all = inspect(brokers);
  ASSERT_TRUE(all.status) << all.status.error().message;
  EXPECT_EQ(all.findings, (std::vector{kVoid, kValid, kValid, kDuplicate, kValid, kVoid, kValid,
                                       kVoid, kVoid, kVoid, kVoid, kValid}));
  EXPECT_EQ(all.why,
            (std::vector<std::string>{
                "nobody had claimed the log", "", "", "", "", "it is not an entry of a shard's log",
                "", "the log belongs to epoch 2", "the log belongs to epoch 2",
                "epoch 2 had claimed the log before", "epoch 5 has made no claim", ""}));
  const LogSummary& sum = all.summary;
  EXPECT_EQ(sum.valid, 5u);
  EXPECT_EQ(sum.claims, 2u);
  EXPECT_EQ(sum.barriers, 1u);
  EXPECT_EQ(sum.voids, 6u);
  EXPECT_EQ(sum.duplicates, 1u);
  EXPECT_EQ(sum.damaged, 0u);
  EXPECT_EQ(sum.records, 2u);
  EXPECT_EQ(sum.first_record, Position(1));
  EXPECT_EQ(sum.last_record, Position(2));
  ASSERT_TRUE(sum.last_claim);
  EXPECT_EQ(sum.last_claim->offset.value(), 6u);
  EXPECT_EQ(sum.last_claim->epoch, Epoch(2));
  EXPECT_EQ(sum.last_claim->node, 7u);
}

TEST(LogInspection, DamageIsSaidAndWhatComesBehindItIsShown) {
  MockBrokers brokers;
  kafka::TestReplica node(brokers.settings(), test_log());
  std::string broken = entry_bytes(Epoch(1), Position(2), "two");
  broken.back() = '!';
  const std::string later = kafka::of_a_later_release(entry_bytes(Epoch(1), Position(9), "nine"));
  for (const std::string& bytes :
       {bytes_without_records(LogEntryKind::kClaim, Epoch(1)),
        entry_bytes(Epoch(1), Position(1), "one"), broken, entry_bytes(Epoch(1), Position(3), "a"),
        entry_bytes(Epoch(1), Position(4), "b"), later, entry_bytes(Epoch(1), Position(5), "c")})
    ASSERT_TRUE(node.append_bytes(bytes));
  const Inspected all = inspect(brokers);
  ASSERT_TRUE(all.status) << all.status.error().message;
  EXPECT_EQ(all.findings,
            (std::vector{kValid, kValid, kDamaged, kDamaged, kValid, kDamaged, kValid}));
  EXPECT_NE(all.why[2].find("offset 2 of Kafka's partition log[0] does not match its checksum"),
            std::string::npos)
      << all.why[2];
  EXPECT_NE(all.why[3].find("records are missing before it"), std::string::npos) << all.why[3];
  EXPECT_NE(all.why[5].find("newer release"), std::string::npos) << all.why[5];
  EXPECT_EQ(all.summary.damaged, 3u);
}

// An entry of the version with digests; without a record it is a claim.
std::string chained(Epoch epoch, Position first, journal::LogDigest before,
                    std::string_view record = {}) {
  LogEntryBuilder builder;
  if (!record.empty()) builder.add(record);
  return builder.finish(
      record.empty() ? LogEntryKind::kClaim : LogEntryKind::kRecords, epoch, first, before,
      {.fleet = kafka::kTestFleet, .shard = ShardIndex(0), .node = 1, .writer = 99},
      journal::kChainVersion);
}

// Nodes take the claim for none, so that the log belongs to its owner as before.
TEST(LogInspection, WhatComesBehindTheClaimOfOneWithAnotherPastIsJudgedAsNodesDoIt) {
  const journal::LogDigest one = journal::extended(journal::LogDigest(), "one");
  const journal::LogDigest two = journal::extended(one, "two");
  LogInspector inspector(test_log());
  std::vector<LogFinding> findings;
  std::vector<std::string> why;
  const std::string entries[] = {chained(Epoch(1), Position(1), journal::LogDigest()),
                                 chained(Epoch(1), Position(1), journal::LogDigest(), "one"),
                                 chained(Epoch(2), Position(2), journal::LogDigest(77)),
                                 chained(Epoch(2), Position(2), journal::LogDigest(77), "other"),
                                 chained(Epoch(1), Position(2), one, "two"),
                                 chained(Epoch(2), Position(3), two),
                                 chained(Epoch(2), Position(3), two, "three")};
  for (const std::string& bytes : entries) {
    const InspectedEntry found = inspector.inspect(journal::LogOffset(findings.size()), bytes);
    findings.push_back(found.finding);
    why.push_back(found.why);
  }
  EXPECT_EQ(findings, (std::vector{kValid, kValid, kVoid, kDamaged, kValid, kValid, kValid}));
  EXPECT_EQ(why[2], "its writer had read other records than those that are in the log");
  EXPECT_NE(why[3].find("whose claim is missing"), std::string::npos) << why[3];
}

TEST(LogInspection, AMissingEntryIsDamageAlsoAtTheEnd) {
  kafka::ShardLog log = test_log();
  log.is_skipped = [](journal::LogOffset at) { return at == journal::LogOffset(4); };
  LogInspector inspector(log);
  const std::string claim = bytes_without_records(LogEntryKind::kClaim, Epoch(1));
  EXPECT_EQ(inspector.inspect(journal::LogOffset(0), claim).finding, kValid);
  const InspectedEntry behind =
      inspector.inspect(journal::LogOffset(2), entry_bytes(Epoch(1), Position(1), "one"));
  EXPECT_EQ(behind.finding, kDamaged);
  EXPECT_FALSE(behind.unreadable) << "the one before it is missing";
  const InspectedEntry stranger = inspector.inspect(journal::LogOffset(3), "hello, you!");
  EXPECT_EQ(stranger.finding, kVoid);
  EXPECT_FALSE(inspector.finish(journal::LogOffset(4)));
  EXPECT_FALSE(inspector.finish(journal::LogOffset(5))) << "an operator has skipped it";
  const auto missing = inspector.finish(journal::LogOffset(6));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->offset, journal::LogOffset(5));
  EXPECT_EQ(missing->finding, kDamaged);
  EXPECT_TRUE(missing->unreadable);
  EXPECT_NE(missing->why.find("offset 5 of Kafka's partition log[0] is missing"), std::string::npos)
      << missing->why;
}

TEST(LogInspection, NodesStopAtWhatIsDamagedOrMissingAndNowhereElse) {
  MockBrokers brokers;
  const std::string one = entry_bytes(Epoch(1), Position(1), "one");
  std::string broken = entry_bytes(Epoch(1), Position(2), "two");
  broken.back() = '!';
  for (const std::string& batch :
       {kafka::batch_of(0, {bytes_without_records(LogEntryKind::kClaim, Epoch(1))}, 1),
        kafka::batch_of(0, {one, broken}),
        kafka::batch_of(0, {entry_bytes(Epoch(1), Position(2), "two")}, 1)})
    brokers.produce(batch);
  const auto stop_at = [&](std::uint64_t offset) {
    const auto stop = nodes_stop_at(brokers.reader(), test_log(), journal::LogOffset(offset));
    EXPECT_TRUE(stop) << stop.error().message;
    return stop.value_or(false);
  };
  std::vector<bool> found;
  for (std::uint64_t offset = 0; offset < 7; ++offset) found.push_back(stop_at(offset));
  EXPECT_EQ(found, (std::vector{false, true, false, true, false, true, false}));
}

TEST(LogInspection, ALogThatWasCutByAStrangerIsDamagedUntilItsFirstRecords) {
  LogInspector inspector(test_log());
  const std::string claim = bytes_without_records(LogEntryKind::kClaim, Epoch(3));
  const InspectedEntry first = inspector.inspect(journal::LogOffset(5), claim);
  EXPECT_EQ(first.finding, kDamaged);
  EXPECT_NE(first.why.find("begins at offset 5 without records"), std::string::npos) << first.why;
  const std::string records = entry_bytes(Epoch(3), Position(40), "forty");
  EXPECT_EQ(inspector.inspect(journal::LogOffset(6), records).finding, kValid);
  EXPECT_EQ(inspector.inspect(journal::LogOffset(7), records).finding, kDuplicate);
}

TEST(LogInspection, EndsWhereTheLogEndedWhenItBegan) {
  MockBrokers brokers;
  kafka::TestReplica node(brokers.settings(), test_log());
  ASSERT_TRUE(node.follow_and_own());
  ASSERT_TRUE(node.append_durably("one"));
  const Inspected all = inspect(brokers, [&] { ASSERT_TRUE(node.append_durably("two")); });
  ASSERT_TRUE(all.status) << all.status.error().message;
  EXPECT_EQ(all.findings, (std::vector{kValid, kValid}));
  EXPECT_TRUE(node.append_durably("three")) << "who looks disturbs nobody";
}

TEST(LogInspection, TheControlLogIsShownWithWhatIsNoRecordOfIt) {
  MockBrokers brokers;
  brokers.make_topic(control_topic("orders"), 1);
  const fleet::ControlRecord drain = fleet::Drain{"n1", true};
  std::string later = fleet::encode_control(drain);
  later[4] = 9;  // The format.
  for (const std::string& bytes : {fleet::encode_control(drain), std::string("hello?"), later}) {
    kafka::ShardLog log = test_log();
    log.partition = control_partition("orders");
    ASSERT_TRUE(kafka::TestReplica(brokers.settings(), log).append_bytes(bytes));
  }
  std::vector<InspectedControl> found;
  const Status status = inspect_control_log(
      brokers.reader(), "orders", [](const LogRange&) {},
      [&](const InspectedControl& one) { found.push_back(one); });
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].record, drain);
  EXPECT_FALSE(found[1].problem.empty());
  EXPECT_FALSE(found[2].problem.empty());
}

}  // namespace
}  // namespace stanchion::fleet_admin
