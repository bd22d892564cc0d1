// What waits for a log that does not answer: nobody waits for ever, and it takes only so much
// memory.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/shard.h"
#include "broker/shard_test_kit.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

constexpr Patience kPatience{.time = 30s, .bytes = 64 << 10};
const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
const QueueRef kLine{"000000000000", "us-east-1", "line.fifo"};

// What a client has got, and how often.
struct Got {
  std::vector<Reply> replies;

  bool is_answered() const { return !replies.empty(); }
  bool is(ErrorCode code) const {
    return replies.size() == 1 && !replies[0] && replies[0].error().code == code;
  }
  bool is_good() const { return replies.size() == 1 && replies[0]; }
};

class PatienceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(shard.recover());
    shard.start(loop, background, peers);
    loop.run();
    ASSERT_TRUE(submit(CreateQueue{kOrders, {}, {}})->is_good());
  }

  std::shared_ptr<Got> submit(Request request) {
    auto got = std::make_shared<Got>();
    shard.submit(std::move(request), {}, Ticket(next_ticket++),
                 [got](Reply reply) { got->replies.push_back(std::move(reply)); });
    loop.run();
    return got;
  }
  std::shared_ptr<Got> send(std::string body) {
    SendMessage send{kOrders, "me", {}};
    send.message.body = std::move(body);
    return submit(send);
  }
  std::shared_ptr<Got> receive(std::int64_t wait = 0) {
    ReceiveMessage receive;
    receive.queue = kOrders;
    receive.wait_time_seconds = wait;
    return submit(receive);
  }

  void let_pass(Duration time) {
    clock.waited += time;
    loop.ring_all();
  }
  // Time passes as the shard has set its timers; returns when somebody was answered.
  Duration wait_for(const Got& got) {
    Duration waited{};
    while (!got.is_answered() && waited < 10min) {
      const auto next = loop.alarm();
      if (!next) return Duration::max();
      clock.waited += *next;
      waited += *next;
      loop.ring();
    }
    return waited;
  }

  NumberClock clock;
  CountingEntropy entropy;
  NotedPeers peers;
  ManualLoop loop;
  ManualBackground background;
  std::unique_ptr<HeldJournal> given = std::make_unique<HeldJournal>();
  HeldJournal& journal = *given;
  Shard shard{{}, std::move(given), nullptr, {}, clock, entropy, kPatience};
  std::uint64_t next_ticket = 1;
};

TEST_F(PatienceTest, ASendThatTheLogDoesNotConfirmIsAnsweredInTime) {
  journal.held = true;
  const auto sent = send("hello");
  EXPECT_FALSE(sent->is_answered());
  EXPECT_EQ(wait_for(*sent), kPatience.time);
  EXPECT_TRUE(sent->is(ErrorCode::kInternalFailure));
  EXPECT_NE(sent->replies[0].error().message.find("fleet.write_timeout"), std::string::npos);
}

TEST_F(PatienceTest, WhatWasAnsweredLateHappensAllTheSameAndIsNotAnsweredTwice) {
  journal.held = true;
  const auto sent = send("hello");
  let_pass(kPatience.time);
  ASSERT_TRUE(sent->is(ErrorCode::kInternalFailure));
  journal.release();
  loop.run();
  EXPECT_EQ(sent->replies.size(), 1u);
  const auto received = receive();
  ASSERT_TRUE(received->is_good());
  const auto& result = std::get<ReceiveMessageResult>(*received->replies[0]);
  ASSERT_EQ(result.messages.size(), 1u);
  EXPECT_EQ(result.messages[0].content->body(), "hello");
}

TEST_F(PatienceTest, ARepeatedSendIsTheSameMessageAndWaitsForTheFirst) {
  ASSERT_TRUE(submit(CreateQueue{kLine, {{"FifoQueue", "true"}}, {}})->is_good());
  SendMessage send{kLine, "me", {}};
  send.message.body = "hello";
  send.message.group_id = "g";
  send.message.deduplication_id = "once";
  journal.held = true;
  const auto first = submit(send);
  let_pass(kPatience.time);
  ASSERT_TRUE(first->is(ErrorCode::kInternalFailure));
  const auto second = submit(send);
  EXPECT_FALSE(second->is_answered()) << "the first is not durable";
  journal.release();
  loop.run();
  EXPECT_TRUE(second->is_good());
  EXPECT_EQ(shard.engine().find(kLine)->counts().visible, 1);
}

TEST_F(PatienceTest, WhoOnlyLooksLearnsThatNothingWasChanged) {
  journal.held = true;
  send("hello");
  const auto looked = submit(GetQueueAttributes{kOrders, {"All"}});
  DeleteMessage of_nobody{kOrders, "no receipt"};
  const auto refused = submit(of_nobody);
  EXPECT_FALSE(looked->is_answered());
  let_pass(kPatience.time);
  EXPECT_TRUE(looked->is(ErrorCode::kServiceUnavailable));
  EXPECT_TRUE(refused->is(ErrorCode::kServiceUnavailable));
}

TEST_F(PatienceTest, APollThatGotAMessageIsAnsweredInTime) {
  const auto poll = receive(20);
  journal.held = true;
  const auto sent = send("hello");
  let_pass(kPatience.time);
  EXPECT_TRUE(poll->is(ErrorCode::kInternalFailure));
  EXPECT_TRUE(sent->is(ErrorCode::kInternalFailure));
}

TEST_F(PatienceTest, EachWaitsForItsOwnTime) {
  journal.held = true;
  const auto first = send("one");
  let_pass(10s);
  const auto second = send("two");
  let_pass(20s);
  EXPECT_TRUE(first->is(ErrorCode::kInternalFailure));
  EXPECT_FALSE(second->is_answered());
  EXPECT_EQ(wait_for(*second), 10s);
  EXPECT_TRUE(second->is(ErrorCode::kInternalFailure));
}

// What no client waits for is done however long it takes: the source of a transfer must be told.
TEST_F(PatienceTest, AVerdictWaitsForAsLongAsItTakes) {
  journal.held = true;
  const auto before = send("one");
  Transfer transfer;
  transfer.source = ShardIndex(1);
  transfer.number = TransferNo(1);
  transfer.settled_below = TransferNo(1);
  transfer.opens_attempt = true;
  transfer.destination = kOrders;
  transfer.source_arn = kLine.arn();
  ContentParts parts{};
  parts.sent = clock.at;
  parts.body = "moved";
  transfer.content = Content::make(parts);
  transfer.receive_count = 1;
  transfer.first_received = clock.at;
  shard.deliver(transfer);
  const auto after = send("two");
  let_pass(10 * kPatience.time);
  EXPECT_TRUE(before->is(ErrorCode::kInternalFailure));
  EXPECT_TRUE(after->is(ErrorCode::kInternalFailure));
  EXPECT_TRUE(peers.verdicts.empty());
  journal.release();
  loop.run();
  EXPECT_EQ(peers.verdicts.size(), 1u);
}

// As on a machine that was asleep.
TEST_F(PatienceTest, WhatIsDurableByNowIsNotAnsweredAsUnknown) {
  journal.held = true;
  const auto sent = send("hello");
  journal.release();  // And the loop does not run.
  clock.waited += 10 * kPatience.time;
  shard.tick();
  EXPECT_TRUE(sent->is_good());
}

TEST_F(PatienceTest, RepliesThatWaitTakeOnlySoMuchMemory) {
  constexpr std::size_t kBody = 20 << 10;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(std::string(kBody, 'x'))->is_good());
  journal.held = true;
  std::vector<std::shared_ptr<Got>> received;
  for (std::size_t i = 0; i * kBody < kPatience.bytes; ++i) received.push_back(receive());
  const Position decided = journal.next_position();
  const auto beyond = receive();
  const auto sent = send("hello");
  const auto looked = submit(GetQueueAttributes{kOrders, {"All"}});
  EXPECT_EQ(journal.next_position(), decided) << "nothing more was decided";
  EXPECT_EQ(wait_for(*beyond), limits::kRoomWaitMax);
  EXPECT_TRUE(beyond->is(ErrorCode::kServiceUnavailable));
  EXPECT_TRUE(sent->is(ErrorCode::kServiceUnavailable));
  EXPECT_TRUE(looked->is(ErrorCode::kServiceUnavailable));
  EXPECT_FALSE(received[0]->is_answered());
  // When those have gone, there is room.
  const auto in_time = send("again");
  journal.release();
  loop.run();
  for (const auto& one : received) EXPECT_TRUE(one->is_good());
  EXPECT_TRUE(in_time->is_good());
}

TEST_F(PatienceTest, RepliesThatWereGivenUpTakeNoMemory) {
  constexpr std::size_t kBody = 20 << 10;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(send(std::string(kBody, 'x'))->is_good());
  journal.held = true;
  for (std::size_t i = 0; i * kBody < kPatience.bytes; ++i) receive();
  let_pass(kPatience.time - 1ms);
  const Position decided = journal.next_position();
  const auto waits = send("hello");
  EXPECT_EQ(journal.next_position(), decided);
  let_pass(1ms);
  EXPECT_EQ(journal.next_position(), decided.next()) << "it was decided";
  EXPECT_FALSE(waits->is_answered());
}

TEST_F(PatienceTest, RequestsThatWaitForRoomTakeOnlySoMuchMemory) {
  constexpr std::size_t kBody = 20 << 10;
  journal.room_left = journal::Room::kBusy;
  std::vector<std::shared_ptr<Got>> waiting;
  for (std::size_t i = 0; (i + 1) * kBody < kPatience.bytes; ++i)
    waiting.push_back(send(std::string(kBody, 'x')));
  EXPECT_TRUE(send(std::string(kBody, 'x'))->is(ErrorCode::kServiceUnavailable));
  for (const auto& one : waiting) EXPECT_FALSE(one->is_answered());
  journal.room_left = journal::Room::kPlenty;
  let_pass(1s);
  EXPECT_TRUE(send(std::string(kBody, 'x'))->is_good());
}

}  // namespace
}  // namespace stanchion::broker
