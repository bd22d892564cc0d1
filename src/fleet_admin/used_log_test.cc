#include "fleet_admin/used_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "fleet_admin/log_filler.h"
#include "kafka/test_support.h"
#include "model/fact.h"

namespace stanchion::fleet_admin {
namespace {

using journal::Epoch;
using journal::LogEntryKind;
using journal::LogOffset;

constexpr Epoch kFirst(1);
constexpr Position kAll(1'000'000);

// As who fills a log writes.
kafka::ShardLog filled_log(std::uint32_t shard = 0) {
  return kafka::test_log(shard, 0);
}

std::string record(bool brings_something) {
  RecordWriter writer(Instant{});
  if (brings_something) {
    writer.add(ShardFounded{});
  } else {
    writer.add(TransfersResumed{TransferNo(7)});
    writer.add(TransferRefused{TransferNo(3)});
  }
  return writer.bytes();
}

std::string records(Position first, bool brings_something, const kafka::ShardLog& log,
                    Epoch epoch = kFirst) {
  return kafka::entry_bytes(epoch, first, record(brings_something), log);
}

std::string empty_entry(LogEntryKind kind, const kafka::ShardLog& log, Epoch epoch = kFirst) {
  return journal::LogEntryBuilder().finish(
      kind, epoch, Position(1), std::nullopt,
      {.fleet = log.fleet, .shard = log.shard, .node = log.node, .writer = 99});
}

class UsedLogTest : public testing::Test {
 protected:
  LogOffset append(std::string bytes, std::uint32_t shard = 0) {
    return *kafka::append_to(*connection_, filled_log(shard).partition, std::move(bytes));
  }
  std::uint64_t end() const {
    const auto end = connection_->end_of(filled_log().partition, kafka::kTestPatience);
    EXPECT_TRUE(end) << end.error().message;
    return end->value();
  }
  // Empty: it is not refused.
  std::string why_used(Position last = kAll, std::optional<LogOffset> before = std::nullopt,
                       std::uint32_t shard = 0) {
    const Status free = refuse_used_log(*connection_, filled_log(shard), last, before);
    return free ? "" : free.error().message;
  }

  kafka::MockBrokers brokers_;
  std::unique_ptr<kafka::KafkaConnection> connection_ = kafka::connect(brokers_.settings());
};

TEST_F(UsedLogTest, ALogThatNeverHadAnEntryIsFree) {
  EXPECT_EQ(why_used(), "");
  EXPECT_TRUE(refuse_log_with_entries(*connection_, filled_log().partition));
}

TEST_F(UsedLogTest, WhatAnInterruptedFillingHasLeftIsReplacedByOneThatBringsAsMuch) {
  append(empty_entry(LogEntryKind::kClaim, filled_log()));
  append(records(Position(11), true, filled_log()));
  append(records(Position(12), true, filled_log()));
  append(records(Position(13), false, filled_log()));
  EXPECT_EQ(why_used(Position(12)), "");
  const std::string why = why_used(Position(11));
  EXPECT_NE(why.find("it has the records up to 12, and what is to replace it only those up to 11"),
            std::string::npos)
      << why;
  EXPECT_FALSE(refuse_log_with_entries(*connection_, filled_log().partition))
      << "a fleet that begins empty does not follow it";
}

TEST_F(UsedLogTest, WhatANodeOrAStrangerHasWrittenIsNeverRemoved) {
  using Make = std::function<std::string(kafka::ShardLog)>;
  const std::pair<Make, std::string> entries[] = {
      {[](auto log) { return log.node = 7, records(Position(1), false, log); },
       "was written by a node, in epoch 1"},
      {[](auto log) { return log.node = 7, empty_entry(LogEntryKind::kClaim, log); },
       "was written by a node, in epoch 1"},
      {[](auto log) { return empty_entry(LogEntryKind::kClaim, log, Epoch(2)); },
       "was written by a node, in epoch 2"},
      {[](auto log) { return empty_entry(LogEntryKind::kBarrier, log); },
       "was written by a node, in epoch 1"},
      {[](auto log) { return ++log.fleet, records(Position(1), false, log); },
       "belongs to another fleet"},
      {[](auto log) { return records(Position(1), false, filled_log(log.shard.value() + 1)); },
       "belongs to another shard"},
      {[](auto log) { return kafka::of_a_later_release(records(Position(1), false, log)); },
       "was written by a newer release"},
      {[](auto log) { return records(Position(1), true, log).replace(70, 1, "!"); },
       "does not match its checksum"},
      {[](auto) { return "hello, you!"; }, "does not begin like an entry"},
      {[](auto log) { return kafka::entry_bytes(kFirst, Position(1), "no record", log); },
       "has a record that cannot be read"},
  };
  std::uint32_t shard = 0;
  for (const auto& [make, why] : entries) {
    append(empty_entry(LogEntryKind::kClaim, filled_log(shard)), shard);
    append(make(filled_log(shard)), shard);
    const std::string said = why_used(kAll, std::nullopt, shard++);
    EXPECT_NE(said.find("the entry at offset 1 " + why), std::string::npos) << why << ": " << said;
    EXPECT_NE(said.find("stanchion fleet rebuild"), std::string::npos) << said;
  }
}

TEST_F(UsedLogTest, WhatIsMissingMayHaveBeenWrittenByANode) {
  append(empty_entry(LogEntryKind::kClaim, filled_log()));
  brokers_.produce(kafka::batch_of(0, {records(Position(1), true, filled_log())}, 1));
  EXPECT_NE(why_used(kAll).find("the entry at offset 2 cannot be read"), std::string::npos)
      << why_used(kAll);
  append(records(Position(2), true, filled_log()));
  EXPECT_NE(why_used(kAll).find("the entry at offset 2 cannot be read"), std::string::npos)
      << why_used(kAll);
}

TEST_F(UsedLogTest, OnlyWhatStandsBeforeAClaimIsToBeRemoved) {
  append(empty_entry(LogEntryKind::kClaim, filled_log()));
  const LogOffset second = append(empty_entry(LogEntryKind::kClaim, filled_log(), Epoch(2)));
  append(records(Position(1), true, filled_log(), Epoch(2)));
  EXPECT_EQ(why_used(kAll, second), "");
  EXPECT_NE(why_used(kAll, second.next()), "");
}

TEST_F(UsedLogTest, WhoFillsALogWritesNothingInOneThatWasUsed) {
  append(empty_entry(LogEntryKind::kClaim, kafka::test_log(0, 7)));
  LogFiller filler(*connection_, filled_log(), 99);
  const Status claimed = filler.claim(Position(11), Position(10));
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().message.find("was written by a node"), std::string::npos);
  EXPECT_EQ(end(), 1u);
}

}  // namespace
}  // namespace stanchion::fleet_admin
