// Receives wait while answers under way, or messages that were chosen from among others, take too
// much memory.
#include "broker/answer_room.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/keeper_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class AnswerRoomTest : public KeeperTest {
 protected:
  // There is room for one answer.
  void start_with_three_messages() {
    start(1'000'000);
    shard->limit_answers(room_);
    for (const char* body : {"a", "b", "c"}) send(kOrders, body);
  }
  // An answer that does not reach its connection for the time being.
  std::optional<AnswerRoom::Claim> take_one() {
    const Answer first = receive(kOrders);
    EXPECT_EQ(body_of(first), "a");
    return room_->claim(**first);
  }

  const std::shared_ptr<AnswerRoom> room_ = std::make_shared<AnswerRoom>(1);
};

TEST_F(AnswerRoomTest, WhoeverWaitsIsToldOnceWhenThereIsRoom) {
  start_with_three_messages();
  EXPECT_EQ(room_->claimed(), 0U);
  auto claim = take_one();
  EXPECT_TRUE(room_->is_full());
  int told = 0;
  room_->wait(this, loop, [&] { ++told; });
  loop.run();
  EXPECT_EQ(told, 0);
  claim.reset();
  EXPECT_FALSE(room_->is_full());
  loop.run();
  EXPECT_EQ(told, 1);
  room_->wait(this, loop, [&] { ++told; });
  loop.run();
  EXPECT_EQ(told, 2) << "there was room already";
}

TEST_F(AnswerRoomTest, WhileSomebodyWaitsNobodyElseTakesTheRoomThatIsLeft) {
  start_with_three_messages();
  const Answer answer = receive(kOrders);
  const AnswerRoom::Claim one = room_->claim(**answer);
  const auto room = std::make_shared<AnswerRoom>(10 * room_->claimed());
  std::vector<AnswerRoom::Claim> claims;
  claims.reserve(10);
  for (int i = 0; i < 10; ++i) claims.push_back(room->claim(**answer));
  room->wait(this, loop, [] {});
  claims.pop_back();
  EXPECT_TRUE(room->is_full()) << "a tenth is free, and somebody waits";
  room->wait_no_longer(this);
  EXPECT_FALSE(room->is_full());
  room->wait(this, loop, [] {});
  claims.pop_back();
  EXPECT_FALSE(room->is_full()) << "who waited was told";
}

TEST_F(AnswerRoomTest, WhoeverWaitsNoLongerIsNotTold) {
  start_with_three_messages();
  auto claim = take_one();
  room_->wait(this, loop, [] { FAIL(); });
  room_->wait_no_longer(this);
  claim.reset();
  loop.run();
}

TEST_F(AnswerRoomTest, AReceiveTakesNothingWhileThereIsNoRoomForItsAnswer) {
  start_with_three_messages();
  auto claim = take_one();
  const Answer second = receive(kOrders);
  const Answer third = receive(kOrders);
  EXPECT_FALSE(*second);
  EXPECT_EQ(shard->requests_waiting(), 2U);
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 2, .in_flight = 1}));
  EXPECT_TRUE(was_accepted(send(kOrders, "d"))) << "others go on";
  claim.reset();
  loop.run();
  EXPECT_EQ(body_of(second), "b");
  EXPECT_EQ(body_of(third), "c");
  EXPECT_EQ(room_->claimed(), 0U);
}

// When there is room, the first that wait take it again, and the others have to hear of the next.
TEST_F(AnswerRoomTest, ThoseThatFoundNoRoomTheSecondTimeAreToldAgain) {
  start_with_three_messages();
  auto claim = take_one();
  std::vector<AnswerRoom::Claim> under_way;
  std::vector<std::string> bodies;
  for (int i = 0; i < 2; ++i) {
    ReceiveMessage request;
    request.queue = kOrders;
    shard->submit(request, {}, Ticket(next_ticket++), [&](Reply reply) {
      bodies.emplace_back(std::get<ReceiveMessageResult>(*reply).messages[0].content->body());
      under_way.push_back(room_->claim(reply));
    });
  }
  loop.run();
  EXPECT_EQ(bodies.size(), 0U);
  claim.reset();
  loop.run();
  EXPECT_EQ(bodies, std::vector<std::string>{"b"});
  under_way.clear();
  loop.run();
  EXPECT_EQ(bodies, (std::vector<std::string>{"b", "c"}));
}

TEST_F(AnswerRoomTest, AReceiveThatWaitsTooLongForRoomIsRefusedAndTakesNothing) {
  start_with_three_messages();
  auto claim = take_one();
  const Answer second = receive(kOrders);
  clock.at += limits::kRoomWaitMax;
  loop.ring();
  ASSERT_TRUE(*second && !**second);
  EXPECT_EQ((*second)->error().code, ErrorCode::kServiceUnavailable);
  EXPECT_NE((*second)->error().message.find("limits.memory"), std::string::npos);
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 2, .in_flight = 1}));
}

TEST_F(AnswerRoomTest, ACancelledReceiveTakesNothingWhenThereIsRoom) {
  start_with_three_messages();
  auto claim = take_one();
  const Ticket ticket(next_ticket);
  receive(kOrders);
  shard->cancel(ticket);
  EXPECT_EQ(shard->requests_waiting(), 0U);
  claim.reset();
  loop.run();
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 2, .in_flight = 1}));
}

TEST_F(AnswerRoomTest, APollIsServedWhenThereIsRoom) {
  start_with_three_messages();
  const Answer poll = receive(kBills, 20);
  ASSERT_EQ(shard->parked_polls(), 1U);
  auto claim = take_one();
  send(kBills, "late");
  EXPECT_EQ(shard->parked_polls(), 1U);
  EXPECT_EQ(counts(kBills), (engine::Counts{.visible = 1}));
  claim.reset();
  loop.run();
  EXPECT_EQ(body_of(poll), "late");
}

TEST_F(AnswerRoomTest, AReceiveTakesNoMoreBytesThanItMay) {
  engine_options.memory.receive_bytes = 1'500;
  start(1'000'000);
  for (int i = 0; i < 3; ++i) send(kOrders, std::string(1'000, 'x'));
  ReceiveMessage request;
  request.queue = kOrders;
  request.max_number_of_messages = 10;
  std::vector<std::size_t> received;
  for (int i = 0; i < 2; ++i) {
    const Answer answer = submit(request);
    received.push_back(std::get<ReceiveMessageResult>(***answer).messages.size());
  }
  EXPECT_EQ(received, (std::vector<std::size_t>{2, 1}));
}

class ChosenApart : public KeeperTest {
 protected:
  static constexpr std::size_t kMemory = 4 << 20;

  // Ten megabytes on disk, and the positions of some, each in a chunk of its own.
  void start_with_backlog() {
    start(kMemory);
    for (int i = 0; i < 100; ++i) {
      send(kOrders, std::string(100'000, 'x'));
      settle();
    }
    std::optional<std::string> token;
    std::size_t number = 0;
    do {
      const Answer page = submit(StanchionPeek{kOrders, {}, {}, {}, 100, token});
      settle();
      const auto& shown = std::get<StanchionPeekResult>(***page);
      for (const PeekedMessage& message : shown.messages)
        if (number++ % 4 == 0) positions_.push_back(message.position);
      token = shown.next_token;
    } while (token);
    ASSERT_EQ(number, 100U);
  }
  Answer choose(const std::string& position) {
    ReceiveMessage request;
    request.queue = kOrders;
    request.positions = {position};
    return submit(request);
  }

  std::vector<std::string> positions_;
};

TEST_F(ChosenApart, CheckpointsLetTheMessagesAroundThemLeaveMemory) {
  start_with_backlog();
  for (const std::string& position : positions_) {
    const Answer chosen = choose(position);
    settle();
    ASSERT_TRUE(was_accepted(chosen));
    ASSERT_LE(shard->engine().message_bytes(), 2 * kMemory);
  }
  EXPECT_EQ(counts(kOrders).in_flight, positions_.size());
}

TEST_F(ChosenApart, WaitWhileTheMessagesAroundOthersFillMemory) {
  start_with_backlog();
  Answer chosen;
  for (const std::string& position : positions_) {
    chosen = choose(position);
    read();
    if (shard->requests_waiting() > 0) break;
    ASSERT_TRUE(was_accepted(chosen));
  }
  ASSERT_FALSE(*chosen) << "memory is full";
  EXPECT_LE(shard->engine().message_bytes(), 2 * kMemory);
  settle();
  EXPECT_TRUE(was_accepted(chosen)) << "a checkpoint was made";
}

}  // namespace
}  // namespace stanchion::broker
