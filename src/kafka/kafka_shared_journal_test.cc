#include "kafka/kafka_shared_journal.h"

#include <gtest/gtest.h>

#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using Progress = journal::SharedJournal::Progress;
using Records = std::vector<std::string>;

TEST(KafkaSharedJournal, AReplicaFollowsIsPromotedAndTheOlderOwnerIsFenced) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  ASSERT_TRUE(older.append_durably("one"));
  TestReplica newer(brokers, 2);
  newer.follow();
  EXPECT_TRUE(newer.read_records(1));
  ASSERT_TRUE(older.append_durably("two"));
  EXPECT_TRUE(newer.read_records(2));
  ASSERT_TRUE(older.append_bytes("written by nobody"));
  ASSERT_TRUE(older.append_durably("three"));
  EXPECT_TRUE(newer.read_records(3));
  ASSERT_TRUE(older.append_durably("four"));
  ASSERT_TRUE(newer.own());
  EXPECT_EQ(newer.records, (Records{"one", "two", "three", "four"})) << "each was read once";
  EXPECT_EQ(newer.journal->next_position(), Position(5));
  EXPECT_TRUE(newer.append_durably("five"));
  older.append("lost");
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(read_back(brokers), (Records{"one", "two", "three", "four", "five"}));
}

// Of two shards on one connection: broker 1 leads shard 0, and broker 2 leads shard 1.
class StalledLogTest : public testing::Test {
 protected:
  std::unique_ptr<TestReplica> replica_of(std::uint32_t shard) {
    auto replica = std::make_unique<TestReplica>(
        connection_, test_log(shard),
        KafkaJournalOptions{.stalled_after = std::chrono::milliseconds(400)});
    replica->follow();
    return replica;
  }

  MockBrokers brokers_;
  const std::shared_ptr<KafkaConnection> connection_ = connect(brokers_.settings());
};

TEST_F(StalledLogTest, APartitionThatTakesNothingIsNoticedUntilItDoesAndNoOther) {
  auto stalled = replica_of(0), other = replica_of(1);
  ASSERT_TRUE(stalled->own() && other->own());
  EXPECT_FALSE(stalled->journal->stall());
  brokers_.refuse_at(1, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  const Position one = stalled->append("one");
  EXPECT_TRUE(other->append_durably("one"));
  EXPECT_TRUE(stalled->wait_for_stall("broker 1 leads log[0] and takes no entries"));
  EXPECT_TRUE(other->append_durably("two"));
  EXPECT_FALSE(other->journal->stall());
  brokers_.lead(0, 2);
  EXPECT_TRUE(stalled->ear.wait_durable(one));
  EXPECT_FALSE(stalled->journal->stall());
  EXPECT_EQ(read_back(brokers_), Records{"one"});
}

TEST_F(StalledLogTest, AClaimThatAPartitionDoesNotTakeIsNoticedToo) {
  auto replica = replica_of(0);
  ASSERT_TRUE(replica->read_to(Progress::kWaiting));
  brokers_.refuse_at(1, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  EXPECT_FALSE(replica->journal->stall());
  replica->journal->claim();
  EXPECT_TRUE(replica->wait_for_stall("broker 1 leads log[0] and takes no entries"));
  brokers_.lead(0, 2);
  EXPECT_TRUE(replica->read_to(Progress::kOwned));
  EXPECT_FALSE(replica->journal->stall());
}

TEST(KafkaSharedJournal, WhatIsRefusedForGoodCostsOneShardAndTheOthersGoOn) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
        RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP}) {
    MockBrokers brokers;
    const std::shared_ptr<KafkaConnection> connection = connect(brokers.settings());
    const auto owner_of = [&](std::uint32_t shard) {
      auto owner = std::make_unique<TestReplica>(connection, test_log(shard));
      owner->follow();
      EXPECT_TRUE(owner->own_in_the_end());
      return owner;
    };
    auto refused = owner_of(0), other = owner_of(1);
    brokers.refuse({error});
    refused->append("refused");
    EXPECT_TRUE(refused->ear.wait_superseded()) << "the process goes on";
    const auto why = refused->journal->refusal();
    ASSERT_TRUE(why);
    EXPECT_NE(why->message.find(rd_kafka_err2str(error)), std::string::npos) << why->message;
    // The client has ended for the sake of the first shard.
    if (!other->append_durably("one")) {
      EXPECT_FALSE(other->journal->refusal());
      other.reset();
      other = owner_of(1);
    }
    EXPECT_TRUE(other->append_durably("two"));
    refused.reset();
    refused = owner_of(0);
    EXPECT_TRUE(refused->append_durably("accepted"));
    EXPECT_EQ(read_back(brokers), Records{"accepted"});
  }
}

TEST(KafkaSharedJournal, WhatTheStoreHasIsNotPassedOnAgain) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one") && owner.append_durably("two"));
  const auto before = owner.journal->digest();
  ASSERT_TRUE(owner.append_durably("three"));
  TestReplica standby(brokers, 2);
  ASSERT_TRUE(standby.follow_and_own(Position(3), before)) << standby.failure;
  EXPECT_EQ(standby.records, Records{"three"});
}

TEST(KafkaSharedJournal, BytesOfAStrangerAreVoid) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  for (const char* bytes : {"hello, you!", "{\"a\": 1}"}) ASSERT_TRUE(owner.append_bytes(bytes));
  EXPECT_TRUE(owner.append_durably("one"));
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_TRUE(standby.read_to_end()) << standby.failure;
  EXPECT_EQ(standby.records, Records{"one"});
}

// Why nobody can follow the log; empty: it can be followed to its end.
std::string why_unreadable(const MockBrokers& brokers, const ShardLog& log = test_log(0, 2)) {
  TestReplica standby(brokers, log);
  standby.follow();
  return standby.read_to_end() ? "" : standby.failure;
}

TEST(KafkaSharedJournal, ALogWithAHoleIsRefused) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  EXPECT_EQ(why_unreadable(brokers), "");
  ASSERT_TRUE(owner.append_bytes(entry_bytes(owner.journal->epoch(), Position(3), "too far")));
  const std::string why = why_unreadable(brokers);
  EXPECT_NE(why.find("records are missing"), std::string::npos) << why;
}

TEST(KafkaSharedJournal, ADamagedEntryIsRefused) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  std::string bytes = entry_bytes(owner.journal->epoch(), Position(1), "one");
  bytes.back() = '!';
  ASSERT_TRUE(owner.append_bytes(bytes));
  const std::string why = why_unreadable(brokers);
  EXPECT_NE(why.find("offset 1 of Kafka's partition log[0] does not match"), std::string::npos)
      << why;
}

TEST(KafkaSharedJournal, TheLogOfAnotherFleetOrShardIsRefused) {
  MockBrokers brokers;
  TestReplica stranger(brokers, 1);
  ShardLog other = test_log(0, 1);
  other.fleet = 7;
  ASSERT_TRUE(stranger.append_bytes(entry_bytes(journal::Epoch(1), Position(1), "one", other)));
  const std::string why = why_unreadable(brokers);
  EXPECT_NE(why.find("another fleet"), std::string::npos) << why;

  TestReplica mistaken(
      brokers, {.partition = {"log", 1}, .fleet = kTestFleet, .shard = ShardIndex(5), .node = 1});
  ASSERT_TRUE(mistaken.follow_and_own());
  const std::string other_shard = why_unreadable(brokers, test_log(1, 2));
  EXPECT_NE(other_shard.find("belongs to shard 5"), std::string::npos) << other_shard;
}

TEST(KafkaSharedJournal, AClaimThatCameTooLateIsRefusedAndMayBeMadeAgain) {
  MockBrokers brokers;
  TestReplica slower(brokers, 1);
  slower.follow();
  TestReplica faster(brokers, 2);
  ASSERT_TRUE(faster.follow_and_own());
  ASSERT_TRUE(faster.append_durably("one"));
  // It has read nothing yet, so that it claims the epoch that the other one has.
  slower.journal->claim();
  ASSERT_TRUE(slower.read_to(Progress::kRefused));
  EXPECT_TRUE(faster.append_durably("two")) << "a refused claim fences nobody";
  ASSERT_TRUE(slower.own());
  EXPECT_EQ(slower.records, (Records{"one", "two"}));
}

// Nobody has to find the own claim: what its faster rival has written may be all that is left of the log.
TEST(KafkaSharedJournal, AClaimIsRefusedAsSoonAsARivalOfItsEpochIsRead) {
  MockBrokers brokers;
  TestReplica slower(brokers, 1);
  slower.follow();
  TestReplica faster(brokers, 2);
  ASSERT_TRUE(faster.follow_and_own());
  ASSERT_TRUE(faster.append_durably("one"));
  slower.journal->claim();
  ASSERT_TRUE(slower.read_to(Progress::kRefused));
  EXPECT_EQ(slower.records, Records()) << "the rival's claim is the first entry";
  ASSERT_TRUE(slower.own());
  EXPECT_EQ(slower.records, Records{"one"});
}

TEST(KafkaSharedJournal, ALogThatBeginsTooLateIsSaidToBeTrimmed) {
  MockBrokers brokers;  // They keep at most 5 MB of a partition.
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(owner.append_durably(std::string(2 << 20, 'x')));
  const auto before = owner.journal->digest();
  ASSERT_TRUE(owner.append_durably(std::string(2 << 20, 'x')));
  TestReplica late(brokers, 2);
  late.follow();
  EXPECT_TRUE(late.read_to(Progress::kTrimmed));
  TestReplica copied(brokers, 3);
  copied.follow(Position(4), before);
  EXPECT_TRUE(copied.read_records(1)) << copied.failure;
}

TEST(KafkaSharedJournal, AClaimWhoseClientWasReplacedMayBeMadeAgain) {
  MockBrokers brokers;
  TestReplica replica(brokers, 1);
  replica.follow();
  EXPECT_TRUE(replica.read_to(Progress::kWaiting));
  brokers.refuse({RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER});
  replica.journal->claim();
  ASSERT_TRUE(replica.read_to(Progress::kRefused));
  // Until the client has been replaced, the next claim meets the same fate.
  ASSERT_TRUE(replica.own_in_the_end());
  EXPECT_TRUE(replica.append_durably("one"));
}

TEST(KafkaSharedJournal, ABrokerThatDoesNotHaveTheNextOffsetYetHasTrimmedNothing) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  TestReplica standby(brokers, 2);
  standby.follow();
  ASSERT_TRUE(standby.read_records(1));
  brokers.refuse_fetch(RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE);
  ASSERT_TRUE(owner.append_durably("two"));
  EXPECT_TRUE(standby.read_until([&](Progress progress) {
    EXPECT_NE(progress, Progress::kTrimmed);
    return standby.records.size() == 2;
  }));
  EXPECT_EQ(standby.records, (Records{"one", "two"}));
}

// Bytes have changed on the disk of the broker that leads the partition; another one may have them as
// they were.
TEST(KafkaSharedJournal, ABatchThatDoesNotMatchItsChecksumIsAFailureForWhoeverReadsIt) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  brokers.refuse_fetch(RD_KAFKA_RESP_ERR__BAD_MSG);
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_FALSE(standby.read_records(1));
  EXPECT_TRUE(standby.failure.starts_with("Kafka's partition log[0] cannot be read: "))
      << standby.failure;
  EXPECT_TRUE(standby.records.empty());
  TestReplica again(brokers, 2);
  again.follow();
  EXPECT_TRUE(again.read_records(1));
}

TEST(KafkaSharedJournal, AClaimThatIsRefusedForGoodIsAFailure) {
  MockBrokers brokers;
  TestReplica replica(brokers, 1);
  replica.follow();
  EXPECT_TRUE(replica.read_to(Progress::kWaiting));
  brokers.refuse({RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  replica.journal->claim();
  EXPECT_FALSE(replica.read_to(Progress::kOwned));
}

TEST(KafkaSharedJournal, WhatOnlyALaterReleaseReadsIsNotGuessed) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  TestReplica standby(brokers, 2);
  standby.follow();
  TestReplica later(brokers, 3);
  ASSERT_TRUE(later.append_bytes(of_a_later_release(
      entry_bytes(journal::Epoch(2), Position(2), "in words that nobody here knows"))));
  EXPECT_TRUE(standby.read_to(Progress::kTooNew));
  EXPECT_EQ(standby.records, Records{"one"});
  // It may be a claim: an owner that finds it behind its own cannot know.
  owner.append("lost");
  EXPECT_TRUE(owner.ear.wait_superseded());
  EXPECT_EQ(owner.ear.durable(), Position(1));
}

TEST(KafkaSharedJournal, BytesThatNoNodeHasWrittenAreVoidForReadersAndTheOwner) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  TestReplica stranger(brokers, 3);
  for (const char* garbage : {"garbage!", "STOP this", "{\"a\": 1}"})
    ASSERT_TRUE(stranger.append_bytes(garbage));
  EXPECT_TRUE(owner.append_durably("one"));
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_TRUE(standby.read_records(1));
}

// It may have been a claim, which others have read before it was damaged.
TEST(KafkaSharedJournal, AnOwnerThatMeetsADamagedEntryGivesTheLogUp) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  TestReplica stranger(brokers, 3);
  std::string damaged = entry_bytes(journal::Epoch(1), Position(1), "one");
  damaged.back() = '!';
  ASSERT_TRUE(stranger.append_bytes(damaged));
  owner.append("two");
  EXPECT_TRUE(owner.ear.wait_superseded());
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_FALSE(standby.read_to(Progress::kOwned)) << "the log cannot be read";
}

TEST(KafkaSharedJournal, AnEntryThatAnOperatorSkipsIsOfNoEffect) {
  MockBrokers brokers;
  ShardLog log = test_log(0, 1);
  log.is_skipped = [](journal::LogOffset offset) { return offset == journal::LogOffset(1); };
  TestReplica owner(brokers, log);
  ASSERT_TRUE(owner.follow_and_own());
  TestReplica stranger(brokers, 3);
  std::string damaged = entry_bytes(journal::Epoch(1), Position(1), "one");
  damaged.back() = '!';
  ASSERT_TRUE(stranger.append_bytes(damaged));
  EXPECT_TRUE(owner.append_durably("two")) << "it is in the gap before this";
  TestReplica standby(brokers, log);
  standby.follow();
  EXPECT_TRUE(standby.read_records(1));
  EXPECT_EQ(standby.records, Records{"two"});
}

TEST(KafkaSharedJournal, HasReachedTheEndWhenEverythingWasRead) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(owner.append_durably("one"));
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_FALSE(standby.journal->has_reached_end());
  EXPECT_TRUE(standby.read_to_end());
  EXPECT_EQ(standby.records.size(), 20u);
}

// A reader of a log that grows all the time meets no end of it.
TEST(KafkaSharedJournal, HasReachedTheEndOfALogThatGrowsAllTheTime) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  std::jthread writing([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && owner.append_durably("more")) continue;
  });
  TestReplica standby(brokers, 2);
  standby.follow();
  EXPECT_TRUE(standby.read_to_end());
  EXPECT_GE(standby.records.size(), 1u);
}

using journal::extended;
using journal::LogDigest;

// An owner whose log has the records "one" and "two", and a chain.
struct OwnerOfTwo {
  explicit OwnerOfTwo(const MockBrokers& brokers) : replica(brokers, 1) {
    EXPECT_TRUE(replica.follow_and_own());
    EXPECT_TRUE(replica.append_durably("one") && replica.append_durably("two"));
  }
  TestReplica replica;
};

const LogDigest kOne = extended(LogDigest(), "one");
const LogDigest kTwo = extended(kOne, "two");

TEST(KafkaSharedJournal, WhoHasWhatTheLogHasFollowsItAndKnowsTheDigest) {
  MockBrokers brokers;
  OwnerOfTwo owner(brokers);
  EXPECT_EQ(owner.replica.journal->digest(), kTwo);
  for (std::uint64_t from = 1; from <= 3; ++from) {
    TestReplica standby(brokers, 2);
    standby.follow(Position(from), from == 1 ? LogDigest() : from == 2 ? kOne : kTwo);
    EXPECT_TRUE(standby.read_to_end());
    EXPECT_EQ(standby.records.size(), 3 - from);
    EXPECT_EQ(standby.journal->digest(), kTwo);
  }
}

// KF3: as Kafka has it when it has forgotten that the claim was removed.
TEST(KafkaSharedJournal, ALogThatWasFoundedWithRecordsBeginsWhereItsFirstClaimSays) {
  const journal::LogDigest before(0xABCDE);
  const ShardLog log = test_log();
  const journal::LogWriterId founder{
      .fleet = log.fleet, .shard = log.shard, .node = 9, .writer = 99};
  MockBrokers brokers;
  TestReplica founding(brokers, log);
  founding.append_bytes(journal::LogEntryBuilder().finish(
      journal::LogEntryKind::kClaim, journal::Epoch(1), Position(70), before, founder));
  journal::LogEntryBuilder builder;
  builder.add("seventy");
  founding.append_bytes(builder.finish(journal::LogEntryKind::kRecords, journal::Epoch(1),
                                       Position(70), before, founder));

  TestReplica saved(brokers, 1);
  saved.follow(Position(70), before);
  ASSERT_TRUE(saved.own_in_the_end()) << saved.failure;
  EXPECT_EQ(saved.records, Records{"seventy"});
  EXPECT_TRUE(saved.append_durably("seventy-one"));
  TestReplica empty(brokers, 2);
  empty.follow();
  EXPECT_TRUE(empty.read_to(Progress::kTrimmed)) << "it needs a copy " << empty.failure;
  TestReplica other(brokers, 3);
  other.follow(Position(70), journal::LogDigest(0xBAD));
  EXPECT_FALSE(other.read_to(Progress::kOwned));
  EXPECT_TRUE(other.journal->has_other_past());
}

// A topic that was restored from an earlier copy, and written to since: the store knows of records
// that never were in this log.
TEST(KafkaSharedJournal, WhoHasOtherRecordsThanTheLogDoesNotFollowIt) {
  MockBrokers brokers;
  OwnerOfTwo owner(brokers);
  for (const std::uint64_t from : {2, 3}) {
    TestReplica standby(brokers, 2);
    standby.follow(Position(from), extended(kOne, "another one"));
    EXPECT_FALSE(standby.read_to(Progress::kOwned));
    EXPECT_NE(standby.failure.find("has other records up to there"), std::string::npos)
        << standby.failure;
    EXPECT_TRUE(standby.journal->has_other_past() && standby.records.empty());
  }
}

// A topic that was restored from a copy of before the chain began, and written to since by nodes that
// did not begin it again: positions match, and nothing else is known of the past.
TEST(KafkaSharedJournal, WhoHasADigestDoesNotFollowALogThatSaysNone) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  owner.format = 1;
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one") && owner.append_durably("two"));
  for (const std::uint64_t from : {2, 3}) {
    TestReplica standby(brokers, 2);
    standby.follow(Position(from), kOne);
    EXPECT_FALSE(standby.read_to_end());
    EXPECT_NE(standby.failure.find("says no digest of them"), std::string::npos) << standby.failure;
    EXPECT_TRUE(standby.journal->has_other_past() && standby.records.empty());
  }
}

// The other way round: a topic that was made anew by nodes that begin a chain at once. The store was
// last saved by a release that knew none.
TEST(KafkaSharedJournal, WhoHasNoDigestDoesNotFollowALogThatSaysOneOfWhatItHas) {
  MockBrokers brokers;
  OwnerOfTwo owner(brokers);
  for (const std::uint64_t from : {2, 3}) {
    TestReplica standby(brokers, 2);
    standby.follow(Position(from), std::nullopt);
    EXPECT_FALSE(standby.read_to_end());
    EXPECT_NE(standby.failure.find("unlike the store"), std::string::npos) << standby.failure;
    EXPECT_TRUE(standby.journal->has_other_past() && standby.records.empty());
  }
}

// A topic that has lost its end, or was made anew.
TEST(KafkaSharedJournal, WhoHasMoreRecordsThanTheLogDoesNotFollowIt) {
  MockBrokers brokers;
  TestReplica ahead(brokers, 2);
  ahead.follow(Position(5), LogDigest(7));
  EXPECT_FALSE(ahead.read_to(Progress::kOwned));
  EXPECT_NE(ahead.failure.find("ends with record 0"), std::string::npos) << ahead.failure;
  OwnerOfTwo owner(brokers);
  for (const auto before : {std::optional<LogDigest>(), std::optional(LogDigest(7))}) {
    TestReplica still(brokers, 2);
    EXPECT_FALSE(still.follow_and_own(Position(5), before));
    EXPECT_NE(still.failure.find("up to 4, but"), std::string::npos) << still.failure;
    EXPECT_NE(still.failure.find("ends with record 2"), std::string::npos) << still.failure;
    EXPECT_TRUE(still.journal->has_other_past());
  }
  EXPECT_TRUE(owner.replica.append_durably("three")) << "who is refused has claimed nothing";
}

TEST(KafkaSharedJournal, TheChainBeginsWhenAllNodesCanReadIt) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  owner.format = 1;
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  EXPECT_FALSE(owner.journal->digest());
  owner.journal->write_format(journal::kLogEntryVersion);
  EXPECT_FALSE(owner.journal->digest()) << "another owner may begin it elsewhere";
  ASSERT_TRUE(owner.append_durably("two"));
  const LogDigest begun = extended(LogDigest(), "two");
  EXPECT_EQ(owner.journal->digest(), begun);
  owner.journal->write_format(1);
  ASSERT_TRUE(owner.append_durably("three"));
  TestReplica standby(brokers, 2);
  standby.format = 1;
  standby.follow();
  EXPECT_TRUE(standby.read_records(3));
  EXPECT_EQ(standby.journal->digest(), extended(begun, "three"));
  // The next owner goes on with it, whatever it knows of the others.
  ASSERT_TRUE(standby.own());
  ASSERT_TRUE(standby.append_durably("four"));
  EXPECT_EQ(standby.journal->digest(), extended(extended(begun, "three"), "four"));
}

// The versions of all entries in the log.
std::vector<int> versions(MockBrokers& brokers) {
  const Partition partition = test_log().partition;
  const auto end = brokers.reader().end_of(partition, kTestPatience);
  auto reader = brokers.reader().read(partition, std::nullopt);
  EXPECT_TRUE(end && reader);
  std::vector<int> found;
  while (found.size() < end->value()) {
    const auto got = (*reader)->next(kTestPatience);
    if (!got || *got == PartitionReader::Got::kNothing) break;
    if (*got == PartitionReader::Got::kEntry)
      found.push_back((*reader)->bytes()[journal::kLogEntryMagic.size()]);
  }
  return found;
}

TEST(KafkaSharedJournal, EntriesAreWrittenInTheFirstVersionUntilAllReadALaterOne) {
  MockBrokers brokers;
  TestReplica owner(brokers, 1);
  owner.format = 1;
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  owner.journal->write_format(journal::kLogEntryVersion + 7u);  // Others are ahead of this release.
  ASSERT_TRUE(owner.append_durably("two"));
  EXPECT_EQ(versions(brokers), (std::vector<int>{1, 1, journal::kLogEntryVersion}));
}

}  // namespace
}  // namespace stanchion::kafka
