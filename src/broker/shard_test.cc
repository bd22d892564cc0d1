// One shard with a loop that runs on demand, a clock that is a number, and a journal that is
// durable at once unless it is held.
#include "broker/shard.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "broker/shard_test_kit.h"
#include "model/limits.h"

namespace stanchion::broker {
namespace {

class ShardTest : public testing::Test {
 protected:
  void start() {
    ASSERT_TRUE(shard.recover());
    shard.start(loop, background, peers);
    loop.run();
  }

  std::shared_ptr<std::optional<Reply>> submit(Request request) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shard.submit(std::move(request), {}, Ticket(next_ticket++),
                 [reply](Reply answer) { *reply = std::move(answer); });
    loop.run();
    return reply;
  }

  Transfer dead_letter(Duration age) {
    Transfer transfer;
    transfer.source = ShardIndex(1);
    transfer.number = TransferNo(1);
    transfer.settled_below = TransferNo(1);
    transfer.opens_attempt = true;
    transfer.destination = kDead;
    transfer.source_arn = QueueRef{"000000000000", "us-east-1", "orders"}.arn();
    ContentParts parts{};
    parts.sent = clock.at - age;
    parts.body = "hello";
    transfer.content = Content::make(parts);
    transfer.receive_count = 1;
    transfer.first_received = clock.at - age;
    return transfer;
  }

  static inline const QueueRef kDead{"000000000000", "us-east-1", "dead"};

  NumberClock clock;
  CountingEntropy entropy;
  NotedPeers peers;
  ManualLoop loop;
  struct AtOnce final : Background {
    void run(Work, Task task) override { task(); }
  } background;
  std::unique_ptr<HeldJournal> given = std::make_unique<HeldJournal>();
  HeldJournal& journal = *given;
  Shard shard{{}, std::move(given), nullptr, {}, clock, entropy};
  std::uint64_t next_ticket = 1;
};

TEST_F(ShardTest, ATransferThatComesBeforeStartIsTakenUpByIt) {
  shard.deliver(dead_letter(Duration::zero()));
  start();
  const std::vector<NotedPeers::Verdict> told{
      {ShardIndex(1), TransferNo(1), TransferVerdict::kRefused}};
  EXPECT_EQ(peers.verdicts, told);
}

TEST_F(ShardTest, AJournalThatLacksARecordIsRefused) {
  for (int i = 0; i < 3; ++i) journal.append(RecordWriter(clock.at).bytes());
  for (const std::uint64_t lost : {1, 2, 3}) {
    journal.lost = Position(lost);
    EXPECT_FALSE(shard.recover()) << "without record " << lost;
  }
}

TEST_F(ShardTest, ADeadLetterTooOldForItsQueueIsNotHandedToAParkedPoll) {
  start();
  submit(CreateQueue{kDead, {{"MessageRetentionPeriod", "60"}}, {}});
  ReceiveMessage receive;
  receive.queue = kDead;
  receive.wait_time_seconds = 20;
  const auto reply = submit(receive);
  shard.deliver(dead_letter(std::chrono::seconds(61)));
  loop.run();
  EXPECT_FALSE(*reply) << "it was answered";
  EXPECT_EQ(shard.engine().find(kDead)->counts(), engine::Counts{});
}

TEST_F(ShardTest, ADeadLetterFromAClockThatIsAheadKeepsNoOtherMessageLonger) {
  start();
  submit(CreateQueue{kDead, {{"MessageRetentionPeriod", "60"}}, {}});
  shard.deliver(dead_letter(std::chrono::seconds(-30)));
  loop.run();
  SendMessage send{kDead, "me", {}};
  send.message.body = "after it";
  submit(send);
  ASSERT_EQ(shard.engine().find(kDead)->counts().visible, 2);
  clock.at += std::chrono::seconds(60);
  ReceiveMessage receive;
  receive.queue = kDead;
  const auto reply = submit(receive);
  ASSERT_TRUE(*reply && **reply);
  EXPECT_TRUE(std::get<ReceiveMessageResult>(***reply).messages.empty());
}

TEST_F(ShardTest, APollIsAnsweredBeforeTheSendThatEndsIt) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  std::vector<std::string> answered;
  const auto ask = [&](Request request, const std::string& name) {
    shard.submit(std::move(request), {}, Ticket(next_ticket++), [&answered, name](const Reply& r) {
      EXPECT_TRUE(r);
      answered.push_back(name);
    });
  };
  ReceiveMessage receive;
  receive.queue = kDead;
  receive.wait_time_seconds = 20;
  ask(receive, "poll");
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  ask(send, "send");
  EXPECT_TRUE(answered.empty()) << "nothing is durable yet";
  loop.run();
  EXPECT_EQ(answered, (std::vector<std::string>{"poll", "send"}));
}

// The permission, checked each time that it matters.
class RightsTest : public ShardTest {
 protected:
  void SetUp() override {
    start();
    submit(CreateQueue{kDead, {}, {}});
  }

  class Allowed final : public RequestGuard {
   public:
    explicit Allowed(const bool& allowed) : allowed_(allowed) {}
    std::optional<Error> check(const GuardedQueue* queue) override {
      EXPECT_EQ(queue->arn, kDead.arn());
      if (allowed_) return std::nullopt;
      return Error{ErrorCode::kAccessDenied, "no more"};
    }
    std::string pack() const override { return allowed_ ? "yes" : "no"; }

   private:
    const bool& allowed_;
  };

  std::shared_ptr<std::optional<Reply>> ask(Request request, const bool& allowed) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shard.submit(
        std::move(request), {}, Ticket(next_ticket++),
        [reply](Reply answer) { *reply = std::move(answer); }, std::make_unique<Allowed>(allowed));
    loop.run();
    return reply;
  }

  std::shared_ptr<std::optional<Reply>> poll(const bool& allowed) {
    ReceiveMessage receive;
    receive.queue = kDead;
    receive.wait_time_seconds = 20;
    return ask(receive, allowed);
  }

  std::shared_ptr<std::optional<Reply>> send(const bool& allowed) {
    SendMessage request{kDead, "me", {}};
    request.message.body = "hello";
    return ask(request, allowed);
  }

  bool always = true;
};

TEST_F(RightsTest, APollWhoseRightIsGoneGetsNoMessageAndTheNextOneDoes) {
  bool first_may = true;
  const auto first = poll(first_may), second = poll(always);
  ASSERT_FALSE(*first || *second);
  first_may = false;
  EXPECT_TRUE(send(always)->value());
  ASSERT_TRUE(*first);
  EXPECT_EQ((*first)->error().code, ErrorCode::kAccessDenied);
  ASSERT_TRUE(*second);
  EXPECT_EQ(std::get<ReceiveMessageResult>(***second).messages.size(), 1u);
  EXPECT_EQ(shard.parked_polls(), 0u);
}

TEST_F(RightsTest, AMessageForWhichNobodyHasTheRightStays) {
  bool may = true;
  const auto reply = poll(may);
  may = false;
  const auto sent = send(always);
  loop.wait_a_moment();  // Nobody is served, so the send is not committed at once.
  EXPECT_TRUE(sent->value());
  EXPECT_FALSE(reply->value());
  EXPECT_EQ(shard.engine().find(kDead)->counts().visible, 1u);
  // A later receive gets it.
  EXPECT_EQ(std::get<ReceiveMessageResult>(***poll(always)).messages.size(), 1u);
}

TEST_F(RightsTest, ASendThatWaitedForRoomIsAskedForItsRightAgain) {
  bool may = true;
  journal.room_left = journal::Room::kBusy;
  const auto reply = send(may);
  ASSERT_FALSE(*reply);
  may = false;
  journal.room_left = journal::Room::kPlenty;
  submit(TagQueue{kDead, {{"a", "b"}}});
  ASSERT_TRUE(*reply);
  EXPECT_FALSE(**reply);
  EXPECT_EQ(shard.engine().find(kDead)->counts().visible, 0u);
}

TEST_F(ShardTest, AnAccountHasOnlySoManyQueues) {
  ASSERT_TRUE(shard.recover());
  QueueQuota quota({.per_account = 2});
  quota.add(kDead.account);  // On another shard.
  shard.count_queues(quota);
  shard.start(loop, background, peers);
  loop.run();
  const auto named = [](std::string account, std::string name) {
    return QueueRef{std::move(account), "us-east-1", std::move(name)};
  };
  const auto outcome = [&](const QueueRef& queue) {
    const Reply reply = submit(CreateQueue{queue, {}, {}})->value();
    return reply ? std::nullopt : std::optional(reply.error().code);
  };
  EXPECT_EQ(outcome(kDead), std::nullopt);
  EXPECT_EQ(outcome(kDead), std::nullopt) << "it is there already";
  EXPECT_EQ(outcome(named(kDead.account, "more")), ErrorCode::kOverLimit);
  EXPECT_EQ(outcome(named("111111111111", "more")), std::nullopt);
  // A queue that is not created, or does not exist to be deleted, changes nothing.
  EXPECT_EQ(outcome(named("111111111111", "not a name")), ErrorCode::kInvalidParameterValue);
  EXPECT_FALSE(submit(DeleteQueue{named(kDead.account, "none")})->value());
  EXPECT_EQ(outcome(named(kDead.account, "more")), ErrorCode::kOverLimit);
  EXPECT_EQ(outcome(named("111111111111", "another")), std::nullopt);
  EXPECT_EQ(outcome(named("111111111111", "third")), ErrorCode::kOverLimit);
  EXPECT_TRUE(submit(DeleteQueue{kDead})->value());
  EXPECT_EQ(outcome(named(kDead.account, "more")), std::nullopt);
}

TEST_F(ShardTest, TheQueuesOfAnAccountTakeOnlySoManyBytes) {
  ASSERT_TRUE(shard.recover());
  QueueQuota quota({.bytes_per_account = 10'000});
  shard.count_queues(quota);
  shard.start(loop, background, peers);
  loop.run();
  const auto outcome = [&](Request request) {
    const Reply reply = submit(std::move(request))->value();
    return reply ? std::nullopt : std::optional(reply.error().code);
  };
  const QueueRef more{kDead.account, "us-east-1", "more"};
  const std::string large(256, 'x');
  StringMap tags;
  for (int i = 0; i < 20; ++i) tags.emplace("tag-" + std::to_string(i), large);
  EXPECT_EQ(outcome(CreateQueue{kDead, {}, {}}), std::nullopt);
  EXPECT_EQ(outcome(TagQueue{kDead, tags}), std::nullopt);
  const std::uint64_t left = quota.bytes_left(kDead.account);
  EXPECT_LT(left, 2'000U);
  EXPECT_EQ(outcome(TagQueue{kDead, tags}), std::nullopt) << "these take nothing more";
  EXPECT_EQ(quota.bytes_left(kDead.account), left);
  EXPECT_EQ(outcome(CreateQueue{more, {}, {{"a", large}, {"b", large}}}), ErrorCode::kOverLimit);
  EXPECT_EQ(outcome(SetQueueAttributes{
                kDead,
                {{"Policy", R"({"Version":"2012-10-17","Id":")" + std::string(2'000, 'x') +
                                R"(","Statement":[]})"}}}),
            ErrorCode::kOverLimit);
  EXPECT_EQ(quota.bytes_left(kDead.account), left) << "what is refused takes nothing";
  EXPECT_EQ(outcome(CreateQueue{{"111111111111", "us-east-1", "more"}, {}, tags}), std::nullopt)
      << "another account";
  EXPECT_EQ(outcome(SetQueueAttributes{kDead, {{"DelaySeconds", "7"}}}), std::nullopt)
      << "it does not grow";
  UntagQueue untag{kDead, {}};
  for (const auto& [key, value] : tags) untag.tag_keys.push_back(key);
  EXPECT_EQ(outcome(untag), std::nullopt);
  EXPECT_EQ(outcome(CreateQueue{more, {}, {{"a", large}, {"b", large}}}), std::nullopt);
  EXPECT_EQ(outcome(DeleteQueue{more}), std::nullopt);
  EXPECT_EQ(outcome(DeleteQueue{kDead}), std::nullopt);
  EXPECT_EQ(quota.bytes_left(kDead.account), 10'000U) << "all of it was given back";
}

TEST_F(ShardTest, TheQueuesOfAllAccountsTogetherTakeOnlySoManyBytes) {
  ASSERT_TRUE(shard.recover());
  QueueQuota quota({.bytes_per_account = 10'000, .bytes = 12'000});
  shard.count_queues(quota);
  shard.start(loop, background, peers);
  loop.run();
  const auto is_refused = [&](Request request) {
    const Reply reply = submit(std::move(request))->value();
    return !reply && reply.error().code == ErrorCode::kOverLimit;
  };
  const QueueRef other{"111111111111", "us-east-1", "other"};
  StringMap tags;
  for (int i = 0; i < 20; ++i) tags.emplace("tag-" + std::to_string(i), std::string(256, 'x'));
  EXPECT_FALSE(is_refused(CreateQueue{kDead, {}, tags}));
  EXPECT_TRUE(is_refused(CreateQueue{other, {}, tags}));
  EXPECT_FALSE(is_refused(CreateQueue{other, {}, {}}));
  EXPECT_FALSE(is_refused(DeleteQueue{kDead}));
  EXPECT_FALSE(is_refused(TagQueue{other, tags}));
}

TEST_F(ShardTest, QueuesBeyondTheirQuotaAreThereAfterAStartAndCanShrink) {
  RecordWriter record(clock.at);
  StringMap tags;
  for (int i = 0; i < 50; ++i) tags.emplace("tag-" + std::to_string(i), std::string(256, 'x'));
  record.add(QueueCreated{QueueId(1), kDead, {}, tags});
  journal.append(record.bytes());
  ASSERT_TRUE(shard.recover());
  QueueQuota quota({.per_account = 1, .bytes_per_account = 5'000});
  shard.count_queues(quota);
  shard.start(loop, background, peers);
  loop.run();
  EXPECT_EQ(quota.bytes_left(kDead.account), 0U);
  EXPECT_EQ(shard.engine().find(kDead)->tags, tags);
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  EXPECT_TRUE(submit(send)->value());
  EXPECT_FALSE(submit(TagQueue{kDead, {{"one more", ""}}})->value());
  EXPECT_TRUE(submit(UntagQueue{kDead, {"tag-1"}})->value());
  EXPECT_TRUE(submit(SetQueueAttributes{kDead, {{"DelaySeconds", "7"}}})->value());
  EXPECT_TRUE(submit(DeleteQueue{kDead})->value());
  EXPECT_EQ(quota.bytes_left(kDead.account), 5'000U);
}

// As on a standby, whose queues come and go by the records of another owner.
TEST_F(ShardTest, QueuesOfAFollowedShardCountAsLongAsItIsFollowed) {
  RecordWriter record(clock.at);
  record.add(QueueCreated{QueueId(1), kDead, {}, {}});
  record.add(QueueCreated{QueueId(2), {kDead.account, "us-east-1", "more"}, {}, {}});
  RecordWriter later(clock.at);
  later.add(QueueDeleted{QueueId(1)});
  ASSERT_TRUE(shard.load());
  QueueQuota quota({.per_account = 2, .bytes_per_account = 100'000});
  shard.count_queues(quota);
  ASSERT_TRUE(shard.apply(Position(1), record.bytes()));
  EXPECT_FALSE(quota.take(kDead.account));
  const std::uint64_t left = quota.bytes_left(kDead.account);
  ASSERT_TRUE(shard.apply(Position(2), later.bytes()));
  EXPECT_GT(quota.bytes_left(kDead.account), left);
  EXPECT_TRUE(quota.take(kDead.account));
  EXPECT_FALSE(quota.take(kDead.account));
  shard.uncount_queues();
  EXPECT_TRUE(quota.take(kDead.account)) << "the one that is left counts elsewhere";
  shard.uncount_queues();
}

// In a FIFO queue whose consumers wait for one of them, the call that unlocks the next message
// comes in a moment: sends meanwhile go to the disk together with it.
class RelayTest : public ShardTest {
 protected:
  void SetUp() override {
    start();
    const auto created = submit(
        CreateQueue{kLine, {{"FifoQueue", "true"}, {"ContentBasedDeduplication", "true"}}, {}});
    ASSERT_TRUE(**created) << (*created)->error().message;
    const auto sent = send("one");
    ASSERT_TRUE(**sent) << (*sent)->error().message;
    const auto received = receive(0);
    ASSERT_FALSE(std::get<ReceiveMessageResult>(***received).messages.empty());
    handle_ = std::get<ReceiveMessageResult>(***received).messages.front().receipt_handle;
    poll_ = receive(20);
    ASSERT_FALSE(*poll_);
  }

  std::shared_ptr<std::optional<Reply>> send(const std::string& body) {
    SendMessage request{kLine, "me", {}};
    request.message.body = body;
    request.message.group_id = "one";
    return submit(request);
  }

  std::shared_ptr<std::optional<Reply>> receive(std::int64_t wait) {
    ReceiveMessage request;
    request.queue = kLine;
    request.wait_time_seconds = wait;
    return submit(request);
  }

  static inline const QueueRef kLine{"000000000000", "us-east-1", "line.fifo"};
  std::string handle_;
  std::shared_ptr<std::optional<Reply>> poll_;
};

TEST_F(RelayTest, ASendWaitsAMomentForTheCallThatEndsAPoll) {
  const auto sent = send("two");
  EXPECT_FALSE(*sent);
  const auto deleted = submit(DeleteMessage{kLine, handle_});
  EXPECT_TRUE(*sent);
  EXPECT_TRUE(*deleted);
  EXPECT_EQ(std::get<ReceiveMessageResult>(***poll_).messages.front().content->body(), "two");
  EXPECT_EQ(loop.wait_a_moment(), 0U) << "nobody waits for it any more";
}

TEST_F(RelayTest, ASendWaitsNoLongerThanThat) {
  const auto first = send("two");
  const auto second = send("three");
  EXPECT_FALSE(*first);
  EXPECT_EQ(loop.wait_a_moment(), 1U) << "one for both";
  EXPECT_TRUE(*first);
  EXPECT_TRUE(*second);
}

TEST_F(RelayTest, WhatEndsAPollIsCommittedWhileOthersAreExecuted) {
  send("two");
  loop.wait_a_moment();
  const Position before = journal.durable();
  shard.submit(DeleteMessage{kLine, handle_}, {}, Ticket(100), [](Reply) {});
  EXPECT_GT(journal.durable(), before) << "the round has not ended";
}

TEST_F(RelayTest, ASendDuringACommitWaitsForTheCallThatComesAfterIt) {
  send("two");
  loop.wait_a_moment();
  journal.held = true;
  submit(DeleteMessage{kLine, handle_});
  receive(20);
  const auto sent = send("three");
  EXPECT_EQ(loop.wait_a_moment(), 0U) << "it does not wait for a moment that is not near";
  journal.release();
  loop.run();
  ASSERT_TRUE(*poll_);
  EXPECT_FALSE(*sent);
  submit(DeleteMessage{kLine,
                       std::get<ReceiveMessageResult>(***poll_).messages.front().receipt_handle});
  EXPECT_TRUE(*sent);
  EXPECT_EQ(loop.wait_a_moment(), 0U);
}

TEST_F(RelayTest, ASendDoesNotWaitBesideACallThatDoesNot) {
  const auto sent = send("two");
  EXPECT_FALSE(*sent);
  submit(CreateQueue{kDead, {}, {}});
  EXPECT_TRUE(*sent);
  EXPECT_EQ(loop.wait_a_moment(), 0U);
}

TEST_F(RelayTest, ManySendsDoNotWait) {
  std::vector<std::shared_ptr<std::optional<Reply>>> sent;
  while (sent.empty() || !*sent.front()) {
    sent.push_back(send(std::to_string(sent.size())));
    ASSERT_LT(sent.size(), 10U);
  }
  EXPECT_GT(sent.size(), 1U);
}

TEST_F(ShardTest, TheAlarmIsSetForAPollAfterTheClockWasMovedPastAnEarlierDeadline) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  ReceiveMessage receive;
  receive.queue = kDead;
  receive.wait_time_seconds = 20;
  const auto first = submit(receive);
  clock.at += std::chrono::hours(1);
  shard.tick();
  EXPECT_TRUE(*first) << "its wait is over";
  loop.alarm();
  receive.wait_time_seconds = 2;
  submit(receive);
  EXPECT_EQ(loop.alarm(), std::chrono::seconds(2));
}

TEST_F(ShardTest, TheAlarmIsNeverSetForLongBecauseAClockSetForwardDoesNotRing) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  loop.alarm();
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  send.message.delay_seconds = 900;
  submit(send);
  EXPECT_EQ(loop.alarm(), std::chrono::seconds(5));
}

TEST_F(ShardTest, APollEndsByTheSteadyClockHoweverSlowTimeIs) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  ReceiveMessage receive;
  receive.queue = kDead;
  receive.wait_time_seconds = 6;
  loop.alarm();
  const auto reply = submit(receive);
  EXPECT_EQ(loop.alarm(), std::chrono::seconds(5)) << "no alarm is set for longer";
  clock.waited += std::chrono::milliseconds(5'999);
  loop.ring();
  EXPECT_FALSE(*reply);
  EXPECT_EQ(loop.alarm(), Duration(1));
  clock.waited += Duration(1);
  loop.ring();
  ASSERT_TRUE(*reply);
  EXPECT_TRUE(std::get<ReceiveMessageResult>(***reply).messages.empty());
}

TEST_F(ShardTest, TimeThatRunsSlowerMakesNoPollWaitThatIsOverInTheEyesOfItsClient) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  ReceiveMessage receive;
  receive.queue = kDead;
  receive.wait_time_seconds = 1;
  const auto reply = submit(receive);
  clock.at += std::chrono::milliseconds(900);
  clock.waited += std::chrono::milliseconds(100);
  loop.ring();
  EXPECT_TRUE(*reply);
}

TEST_F(ShardTest, TheAlarmRingsInTimeWhileTimeHurries) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  loop.alarm();
  clock.hurries = true;
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  send.message.delay_seconds = 2;
  submit(send);
  EXPECT_EQ(loop.alarm(), Duration(2'000 - 2'000 / 101));
}

// As when a node takes over from one whose clock is ahead: the shard's time is that of the last record.
TEST_F(ShardTest, TheAlarmWaitsForAClockThatIsBehindTheShardsTime) {
  start();
  submit(CreateQueue{kDead, {}, {}});
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  send.message.delay_seconds = 2;
  submit(send);
  clock.at += Duration(1'999);
  loop.ring();
  EXPECT_EQ(loop.alarm(), Duration(1));
  clock.at -= Duration(400);
  clock.waited += Duration(400);
  loop.ring();
  EXPECT_EQ(loop.alarm(), Duration(401)) << "not a thousand times a second until it has caught up";
}

// A replay lets time pass before each record; so must the shard before each decision, or messages
// that become visible at the same instant would do so in another order.
TEST_F(ShardTest, WhatFallsDueAtTheInstantOfADecisionHappensBeforeTheNextOne) {
  start();
  const QueueRef queue{"000000000000", "us-east-1", "q.fifo"};
  submit(CreateQueue{queue, {{"FifoQueue", "true"}}, {}});
  for (const char* group : {"a", "b"}) {
    SendMessage send{queue, "me", {}};
    send.message.body = "hello";
    send.message.group_id = send.message.deduplication_id = group;
    submit(send);
  }
  ReceiveMessage receive;
  receive.queue = queue;
  receive.max_number_of_messages = 1;
  for (const int seconds : {30, 10}) {  // So that b is visible first.
    receive.visibility_timeout = seconds;
    submit(receive);
  }
  receive.visibility_timeout = 0;
  receive.wait_time_seconds = 20;
  const auto first = submit(receive);
  const auto second = submit(receive);
  clock.at += std::chrono::seconds(40);
  submit(GetQueueUrl{queue});
  ASSERT_TRUE(*first && *second);
  submit(GetQueueUrl{queue});
  EXPECT_EQ(shard.engine().find(queue)->line(), (std::vector<std::string>{"b", "a"}));
}

TEST_F(ShardTest, WhatTimeAloneDidIsRecordedBeforeAReplyShowsIt) {
  start();
  submit(CreateQueue{kDead, {{"MessageRetentionPeriod", "60"}}, {}});
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  submit(send);
  const Position before = journal.next_position();
  ASSERT_TRUE(*submit(GetQueueAttributes{kDead, {"All"}}));
  EXPECT_EQ(journal.next_position(), before) << "nothing has changed";

  clock.at += std::chrono::seconds(61);
  journal.held = true;
  const auto counts = submit(GetQueueAttributes{kDead, {"All"}});
  loop.run();
  EXPECT_FALSE(*counts) << "it says that the message has expired, and a crash could take that back";
  journal.release();
  loop.run();
  ASSERT_TRUE(*counts);
  EXPECT_EQ(std::get<QueueAttributesResult>(***counts).attributes.at("ApproximateNumberOfMessages"),
            "0");
  std::vector<Record> since;
  ASSERT_TRUE(journal.replay(before, [&](Position, std::string_view bytes) -> Status {
    since.push_back(parse_record(bytes).value());
    return {};
  }));
  ASSERT_EQ(since.size(), 1u);
  EXPECT_EQ(since[0].at, clock.at);
  EXPECT_TRUE(since[0].facts.empty());

  clock.at += std::chrono::seconds(61);
  ASSERT_TRUE(*submit(GetQueueAttributes{kDead, {"All"}})) << "there is nothing new to be recorded";
}

TEST_F(ShardTest, WhileTheDiskIsFullAReplyDoesNotWaitForARecordOfTheTime) {
  start();
  submit(CreateQueue{kDead, {{"MessageRetentionPeriod", "60"}}, {}});
  SendMessage send{kDead, "me", {}};
  send.message.body = "hello";
  submit(send);
  const Position before = journal.next_position();
  clock.at += std::chrono::seconds(61);
  journal.room_left = journal::Room::kNone;
  EXPECT_TRUE(*submit(GetQueueAttributes{kDead, {"All"}}));
  EXPECT_EQ(journal.next_position(), before);
}

}  // namespace
}  // namespace stanchion::broker
