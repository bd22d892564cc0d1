// Receives that meet more dead letters than one decision moves, and the verdicts about them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "broker/shard_test_kit.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

class DeadLetters : public testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Reply>>;
  static constexpr std::size_t kAtATime = 2;
  static constexpr std::size_t kPoison = 7;

  void SetUp() override {
    ASSERT_TRUE(shard_.recover());
    shard_.start(loop_, background_, peers_);
    loop_.run();
    submit(CreateQueue{kDead, {}, {}});
    submit(CreateQueue{kOrders, {}, {}});
    for (std::size_t i = 0; i < kPoison; ++i) send("poison");
    ReceiveMessage all = receive_of(0);
    all.max_number_of_messages = 10;
    all.visibility_timeout = 30;
    ASSERT_EQ(bodies(submit(all)).size(), kPoison);
    engine::Neighbours neighbours;
    neighbours.target = engine::QueueSummary{kDead, false, {}};
    const std::string policy =
        fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})", kDead.arn());
    const Answer set = submit(SetQueueAttributes{kOrders, {{"RedrivePolicy", policy}}}, neighbours);
    ASSERT_TRUE(*set && **set);
  }

  // It is executed, and nothing that follows.
  Answer ask(Request request, const engine::Neighbours& neighbours = {}) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shard_.submit(std::move(request), neighbours, Ticket(next_ticket_++),
                  [reply](Reply answer) { *reply = std::move(answer); });
    return reply;
  }
  Answer submit(Request request, const engine::Neighbours& neighbours = {}) {
    Answer reply = ask(std::move(request), neighbours);
    loop_.run();
    return reply;
  }
  // While polls are parked, a send waits for a moment.
  void send(const std::string& body, std::int64_t delay = 0) {
    SendMessage request{kOrders, "me", {}};
    request.message.body = body;
    request.message.delay_seconds = delay;
    const Answer sent = submit(request);
    loop_.wait_a_moment();
    ASSERT_TRUE(*sent && **sent);
  }
  static ReceiveMessage receive_of(std::int64_t wait) {
    ReceiveMessage request;
    request.queue = kOrders;
    request.wait_time_seconds = wait;
    return request;
  }
  void make_visible() { clock_.at += std::chrono::seconds(31); }
  static std::vector<std::string> bodies(const Answer& answer) {
    std::vector<std::string> out;
    EXPECT_TRUE(*answer) << "there is no answer";
    if (*answer && **answer)
      for (const auto& message : std::get<ReceiveMessageResult>(***answer).messages)
        out.emplace_back(message.content->body());
    return out;
  }
  std::size_t under_way() const { return shard_.engine().transfers_from(TransferNo(1)).size(); }

  static inline const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
  static inline const QueueRef kDead{"000000000000", "us-east-1", "dead"};

  NumberClock clock_;
  CountingEntropy entropy_;
  NotedPeers peers_;
  ManualLoop loop_;
  ManualBackground background_;
  std::unique_ptr<HeldJournal> given_ = std::make_unique<HeldJournal>();
  HeldJournal& journal_ = *given_;
  Shard shard_{{.decision_messages = kAtATime}, std::move(given_), nullptr, {}, clock_, entropy_};
  std::uint64_t next_ticket_ = 1;
};

const std::vector<std::string> kSound{"sound"};

TEST_F(DeadLetters, AShortPollGetsWhatStandsBehindThemWhileOthersAreServed) {
  make_visible();
  send("sound");
  const Answer poll = ask(receive_of(0));
  EXPECT_EQ(under_way(), kAtATime) << "one decision moves no more";
  const Answer other = ask(ListQueues{kOrders.account, kOrders.region, "", {}, {}});
  EXPECT_EQ(under_way(), kAtATime);
  loop_.run();
  EXPECT_TRUE(*other);
  EXPECT_EQ(bodies(poll), kSound);
  EXPECT_EQ(under_way(), kPoison);
}

TEST_F(DeadLetters, AShortPollComesBackEmptyWhenTheyAreGoneAndNothingElseIsThere) {
  make_visible();
  EXPECT_TRUE(bodies(submit(receive_of(0))).empty());
  EXPECT_EQ(under_way(), kPoison);
}

// They could not arrive anywhere, and a queue that holds nothing else could never be drained.
TEST_F(DeadLetters, WhileTheDiskIsFullTheyAreHandedOutOnceMore) {
  make_visible();
  journal_.room_left = journal::Room::kReserveOnly;
  ReceiveMessage all = receive_of(0);
  all.max_number_of_messages = 10;
  all.visibility_timeout = 30;
  EXPECT_EQ(bodies(submit(all)).size(), kPoison);
  EXPECT_EQ(under_way(), 0U);
  journal_.room_left = journal::Room::kPlenty;
  make_visible();
  EXPECT_TRUE(bodies(submit(all)).empty());
  EXPECT_EQ(under_way(), kPoison);
}

TEST_F(DeadLetters, WhileTheDiskIsFullAParkedReceiveGetsThem) {
  journal_.room_left = journal::Room::kReserveOnly;
  const Answer poll = submit(receive_of(20));
  ASSERT_FALSE(*poll) << "they are in flight";
  clock_.at += std::chrono::seconds(11);
  loop_.ring();
  EXPECT_FALSE(*poll);
  make_visible();
  loop_.ring();
  EXPECT_EQ(bodies(poll), std::vector<std::string>{"poison"});
}

TEST_F(DeadLetters, ALongPollWaitsBehindThem) {
  make_visible();
  const Answer poll = submit(receive_of(20));
  EXPECT_FALSE(*poll);
  EXPECT_EQ(under_way(), kPoison);
  clock_.at += std::chrono::seconds(19);
  send("sound");
  EXPECT_EQ(bodies(poll), kSound);
}

TEST_F(DeadLetters, APollThatIsParkedWhenTheyBecomeVisibleGetsWhatStandsBehindThem) {
  const Answer poll = submit(receive_of(20));
  const Answer second = submit(receive_of(20));
  ASSERT_FALSE(*poll);
  send("sound", 31);  // It stands behind them, and is ready when they are.
  clock_.at += std::chrono::seconds(31);
  clock_.waited -= std::chrono::seconds(30);  // Time was moved; the polls have not waited for long.
  shard_.tick();
  EXPECT_EQ(under_way(), kAtATime);
  EXPECT_FALSE(*poll);
  loop_.run();
  EXPECT_EQ(under_way(), kPoison);
  EXPECT_EQ(bodies(poll), kSound);
  EXPECT_FALSE(*second) << "nothing is left for it";
}

TEST_F(DeadLetters, APollWhoseTimeIsOverWhileTheyAreMovedGetsWhatStandsBehindThem) {
  const Answer poll = submit(receive_of(20));
  send("sound", 31);
  clock_.at += std::chrono::seconds(31);
  clock_.waited -= std::chrono::seconds(30);
  shard_.tick();
  EXPECT_EQ(under_way(), kAtATime);
  clock_.waited += std::chrono::seconds(20);
  shard_.tick();
  EXPECT_FALSE(*poll);
  loop_.run();
  EXPECT_EQ(bodies(poll), kSound);
}

TEST_F(DeadLetters, ReceivesThatComeMeanwhileAreServedInTheirOrder) {
  make_visible();
  send("sound");
  const Answer first = ask(receive_of(0));
  const Answer second = ask(receive_of(0));
  EXPECT_EQ(under_way(), kAtATime) << "the second waits behind the first";
  loop_.run();
  EXPECT_EQ(bodies(first), kSound);
  EXPECT_TRUE(bodies(second).empty());
}

TEST_F(DeadLetters, AReceiveThatIsCancelledMeanwhileTakesNothing) {
  make_visible();
  send("sound");
  const Ticket ticket(next_ticket_);
  const Answer poll = ask(receive_of(0));
  shard_.cancel(ticket);
  loop_.run();
  EXPECT_FALSE(*poll);
  EXPECT_EQ(bodies(submit(receive_of(0))), kSound);
}

TEST_F(DeadLetters, AReceiveWhoseQueueIsDeletedMeanwhileIsToldSo) {
  make_visible();
  const Answer poll = ask(receive_of(20));
  ask(DeleteQueue{kOrders});
  loop_.run();
  ASSERT_TRUE(*poll);
  EXPECT_EQ((*poll)->error().code, ErrorCode::kQueueDoesNotExist);
}

TEST_F(DeadLetters, AReceiveThatWouldWaitTooLongForThemComesBackEmpty) {
  make_visible();
  send("sound");
  const Answer poll = ask(receive_of(0));
  clock_.at += limits::kRoomWaitMax;
  shard_.tick();
  loop_.run();
  EXPECT_TRUE(bodies(poll).empty());
  EXPECT_EQ(bodies(submit(receive_of(0))), kSound) << "the next one goes on where it was";
}

TEST_F(DeadLetters, AStopAnswersWhoWaitsForThem) {
  make_visible();
  const Answer poll = ask(receive_of(20));
  shard_.drain();
  loop_.run();
  EXPECT_TRUE(bodies(poll).empty());
}

TEST_F(DeadLetters, AFullDiskStopsThemAndTheyGoOnWhenItHasRoom) {
  const Answer poll = submit(receive_of(20));
  clock_.at += std::chrono::seconds(31);
  clock_.waited -= std::chrono::seconds(30);
  shard_.tick();
  EXPECT_EQ(under_way(), kAtATime);
  journal_.room_left = journal::Room::kNone;
  loop_.run();
  EXPECT_EQ(under_way(), kAtATime);
  journal_.room_left = journal::Room::kPlenty;
  send("sound");
  EXPECT_EQ(bodies(poll), kSound);
  EXPECT_EQ(under_way(), kPoison);
}

TEST_F(DeadLetters, VerdictsAreSettledByAFewEach) {
  make_visible();
  submit(receive_of(0));
  ASSERT_EQ(under_way(), kPoison);
  for (std::uint64_t number = 1; number <= kPoison; ++number)
    shard_.take_verdict({TransferNo(number), 0,
                         number % 2 == 0 ? TransferVerdict::kRefused : TransferVerdict::kAccepted});
  const Position before = journal_.next_position();
  loop_.run();
  EXPECT_EQ(under_way(), 0U);
  EXPECT_EQ(journal_.next_position().value() - before.value(), (kPoison + 1) / kAtATime);
  EXPECT_EQ(shard_.engine().find(kOrders)->counts().visible, kPoison / 2)
      << "refused ones are back";
}

}  // namespace
}  // namespace stanchion::broker
