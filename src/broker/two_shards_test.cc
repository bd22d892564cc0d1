// Two shards that hand messages to each other, of which one loses what is not durable.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "broker/shard_test_kit.h"

namespace stanchion::broker {
namespace {

QueueRef ref(const std::string& name) {
  return {"000000000000", "us-east-1", name};
}

// Dead-letter queues live in the second shard, all others in the first.
class TwoShards : public testing::Test, protected Peers {
 protected:
  void SetUp() override {
    for (std::uint32_t i = 0; i < 2; ++i) boot(i, std::make_unique<HeldJournal>());
    create("orders", "dead-of-orders");
    create("bills", "dead-of-bills");
    submit(1, CreateQueue{ref("dead-of-bills"), {}, {}});
  }
  void TearDown() override {
    for (auto& shard : shards_) shard.reset();
  }

  void boot(std::uint32_t i, std::unique_ptr<HeldJournal> journal) {
    journals_[i] = journal.get();
    shards_[i] = std::make_unique<Shard>(engine::Options{ShardIndex(i)}, std::move(journal),
                                         nullptr, KeeperOptions{}, clock_, entropy_);
    ASSERT_TRUE(shards_[i]->recover());
    shards_[i]->start(loop_, background_, *this);
    loop_.run();
  }
  // The process of the first shard dies and starts again.
  void crash() {
    auto left = journals_[0]->after_crash();
    shards_[0].reset();
    verdicts_.clear();
    boot(0, std::move(left));
  }

  std::optional<Reply> submit(std::uint32_t i, Request request,
                              const engine::Neighbours& neighbours = {}) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shards_[i]->submit(std::move(request), neighbours, Ticket(next_ticket_++),
                       [reply](Reply answer) { *reply = std::move(answer); });
    loop_.run();
    return *reply;
  }
  void create(const std::string& name, const std::string& dead_letter_queue) {
    engine::Neighbours neighbours;
    neighbours.target = engine::QueueSummary{ref(dead_letter_queue), false, {}};
    const std::string policy = fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})",
                                           ref(dead_letter_queue).arn());
    const auto created =
        submit(0, CreateQueue{ref(name), {{"RedrivePolicy", policy}}, {}}, neighbours);
    ASSERT_TRUE(created && *created);
  }
  std::optional<Reply> receive(const std::string& name) {
    ReceiveMessage request;
    request.queue = ref(name);
    request.visibility_timeout = 0;
    return submit(0, request);
  }
  // One message that was received once: the next receive makes it a dead letter.
  void send_and_receive(const std::string& name) {
    SendMessage send{ref(name), "me", {}};
    send.message.body = "of " + name;
    const auto sent = submit(0, send);
    ASSERT_TRUE(sent && *sent);
    ASSERT_EQ(bodies(receive(name)).size(), 1U);
  }
  static std::vector<std::string> bodies(const std::optional<Reply>& reply) {
    std::vector<std::string> out;
    if (reply && *reply)
      for (const auto& message : std::get<ReceiveMessageResult>(**reply).messages)
        out.emplace_back(message.content->body());
    return out;
  }

  ShardIndex shard_of(const QueueRef& queue) const override {
    return ShardIndex(queue.name.starts_with("dead") ? 1 : 0);
  }
  void deliver(ShardIndex to, Transfer transfer, SourceEpoch epoch) override {
    said_settled_.push_back(transfer.settled_below.value());
    last_ = {transfer, epoch};
    if (is_cut_) return;
    loop_.post([this, to, epoch, transfer = std::move(transfer)]() mutable {
      shards_[to.value()]->deliver(std::move(transfer), epoch);
    });
  }
  // Verdicts wait until they are told.
  void tell_verdict(ShardIndex, const Settlement& settlement) override {
    verdicts_.push_back(settlement);
  }
  void tell_verdicts() {
    for (const Settlement& settlement : std::exchange(verdicts_, {}))
      shards_[0]->take_verdict(settlement);
    loop_.run();
  }
  void fatal(ShardIndex, const Failure& failure) override { FAIL() << failure.message; }

  NumberClock clock_;
  CountingEntropy entropy_;
  ManualLoop loop_;
  ManualBackground background_;
  std::array<std::unique_ptr<Shard>, 2> shards_;
  std::array<HeldJournal*, 2> journals_{};
  std::vector<Settlement> verdicts_;
  std::pair<Transfer, SourceEpoch> last_;    // That was handed over.
  bool is_cut_ = false;                      // What is handed over gets lost.
  std::vector<std::uint64_t> said_settled_;  // By each that was handed over.
  std::uint64_t next_ticket_ = 1;
};

// The refusal was forgotten, and the target had been told that the transfer was settled: it took the
// message for one that it had accepted.
TEST_F(TwoShards, AMessageWhoseRefusalACrashForgetsIsNotTakenForAccepted) {
  send_and_receive("orders");
  send_and_receive("bills");
  receive("orders");  // The first transfer, to a queue that is not there.
  ASSERT_EQ(verdicts_.size(), 1U);
  ASSERT_EQ(verdicts_[0].verdict, TransferVerdict::kRefused);
  journals_[0]->held = true;
  receive("bills");  // The second transfer.
  const Position departed(journals_[0]->next_position().value() - 1);
  tell_verdicts();
  ASSERT_GT(journals_[0]->next_position(), departed.next()) << "the first one is back";
  journals_[0]->release_up_to(departed);
  loop_.run();
  ASSERT_EQ(verdicts_.size(), 1U);
  ASSERT_EQ(verdicts_[0].verdict, TransferVerdict::kAccepted) << "the second one has arrived";
  crash();
  tell_verdicts();
  EXPECT_EQ(bodies(receive("orders")), std::vector<std::string>{"of orders"});
}

// The same when it is handed over again because the target has another owner.
TEST_F(TwoShards, WhatIsHandedOverAgainSettlesNothingThatIsNotDurable) {
  send_and_receive("orders");
  send_and_receive("bills");
  receive("orders");
  is_cut_ = true;
  receive("bills");
  is_cut_ = false;
  journals_[0]->held = true;
  tell_verdicts();
  shards_[0]->hand_over_again();
  loop_.run();
  ASSERT_EQ(verdicts_.size(), 1U);
  ASSERT_EQ(verdicts_[0].verdict, TransferVerdict::kAccepted) << "the second one has arrived";
  crash();
  tell_verdicts();
  EXPECT_EQ(bodies(receive("orders")), std::vector<std::string>{"of orders"});
}

// What the target remembers of a source has a bound: it hears what is settled.
TEST_F(TwoShards, TheTargetHearsWhatIsDurablySettled) {
  for (int i = 0; i < 4; ++i) {
    send_and_receive("bills");
    receive("bills");
    tell_verdicts();
  }
  EXPECT_EQ(said_settled_, (std::vector<std::uint64_t>{1, 2, 3, 4}));
}

// The same on two nodes, each of which may lose its log to another.
class TwoOwners : public TwoShards {
 protected:
  static constexpr journal::Epoch kOwned{5};

  void SetUp() override {
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto journal = std::make_unique<HeldJournal>();
      journal->owned = kOwned;
      boot(i, std::move(journal));
    }
    create("orders", "dead-of-orders");
    create("bills", "dead-of-bills");
    submit(1, CreateQueue{ref("dead-of-bills"), {}, {}});
  }

  void let_pass(Duration time) {
    clock_.waited += time;
    loop_.ring_all();
  }
  std::size_t handed_over() const { return said_settled_.size(); }
  std::int64_t dead_letters(const std::string& name) const {
    return shards_[1]->engine().find(ref(name))->counts().visible;
  }
  // An earlier owner of the first shard hands over late what the present one has handed over last.
  void deliver_late() {
    Transfer late = last_.first;
    late.attempt = (last_.second.value() - 1) << 24 | 1;
    late.opens_attempt = true;
    shards_[1]->deliver(late, SourceEpoch(last_.second.value() - 1));
    loop_.run();
  }
};

TEST_F(TwoOwners, AVerdictThatGotLostIsToldAgain) {
  send_and_receive("bills");
  receive("bills");
  ASSERT_EQ(verdicts_.size(), 1U);
  verdicts_.clear();
  let_pass(std::chrono::milliseconds(2999));
  EXPECT_TRUE(verdicts_.empty());
  let_pass(std::chrono::milliseconds(1));
  ASSERT_EQ(verdicts_.size(), 1U);
  EXPECT_EQ(verdicts_[0].verdict, TransferVerdict::kAccepted);
  tell_verdicts();
  EXPECT_EQ(dead_letters("dead-of-bills"), 1);
  const std::size_t before = handed_over();
  for (int i = 0; i < 100; ++i) let_pass(std::chrono::seconds(10));
  EXPECT_EQ(handed_over(), before) << "it is settled";
}

TEST_F(TwoOwners, WhatGetsLostIsHandedOverAgainLessAndLessOften) {
  send_and_receive("bills");
  is_cut_ = true;
  receive("bills");
  std::vector<int> at;
  for (int second = 1; second <= 300; ++second) {
    const std::size_t before = handed_over();
    let_pass(std::chrono::seconds(1));
    if (handed_over() > before) at.push_back(second);
  }
  EXPECT_EQ(at, (std::vector<int>{3, 9, 21, 45, 93, 153, 213, 273}));
  is_cut_ = false;
  let_pass(std::chrono::seconds(60));
  tell_verdicts();
  EXPECT_EQ(dead_letters("dead-of-bills"), 1);
  is_cut_ = true;
  send_and_receive("bills");
  receive("bills");
  const std::size_t before = handed_over();
  let_pass(std::chrono::seconds(3));
  EXPECT_GT(handed_over(), before) << "the next one does not wait so long";
}

TEST_F(TwoOwners, OthersThatAreSettledDoNotPutOffWhatGotLost) {
  send_and_receive("bills");
  is_cut_ = true;
  receive("bills");
  is_cut_ = false;
  for (int i = 0; i < 2; ++i) {
    let_pass(std::chrono::seconds(1));
    send_and_receive("bills");
    receive("bills");
    tell_verdicts();
  }
  let_pass(std::chrono::seconds(1));
  tell_verdicts();
  EXPECT_EQ(dead_letters("dead-of-bills"), 3);
}

TEST_F(TwoOwners, AnEarlierOwnerDoesNotDisplaceTheLaterOne) {
  send_and_receive("bills");
  send_and_receive("bills");
  receive("bills");
  tell_verdicts();
  deliver_late();
  EXPECT_TRUE(verdicts_.empty()) << "nobody is there to be told";
  receive("bills");
  tell_verdicts();
  EXPECT_EQ(dead_letters("dead-of-bills"), 2);
}

TEST_F(TwoOwners, AMessageThatCameBackIsNotTakenFromAnEarlierOwner) {
  send_and_receive("orders");
  receive("orders");  // To a queue that is not there.
  ASSERT_EQ(verdicts_.size(), 1U);
  ASSERT_EQ(verdicts_[0].verdict, TransferVerdict::kRefused);
  tell_verdicts();
  ASSERT_TRUE(submit(1, CreateQueue{ref("dead-of-orders"), {}, {}}).value());
  deliver_late();
  EXPECT_EQ(dead_letters("dead-of-orders"), 0) << "it is in two places";
}

// The next owner has handed it over, too: the target may have it by now.
TEST_F(TwoOwners, ARefusalThatAnEarlierOwnerWasToldDoesNotCount) {
  send_and_receive("orders");
  receive("orders");  // To a queue that is not there.
  ASSERT_EQ(verdicts_.size(), 1U);
  const Settlement late = verdicts_[0];
  ASSERT_EQ(late.verdict, TransferVerdict::kRefused);
  auto log = journals_[0]->after_crash();
  log->owned = kOwned.next();
  shards_[0].reset();
  is_cut_ = true;
  boot(0, std::move(log));
  is_cut_ = false;
  shards_[0]->take_verdict(late);
  loop_.run();
  EXPECT_TRUE(bodies(receive("orders")).empty()) << "it is in two places";
}

// A release that says no epoch has attempts in no order: the last one counts, as it always did.
TEST_F(TwoOwners, AnOwnerOfAnEarlierReleaseIsBelieved) {
  send_and_receive("bills");
  is_cut_ = true;
  receive("bills");
  Transfer other = last_.first;
  other.attempt = 7;
  shards_[1]->deliver(other, SourceEpoch());
  loop_.run();
  EXPECT_EQ(dead_letters("dead-of-bills"), 1);
  other.attempt = 3;
  other.number = other.number.next();
  shards_[1]->deliver(other, SourceEpoch());
  loop_.run();
  EXPECT_EQ(dead_letters("dead-of-bills"), 2);
  other.number = other.number.next();
  shards_[1]->deliver(other, last_.second);
  loop_.run();
  EXPECT_EQ(dead_letters("dead-of-bills"), 3);
}

// It may be replaced, and the one behind it may have got the message back.
TEST_F(TwoOwners, WhoCannotProveThatItIsTheOwnerHandsOverNothingAgain) {
  send_and_receive("bills");
  is_cut_ = true;
  receive("bills");
  const std::size_t before = handed_over();
  journals_[0]->held = true;
  shards_[0]->hand_over_again();
  let_pass(std::chrono::seconds(100));
  EXPECT_EQ(handed_over(), before);
  journals_[0]->release();
  loop_.run();
  EXPECT_EQ(handed_over(), before + 1) << "once, however often it was due";
  journals_[0]->held = true;
  shards_[0]->hand_over_again();
  journals_[0]->supersede();
  loop_.run();
  journals_[0]->release();
  let_pass(std::chrono::seconds(100));
  EXPECT_EQ(handed_over(), before + 1);
}

}  // namespace
}  // namespace stanchion::broker
