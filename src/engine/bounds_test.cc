// What one decision may do at most (E7), and that what is left is done by those that follow.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "engine/engine_test_kit.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class Bounds : public testing::Test {
 protected:
  // Decisions are made one by one.
  struct Decided {
    Reply reply;
    bool unfinished = false;
  };
  Decided decide(const Request& request) {
    engine_->advance(now_);
    record_.start(now_);
    Decision decision{now_, Random({7, ++decisions_}), record_};
    Neighbours neighbours;
    if (const Needs needs = needs_of(request); needs.any()) engine_->contribute(needs, neighbours);
    Reply reply = engine_->execute(request, neighbours, decision);
    EXPECT_LE(record_.messages(), engine_->record_messages_max());
    EXPECT_LT(record_.bytes().size(), limits::kRecordSizeMax / 4);
    return {std::move(reply), decision.unfinished};
  }
  void move_messages() {
    engine_->advance(now_);
    record_.start(now_);
    Decision decision{now_, Random({7, ++decisions_}), record_};
    engine_->move_messages(decision);
    EXPECT_LE(record_.messages(), engine_->record_messages_max());
  }

  void begin(std::size_t decision_messages = limits::kDecisionMessagesMax) {
    // Without a bound on what is under way, because nothing arrives.
    engine_ = std::make_unique<Engine>(Options{.memory = {.in_transit = std::size_t{1} << 40},
                                               .decision_messages = decision_messages});
    record_.start(now_);
    Decision decision{now_, Random({7, ++decisions_}), record_};
    engine_->found(MacKey{1}, decision);
  }

  // Names of the greatest length, so that records are as large as they can be.
  static QueueRef ref(std::string name) {
    name.resize(limits::kQueueNameSizeMax, 'x');
    return {"000000000000", std::string(64, 'r'), name};
  }
  static StringMap dead_letters_to(const std::string& name) {
    return {{"RedrivePolicy", fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})",
                                          ref(name).arn())}};
  }

  void send(const std::string& queue, std::size_t count, const std::string& body) {
    for (std::size_t sent = 0; sent < count;) {
      SendMessageBatch batch{ref(queue), "me", {}};
      for (; sent < count && batch.entries.size() < limits::kBatchEntriesMax; ++sent) {
        auto& entry = batch.entries.emplace_back();
        entry.id = fmt::format("{}", batch.entries.size());
        entry.message.body = body;
      }
      ASSERT_TRUE(decide(batch).reply);
    }
  }
  ReceiveMessage receive(const std::string& queue, std::int64_t most = 10) {
    ReceiveMessage request;
    request.queue = ref(queue);
    request.max_number_of_messages = most;
    request.visibility_timeout = 0;
    return request;
  }
  // Messages that were received once before their queue got a dead-letter queue.
  void make_dead_letters(const std::string& queue, std::size_t count) {
    ASSERT_TRUE(decide(CreateQueue{ref(queue), {}, {}}).reply);
    ASSERT_TRUE(decide(CreateQueue{ref("dead"), {}, {}}).reply);
    send(queue, count, "poison");
    for (std::size_t got = 0; got < count;) {
      ReceiveMessage request = receive(queue);
      request.visibility_timeout = 30;
      const Reply reply = decide(request).reply;
      ASSERT_TRUE(reply);
      got += std::get<ReceiveMessageResult>(*reply).messages.size();
    }
    now_ += 31s;
    ASSERT_TRUE(decide(SetQueueAttributes{ref(queue), dead_letters_to("dead")}).reply);
  }
  // Messages that ever left; none of them arrives here.
  std::size_t under_way() const { return engine_->next_transfer().value() - 1; }

  std::unique_ptr<Engine> engine_;
  RecordWriter record_{Instant()};
  Instant now_ = from_millis(1'700'000'000'000);
  std::uint64_t decisions_ = 0;
};

// 45,000 of them were one record, which no journal takes.
TEST_F(Bounds, AReceiveMovesDeadLettersBySeveralDecisionsAndGetsWhatStandsBehindThem) {
  begin();
  constexpr std::size_t kDead = 45'000;
  make_dead_letters("orders", kDead);
  send("orders", 1, "sound");
  std::size_t decisions = 1;
  Decided decided = decide(receive("orders"));
  for (; decided.unfinished; decided = decide(receive("orders"))) {
    ASSERT_TRUE(decided.reply);
    EXPECT_TRUE(std::get<ReceiveMessageResult>(*decided.reply).messages.empty());
    EXPECT_EQ(under_way(), decisions * limits::kDecisionMessagesMax);
    ++decisions;
  }
  EXPECT_EQ(under_way(), kDead);
  EXPECT_EQ(decisions, kDead / limits::kDecisionMessagesMax);
  const auto& messages = std::get<ReceiveMessageResult>(*decided.reply).messages;
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].content->body(), "sound");
  engine_->check_invariants();
}

TEST_F(Bounds, AReceiveThatHasGotSomethingComesBackWithThat) {
  begin(3);
  ASSERT_TRUE(decide(CreateQueue{ref("orders"), {}, {}}).reply);
  SendMessage first{ref("orders"), "me", {}};
  first.message.body = "sound";
  first.message.delay_seconds = 60;
  ASSERT_TRUE(decide(first).reply);
  make_dead_letters("orders", 5);
  now_ += 60s;
  const Decided decided = decide(receive("orders"));
  EXPECT_FALSE(decided.unfinished);
  EXPECT_EQ(std::get<ReceiveMessageResult>(*decided.reply).messages.size(), 1U);
  EXPECT_EQ(under_way(), 3U);
}

TEST_F(Bounds, MoveTasksTakeTurns) {
  begin(3);
  ASSERT_TRUE(decide(CreateQueue{ref("target"), {}, {}}).reply);
  for (const char* name : {"dead-1", "dead-2"}) {
    ASSERT_TRUE(decide(CreateQueue{ref(name), {}, {}}).reply);
    ASSERT_TRUE(
        decide(CreateQueue{ref(fmt::format("of-{}", name)), dead_letters_to(name), {}}).reply);
    send(name, 10, name);
    ASSERT_TRUE(decide(StartMessageMoveTask{ref(name).arn(), ref("target").arn(), {}}).reply);
  }
  std::map<std::string, std::size_t> went;
  for (int i = 0; i < 4; ++i) {
    EXPECT_LE(engine_->next_deadline(), now_) << "there is more to move";
    const TransferNo from = engine_->next_transfer();
    move_messages();
    for (const Transfer& transfer : engine_->transfers_from(from)) ++went[transfer.source_arn];
  }
  EXPECT_EQ(went[ref("dead-1").arn()], 6U);
  EXPECT_EQ(went[ref("dead-2").arn()], 6U);
  engine_->check_invariants();
}

TEST_F(Bounds, TasksThatEndTogetherEndByAFewEach) {
  begin(2);
  ASSERT_TRUE(decide(CreateQueue{ref("target"), {}, {}}).reply);
  for (int i = 0; i < 5; ++i) {
    const std::string name = fmt::format("dead-{}", i);
    ASSERT_TRUE(decide(CreateQueue{ref(name), {}, {}}).reply);
    ASSERT_TRUE(decide(CreateQueue{ref("of-" + name), dead_letters_to(name), {}}).reply);
    ASSERT_TRUE(decide(StartMessageMoveTask{ref(name).arn(), ref("target").arn(), {}}).reply);
  }
  int decisions = 0;
  for (; engine_->has_move_tasks(); ++decisions) {
    EXPECT_LE(engine_->next_deadline(), now_) << "some can end";
    move_messages();
  }
  EXPECT_EQ(decisions, 3);
}

// The keys of one request may be larger than a record.
TEST_F(Bounds, OnlyKeysOfTagsThatAQueueHasAreWritten) {
  begin();
  ASSERT_TRUE(decide(CreateQueue{ref("orders"), {}, {{"team", "a"}, {"stage", "b"}}}).reply);
  ASSERT_TRUE(
      decide(UntagQueue{ref("orders"), {"team", std::string(limits::kRecordSizeMax, 'k')}}).reply);
  EXPECT_EQ(engine_->find(ref("orders"))->tags, (StringMap{{"stage", "b"}}));
  ASSERT_TRUE(decide(UntagQueue{ref("orders"), {"nothing", "of", "these"}}).reply);
  EXPECT_TRUE(record_.empty());
}

}  // namespace
}  // namespace stanchion::engine
