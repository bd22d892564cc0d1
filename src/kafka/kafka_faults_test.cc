// What brokers do to a journal: refuse for a while or for good, lose answers, go away, hand over.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kafka/client_conf.h"
#include "kafka/client_errors.h"
#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Room;
using Records = std::vector<std::string>;

// Instead of a broker that leads a partition.
constexpr int kNobody = -1;

TEST(KafkaFaults, WhatIsRefusedForAWhileIsSentAgain) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  Records expected;
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
        RD_KAFKA_RESP_ERR__TRANSPORT}) {
    brokers.refuse({error, error, error});
    expected.push_back(rd_kafka_err2name(error));
    EXPECT_TRUE(owner.append_durably(expected.back())) << expected.back();
  }
  EXPECT_EQ(read_back(brokers), expected);
}

TEST(KafkaFaults, AnEntryWhoseAnswerIsLostCountsOnce) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.lose_answer([&] { owner.append("one"); });
  EXPECT_TRUE(owner.ear.wait_durable(Position(1)));
  EXPECT_TRUE(owner.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaFaults, ASuccessWithoutAnOffsetIsClosedByABarrier) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  // The brokers know the entry when it is sent again, and no longer where it is.
  brokers.lose_answer([&] { owner.append("one"); }, RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER);
  EXPECT_TRUE(owner.ear.wait_durable(Position(1)));
  EXPECT_EQ(owner.journal->figures().commits, 2u) << "the barrier is an entry too";
  EXPECT_TRUE(owner.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaFaults, ASuccessWithoutAnOffsetBehindANewClaimIsNone) {
  MockBrokers brokers;
  TestReplica older(brokers, 1);
  ASSERT_TRUE(older.follow_and_own());
  TestReplica newer(brokers, 2);
  ASSERT_TRUE(newer.follow_and_own());
  brokers.lose_answer([&] { older.append("lost"); }, RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER);
  EXPECT_TRUE(older.ear.wait_superseded());
  EXPECT_EQ(older.ear.durable(), Position());
}

TEST(KafkaFaults, AnAcknowledgedEntryThatIsNotInTheLogCostsTheShard) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.refuse({RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER});  // A success without an offset.
  owner.append("nowhere");
  EXPECT_TRUE(owner.ear.wait_superseded());
  EXPECT_EQ(owner.ear.durable(), Position());
}

TEST(KafkaFaults, WhatIsRefusedForGoodEndsTheJournalAndLeavesNoHole) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  brokers.refuse({RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  owner.append("two");
  EXPECT_TRUE(owner.ear.wait_superseded());
  const auto refusal = owner.journal->refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message.find("log[0] cannot be written"), std::string::npos)
      << refusal->message;
  EXPECT_EQ(owner.journal->room(), Room::kNone);
  owner.append("three");
  EXPECT_FALSE(owner.journal->close());
  EXPECT_EQ(read_back(brokers), Records{"one"});
}

TEST(KafkaFaults, AClientThatHasLostCountIsReplacedAndLogsAreClaimedAgain) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  // As a broker answers that takes itself for the leader and has not seen the entries before.
  brokers.refuse({RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER});
  owner.append("in doubt");
  owner.append("behind it");
  EXPECT_TRUE(owner.ear.wait_superseded()) << "the node goes on, but not with this journal";
  owner.append("too late");
  owner.journal.reset();

  TestReplica again(owner.connection, test_log());
  // Until the client has been replaced, a claim meets the same fate.
  again.follow();
  ASSERT_TRUE(again.own_in_the_end());
  EXPECT_EQ(again.records, Records{"one"});
  EXPECT_TRUE(again.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

// As when a broker answers for an entry that the client does not know to be under way.
TEST(KafkaFaults, AClientThatIsInconsistentIsReplacedToo) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  ASSERT_EQ(rd_kafka_test_fatal_error(owner.connection->producer().get(),
                                      RD_KAFKA_RESP_ERR__INCONSISTENT, "for this test"),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  owner.journal.reset();

  TestReplica again(owner.connection, test_log());
  again.follow();
  ASSERT_TRUE(again.own_in_the_end());
  EXPECT_TRUE(again.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaFaults, AClientThatEndsAgainAndAgainIsReplacedSoManyTimesAMinuteAtMost) {
  MockBrokers brokers;
  const auto connection = connect(brokers.settings());
  const auto began = std::chrono::steady_clock::now();
  const auto is_too_late = [&] {
    return std::chrono::steady_clock::now() - began >= AnewLimit::kPeriod;
  };
  const auto look = [&] {
    std::promise<void> looked;
    connection->post([&] { looked.set_value(); });
    looked.get_future().wait();
  };
  std::vector<std::shared_ptr<rd_kafka_t>> clients;  // So that no address is used again.
  while (clients.size() <= AnewLimit::kMax) {
    look();
    auto client = connection->producer();
    if (!clients.empty() && client == clients.back()) {
      if (is_too_late()) GTEST_SKIP() << "the machine is too slow for so many in a minute";
      continue;
    }
    rd_kafka_test_fatal_error(client.get(), RD_KAFKA_RESP_ERR__INCONSISTENT, "for this test");
    clients.push_back(std::move(client));
  }
  for (int i = 0; i < 100; ++i) look();
  EXPECT_TRUE(connection->producer() == clients.back() || is_too_late());
}

TEST(KafkaFaults, ABrokerThatRefusesForAReasonOfItsOwnCostsAClaimAndNotTheNode) {
  for (const rd_kafka_resp_err_t error :
       {RD_KAFKA_RESP_ERR_UNKNOWN, RD_KAFKA_RESP_ERR_INVALID_MSG}) {
    MockBrokers brokers;
    TestReplica owner(brokers);
    ASSERT_TRUE(owner.follow_and_own());
    ASSERT_TRUE(owner.append_durably("one"));
    brokers.refuse({error});
    owner.append("in doubt");
    EXPECT_TRUE(owner.ear.wait_superseded()) << rd_kafka_err2name(error);
    owner.journal.reset();

    TestReplica again(owner.connection, test_log());
    again.follow();
    ASSERT_TRUE(again.own_in_the_end());
    EXPECT_EQ(again.records, Records{"one"});
    EXPECT_TRUE(again.append_durably("two"));
  }
}

TEST(KafkaFaults, TheReasonOfARefusalIsNotTheEntryItself) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.refuse({RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  owner.append("a body that is nobody's business");
  EXPECT_TRUE(owner.ear.wait_superseded());
  const auto refusal = owner.journal->refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->message.find("authorization failed"), std::string::npos) << refusal->message;
  EXPECT_EQ(refusal->message.find("nobody's business"), std::string::npos) << refusal->message;
}

TEST(KafkaFaults, AClientThatDoesNotGetRidOfAnEntryWhileOthersAreTakenIsReplaced) {
  MockBrokers brokers;
  KafkaSettings settings = brokers.settings();
  settings.stuck_after = std::chrono::milliseconds(500);
  TestReplica owner(settings, test_log());
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  brokers.lead(0, kNobody);
  owner.append("in doubt");
  const auto superseded =
      std::async(std::launch::async, [&owner] { return owner.ear.wait_superseded(); });
  while (superseded.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
    std::promise<void> reported;
    ASSERT_TRUE(owner.connection->send(test_log(1).partition, "of another shard",
                                       [&](const Delivery&) { reported.set_value(); }));
    ASSERT_EQ(reported.get_future().wait_for(kTestPatience), std::future_status::ready);
  }
  owner.journal.reset();

  TestReplica again(owner.connection, test_log());
  brokers.lead(0, 2);
  again.follow();
  ASSERT_TRUE(again.own_in_the_end());
  EXPECT_TRUE(again.append_durably("two"));
  EXPECT_EQ(read_back(brokers), (Records{"one", "two"}));
}

TEST(KafkaFaults, AnotherLeaderGoesOn) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  Records expected;
  for (const int leader : {2, 3, 1, 3}) {
    owner.append("under way " + std::to_string(leader));
    expected.push_back("under way " + std::to_string(leader));
    brokers.lead(0, leader);
    expected.push_back("led by " + std::to_string(leader));
    EXPECT_TRUE(owner.append_durably(expected.back()));
  }
  EXPECT_EQ(read_back(brokers), expected);
}

TEST(KafkaFaults, WithoutBrokersRecordsWaitUpToABoundAndTheStallIsShown) {
  MockBrokers brokers;
  KafkaJournalOptions options;
  options.unwritten_size_max = 2 * limits::kRecordSizeMax;
  options.stalled_after = std::chrono::milliseconds(200);
  TestReplica owner(brokers.settings(), test_log(), options);
  ASSERT_TRUE(owner.follow_and_own());
  ASSERT_TRUE(owner.append_durably("one"));
  EXPECT_FALSE(owner.journal->stall());

  brokers.take_down();
  Position last;
  std::size_t appended = 0;
  while (owner.journal->room() == Room::kPlenty) {
    last = owner.append(std::string(1 << 20, 'x'));
    ASSERT_LE(++appended, 8u) << "there is no bound";
  }
  EXPECT_EQ(owner.journal->room(), Room::kBusy);
  EXPECT_TRUE(owner.wait_for_stall());
  const auto stall = owner.journal->stall();
  ASSERT_TRUE(stall);
  EXPECT_GE(stall->waiting, options.stalled_after);
  EXPECT_FALSE(stall->why.empty());
  EXPECT_EQ(owner.ear.durable(), Position(1));

  brokers.bring_up();
  EXPECT_TRUE(owner.ear.wait_durable(last));
  EXPECT_TRUE(owner.ear.wait_roomier());
  EXPECT_EQ(owner.journal->room(), Room::kPlenty);
  EXPECT_FALSE(owner.journal->stall());
}

TEST(KafkaFaults, BrokersThatAreAwayAreComplainedAboutOnceAMinuteAtMost) {
  MockBrokers brokers;
  std::mutex mutex;
  std::vector<std::string> said;
  KafkaSettings settings = brokers.settings();
  settings.warn = [&](std::string_view text) {
    const std::lock_guard lock(mutex);
    said.emplace_back(text.substr(0, text.find(" (after ")));
  };
  const auto began = std::chrono::steady_clock::now();
  {
    TestReplica owner(settings, test_log());
    ASSERT_TRUE(owner.follow_and_own());
    for (int i = 0; i < 3; ++i) {
      brokers.take_down();
      owner.append("while they are away");
      const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
      while (owner.connection->last_error().empty() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
      EXPECT_NE(owner.connection->last_error(), "");
      brokers.bring_up();
      ASSERT_TRUE(owner.append_durably("when they are back"));
    }
  }
  EXPECT_FALSE(said.empty());
  std::ranges::sort(said);
  const auto twice = std::ranges::adjacent_find(said);
  const bool took_long = std::chrono::steady_clock::now() - began > std::chrono::seconds(60);
  EXPECT_TRUE(twice == said.end() || took_long) << *twice;
}

TEST(KafkaFaults, AJournalEndsAlsoWithoutBrokers) {
  MockBrokers brokers;
  KafkaJournalOptions options;
  options.patience = std::chrono::milliseconds(200);
  options.stalled_after = std::chrono::milliseconds(200);
  TestReplica owner(brokers.settings(), test_log(), options);
  ASSERT_TRUE(owner.follow_and_own());
  brokers.take_down();
  owner.append("one");
  const Status status = owner.journal->close();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("has not acknowledged"), std::string::npos);
  TestReplica other(brokers.settings(), test_log(), options);
  other.follow();
  other.journal->claim();
  EXPECT_TRUE(other.wait_for_stall()) << other.failure;
  EXPECT_FALSE(other.journal->has_reached_end());
  EXPECT_TRUE(other.journal->close()) << "it has nothing to write";
}

TEST(KafkaFaults, TheLargestEntriesPass) {
  MockBrokers brokers;
  TestReplica owner(brokers);
  ASSERT_TRUE(owner.follow_and_own());
  const std::string largest(limits::kRecordSizeMax, 'x');
  const std::string half(journal::kPayloadSizeMax / 2 - journal::kRecordPrefixSizeMax, 'y');
  owner.journal->append(largest);
  owner.journal->append(half);
  owner.journal->append(half);
  EXPECT_TRUE(owner.ear.wait_durable(owner.append("small")));
  EXPECT_GE(owner.journal->figures().commits, 2u);
}

TEST(KafkaFaults, WhoReadsLittleAheadReadsTheLargestEntriesToo) {
  MockBrokers brokers;
  KafkaSettings settings = brokers.settings();
  settings.read_ahead_max = 1 << 20;
  TestReplica owner(settings, test_log());
  ASSERT_TRUE(owner.follow_and_own());
  // A mock broker keeps five megabytes of a partition.
  const Records expected{"small", std::string(limits::kRecordSizeMax, 'x'), "small again"};
  for (const auto& record : expected) ASSERT_TRUE(owner.append_durably(record));
  TestReplica next(settings, test_log());
  ASSERT_TRUE(next.follow_and_own());
  EXPECT_EQ(next.records, expected);
}

std::size_t setting_of(ClientConf& conf, const char* name) {
  std::array<char, 64> value{};
  std::size_t size = value.size();
  EXPECT_EQ(rd_kafka_conf_get(conf.get(), name, value.data(), &size), RD_KAFKA_CONF_OK) << name;
  return std::stoull(value.data());
}

TEST(KafkaFaults, AsMuchIsReadAheadAsTheNodeHasMemoryFor) {
  for (const std::size_t ahead :
       {std::size_t{8} << 20, std::size_t{13} << 20, std::size_t{64} << 20}) {
    KafkaSettings settings;
    settings.brokers = "127.0.0.1:1";
    settings.read_ahead_max = ahead;
    auto conf = ClientConf::common(settings);
    ASSERT_TRUE(conf);
    ASSERT_TRUE(conf->for_consumer(settings));
    EXPECT_EQ(setting_of(*conf, "queued.max.messages.kbytes"), ahead >> 10);
    EXPECT_LE(setting_of(*conf, "fetch.message.max.bytes"), ahead);
    EXPECT_TRUE(std::move(*conf).make(RD_KAFKA_CONSUMER)) << "the settings contradict each other";
  }
}

TEST(KafkaFaults, AConnectionWithTheWrongSettingsIsRefused) {
  KafkaSettings settings;
  EXPECT_FALSE(KafkaConnection::open(settings));
  settings.brokers = "127.0.0.1:1";
  settings.security = {{"acks", "1"}};
  const auto connection = KafkaConnection::open(settings);
  ASSERT_FALSE(connection);
  EXPECT_NE(connection.error().message.find("\"acks\" cannot be set"), std::string::npos);
  settings.security = {{"security.protocol", "nonsense"}};
  EXPECT_FALSE(KafkaConnection::open(settings));
  settings.security = {{"security.protocol", "SASL_SSL"}};
  const auto kerberos = KafkaConnection::open(settings);
  ASSERT_FALSE(kerberos) << "the default mechanism is Kerberos";
  EXPECT_NE(kerberos.error().message.find("set sasl.mechanisms"), std::string::npos);
  settings.security = {{"security.protocol", "SASL_SSL"},
                       {"sasl.mechanisms", "SCRAM-SHA-512"},
                       {"sasl.username", "stanchion"},
                       {"sasl.password", "secret"},
                       {"enable.ssl.certificate.verification", "true"}};
  const auto secured = KafkaConnection::open(settings);
  EXPECT_TRUE(secured) << secured.error().message;
}

// As in a log that has lost its end: an entry stands where others were known to be. Nobody was told that
// it counts, and the other shards of the process have nothing to do with it.
TEST(KafkaFaults, AnEntryThatIsNotWhereItMustBeCostsTheShardNotTheProcess) {
  MockBrokers brokers;
  std::string warned;
  KafkaSettings settings = brokers.settings();
  settings.warn = [&](std::string_view text) { warned = text; };
  auto connection = KafkaConnection::open(settings);
  ASSERT_TRUE(connection) << connection.error().message;
  Ear ear;
  const auto writer = std::make_shared<KafkaWriter>(
      **connection, test_log(),
      KafkaWriter::Ownership{
          .writer = 7, .epoch = journal::Epoch(1), .claim = journal::LogOffset(1000)},
      KafkaJournalOptions{});
  writer->start(ear.events());
  writer->append("one");
  writer->flush();
  EXPECT_TRUE(ear.wait_superseded());
  EXPECT_EQ(writer->room(), Room::kNone);
  EXPECT_EQ(writer->durable(), Position(0));
  writer->detach();
  connection->reset();
  EXPECT_NE(warned.find("is not in Kafka's partition log[0]"), std::string::npos) << warned;
}

}  // namespace
}  // namespace stanchion::kafka
