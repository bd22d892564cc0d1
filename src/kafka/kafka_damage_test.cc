// What becomes of a shard of whose log a byte has changed where Kafka keeps it, with librdkafka itself.
// damaged_batch_test.cc has every byte.
#include <gtest/gtest.h>

#include <string>

#include "kafka/batch_test_kit.h"
#include "kafka/kafka_shared_journal.h"
#include "kafka/test_support.h"

namespace stanchion::kafka {
namespace {

using journal::Epoch;
using journal::LogEntryKind;
using Progress = journal::SharedJournal::Progress;

constexpr std::chrono::milliseconds kSoon(1);
constexpr std::chrono::milliseconds kLook(10);

std::string changed(std::string batch, std::size_t at, int flip) {
  batch[at] = static_cast<char>(batch[at] ^ flip);
  return batch;
}

class KafkaDamageTest : public testing::Test {
 protected:
  KafkaDamageTest() : connection_(connect(settings(kTestPatience))) {}

  // As a node reads the logs of shards.
  KafkaSettings settings(std::chrono::milliseconds silent_after) const {
    KafkaSettings settings = brokers_.settings();
    settings.verifies_batches = false;
    settings.silent_after = silent_after;
    return settings;
  }

  void append(const std::string& batch) const { brokers_.produce(batch); }
  void append_claim() {
    append(batch_of(
        0, {journal::LogEntryBuilder().finish(
               LogEntryKind::kClaim, Epoch(1), Position(1), std::nullopt,
               {.fleet = kTestFleet, .shard = ShardIndex(0), .node = 1, .writer = 99}, 1)}));
  }
  std::string good() const { return batch_of(1, {entry_bytes(Epoch(1), Position(1), "a record")}); }

  static std::unique_ptr<KafkaSharedJournal> journal_of(KafkaConnection& connection) {
    static os::SystemEntropy entropy;
    return std::make_unique<KafkaSharedJournal>(connection, test_log(), entropy,
                                                KafkaJournalOptions{});
  }

  // Reads until `done` or a failure: why. Who knows how the log begins also looks for silence.
  std::string read(KafkaSharedJournal& journal, const std::function<bool(Progress)>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto progress = journal.read(1 << 20, [&](Position, std::string_view) {
        ++records_;
        return Status();
      });
      if (!progress) return progress.error().message;
      if (done(*progress)) return "";
      if (journal.next_offset() > journal::LogOffset()) journal.notice_silence();
      if (*progress == Progress::kWaiting) wait_a_moment();
    }
    return "nothing happens";
  }
  std::string why_given_up() {
    const auto journal = journal_of(*connection_);
    journal->follow(Position(1), std::nullopt, [] {});
    return read(*journal, [](Progress) { return false; });
  }
  void be_impatient() { connection_ = connect(settings(kSoon)); }

  std::unique_ptr<KafkaSharedJournal> owner() {
    auto journal = journal_of(*connection_);
    journal->follow(Position(1), std::nullopt, [] {});
    EXPECT_EQ(read(*journal, [](Progress progress) { return progress == Progress::kWaiting; }), "");
    journal->claim();
    EXPECT_EQ(read(*journal, [](Progress progress) { return progress == Progress::kOwned; }), "");
    journal->start(ear_.events());
    return journal;
  }

  void wait_a_moment() {
    std::unique_lock lock(mutex_);
    moment_.wait_for(lock, kLook);
  }

  MockBrokers brokers_;
  std::unique_ptr<KafkaConnection> connection_;
  Ear ear_;
  std::size_t records_ = 0;

 private:
  std::mutex mutex_;
  std::condition_variable moment_;
};

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(KafkaDamageTest, WhatHasNotChangedIsRead) {
  append_claim();
  append(good());
  const auto journal = journal_of(*connection_);
  journal->follow(Position(1), std::nullopt, [] {});
  EXPECT_EQ(read(*journal, [&](Progress) { return records_ == 1; }), "");
}

TEST_F(KafkaDamageTest, ABatchThatIsPassedOverWithoutAWordGivesTheShardUp) {
  append_claim();
  constexpr int kControl = 32;
  append(changed(good(), kAttributesAt + 1, kControl));
  be_impatient();
  expect_in(why_given_up(), "goes on at offset 1, but nothing can be read there");
  EXPECT_EQ(records_, 0U);
}

TEST_F(KafkaDamageTest, SoDoesABatchThatSeemsToBeLonger) {
  append_claim();
  append(changed(good(), kSizeAt + 2, 1));
  be_impatient();
  expect_in(why_given_up(), "goes on at offset 1, but nothing can be read there");
}

TEST_F(KafkaDamageTest, AChangedSizeOfAnEntryIsADamagedEntry) {
  append_claim();
  const std::string batch = good();
  const std::size_t size_at = batch.find(journal::kLogEntryMagic) - 2;
  append(changed(batch, size_at, 2));
  expect_in(why_given_up(), "the entry at offset 1 of Kafka's partition log[0] ");
}

// The client then goes on where the log does not go.
TEST_F(KafkaDamageTest, AChangedCountOfOffsetsGivesTheShardUp) {
  append_claim();
  append(changed(good(), kLastOffsetAt + 3, 2));
  be_impatient();
  expect_in(why_given_up(), "cannot be read further than offset 2");
}

TEST_F(KafkaDamageTest, AnEntryThatIsMissingAtTheEndIsNoticedByWhoFollows) {
  append_claim();
  append(batch_of(1, {entry_bytes(Epoch(1), Position(1), "a record")}, 1));
  expect_in(why_given_up(), "the entry at offset 2 of Kafka's partition log[0] is missing");
}

TEST_F(KafkaDamageTest, AnEntryThatIsMissingBeforeTheNextOneIsNoticedByWhoFollows) {
  append_claim();
  append(batch_of(1, {entry_bytes(Epoch(1), Position(1), "a record")}, 1));
  append(batch_of(3, {entry_bytes(Epoch(1), Position(2), "two")}));
  expect_in(why_given_up(), "the entry at offset 2 of Kafka's partition log[0] is missing");
}

TEST_F(KafkaDamageTest, AnOwnerThatMissesAnOffsetBeforeItsEntryGivesTheLogUp) {
  const auto journal = owner();
  append(batch_of(1, {"hello, who is there?"}, 1));
  journal->append("lost");
  journal->flush();
  EXPECT_TRUE(ear_.wait_superseded());
  EXPECT_EQ(ear_.durable(), Position());
}

TEST_F(KafkaDamageTest, AnOwnerToWhomNothingIsShownBeforeItsEntryGivesTheLogUp) {
  be_impatient();
  const auto journal = owner();
  append(changed(batch_of(1, {"hello, who is there?"}), kSizeAt + 2, 1));
  journal->append("lost");
  journal->flush();
  const auto deadline = std::chrono::steady_clock::now() + kTestPatience;
  while (journal->room() != journal::Room::kNone && std::chrono::steady_clock::now() < deadline) {
    journal->notice_silence();
    wait_a_moment();
  }
  EXPECT_TRUE(ear_.wait_superseded());
  EXPECT_EQ(ear_.durable(), Position());
}

TEST_F(KafkaDamageTest, ABrokerThatCannotReadItsOwnFileForLongGivesTheShardUp) {
  append_claim();
  be_impatient();
  for (int i = 0; i < 100; ++i) brokers_.refuse_fetch(RD_KAFKA_RESP_ERR_INVALID_MSG);
  expect_in(why_given_up(), "the broker that leads it finds its own copy damaged");
}

TEST_F(KafkaDamageTest, ABrokerThatCannotReadItsOwnFileForAMomentIsWaitedFor) {
  append_claim();
  append(good());
  for (int i = 0; i < 3; ++i) brokers_.refuse_fetch(RD_KAFKA_RESP_ERR_INVALID_MSG);
  const auto journal = journal_of(*connection_);
  journal->follow(Position(1), std::nullopt, [] {});
  EXPECT_EQ(read(*journal, [&](Progress) { return records_ == 1; }), "");
}

}  // namespace
}  // namespace stanchion::kafka
