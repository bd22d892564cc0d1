// A shard with a store: checkpoints, reads and evictions happen when the test lets them.
#include "broker/keeper.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "broker/shard_test_kit.h"
#include "store/memory_store.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

// Fails as it is told to.
class MoodyStore final : public store::MemoryStore {
 public:
  Status commit(const Batch& batch) override {
    ++commits;
    if (fails_with != 0) return fail("it does not want to", fails_with);
    return MemoryStore::commit(batch);
  }

  int fails_with = 0;
  int commits = 0;
};

class KeeperTest : public testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<Reply>>;

  static inline const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
  static inline const QueueRef kBills{"000000000000", "us-east-1", "bills"};
  static inline const QueueRef kSteps{"000000000000", "us-east-1", "steps.fifo"};

  // With room for nothing, whatever a checkpoint has written leaves memory.
  void start(std::size_t memory = 1) {
    auto owned = std::make_unique<HeldJournal>();
    journal = owned.get();
    shard = std::make_unique<Shard>(engine::Options{}, std::move(owned), store,
                                    KeeperOptions{.memory = memory}, clock, entropy);
    ASSERT_TRUE(shard->recover());
    shard->start(loop, background, peers);
    loop.run();
    submit(CreateQueue{kOrders, {}, {}});
    submit(CreateQueue{kBills, {}, {}});
    settle();
  }

  Answer submit(Request request) {
    auto reply = std::make_shared<std::optional<Reply>>();
    shard->submit(std::move(request), {}, Ticket(next_ticket++),
                  [reply](Reply answer) { *reply = std::move(answer); });
    loop.run();
    return reply;
  }
  Answer send(const QueueRef& queue, std::string body) {
    SendMessage request{queue, "me", {}};
    request.message.body = std::move(body);
    return submit(request);
  }
  void send_cold(const QueueRef& queue, std::string body) {
    send(queue, std::move(body));
    settle();
    ASSERT_EQ(shard->engine().resident_bytes(), 0U);
  }
  Answer receive(const QueueRef& queue, int wait_seconds = 0) {
    ReceiveMessage request;
    request.queue = queue;
    request.wait_time_seconds = wait_seconds;
    return submit(request);
  }

  // Messages of one group, received together; their contents have left memory, but for one at most.
  ReceiveMessage receive_steps_of_1000_bytes(std::size_t count) {
    submit(CreateQueue{kSteps, {{"FifoQueue", "true"}}, {}});
    for (std::size_t i = 0; i < count; ++i) {
      SendMessage request{kSteps, "me", {}};
      request.message.body = std::string(1'000, 'x');
      request.message.group_id = "group";
      request.message.deduplication_id = std::to_string(i);
      EXPECT_TRUE(was_accepted(submit(request)));
    }
    ReceiveMessage attempt;
    attempt.queue = kSteps;
    attempt.max_number_of_messages = 10;
    attempt.attempt_id = "attempt";
    submit(attempt);
    settle();
    EXPECT_EQ(counts(kSteps), (engine::Counts{.in_flight = count}));
    EXPECT_LE(shard->engine().resident_bytes(), 2'000U);
    return attempt;
  }

  // The body of the one message that was received; nothing if there was no answer yet.
  static std::optional<std::string> body_of(const Answer& answer) {
    if (!*answer) return std::nullopt;
    if (!**answer) return "refused: " + (*answer)->error().message;
    const auto& messages = std::get<ReceiveMessageResult>(***answer).messages;
    return messages.size() == 1 ? std::string(messages[0].content->body()) : "not one message";
  }
  static bool was_accepted(const Answer& answer) { return *answer && (*answer)->has_value(); }

  void commit() {
    background.work(Work::kCheckpoint);
    loop.run();
  }
  void read() {
    background.work(Work::kRead);
    loop.run();
  }
  void settle() {
    loop.run();
    while (background.waiting(Work::kCheckpoint) + background.waiting(Work::kRead) > 0) {
      commit();
      read();
    }
  }
  engine::Counts counts(const QueueRef& queue) { return shard->engine().find(queue)->counts(); }

  NumberClock clock;
  CountingEntropy entropy;
  NotedPeers peers;
  ManualLoop loop;
  ManualBackground background;
  std::shared_ptr<MoodyStore> store = std::make_shared<MoodyStore>();
  HeldJournal* journal = nullptr;
  std::unique_ptr<Shard> shard;
  std::uint64_t next_ticket = 1;
};

TEST_F(KeeperTest, ACheckpointIsCommittedOnceItsRecordsAreDurable) {
  start();
  const int before = store->commits;
  journal->held = true;
  send(kOrders, "hello");
  commit();
  EXPECT_EQ(store->commits, before) << "its record may still be lost";
  journal->held = false;
  journal->flush();
  loop.run();
  commit();
  EXPECT_EQ(store->commits, before + 1);
}

TEST_F(KeeperTest, TheJournalIsTrimmedBehindWhatTheCommittedCheckpointContains) {
  start();
  const Position before = journal->trimmed;
  send(kOrders, "hello");
  EXPECT_EQ(journal->trimmed, before);
  const Position sent = journal->next_position();
  submit(TagQueue{kOrders, {{"a", "b"}}});
  commit();
  EXPECT_EQ(journal->trimmed, sent) << "the tag came after the checkpoint was made";
}

TEST_F(KeeperTest, AReceiveThatNeedsAColdChunkWaitsWhileAnotherQueueIsServed) {
  start();
  send_cold(kOrders, "cold");
  send(kBills, "warm");
  const Answer cold = receive(kOrders);
  EXPECT_EQ(body_of(receive(kBills)), "warm");
  EXPECT_EQ(body_of(cold), std::nullopt) << "never empty while a message waits";
  EXPECT_EQ(shard->requests_blocked(), 1U);
  read();
  EXPECT_EQ(body_of(cold), "cold");
  EXPECT_EQ(shard->requests_blocked(), 0U);
}

TEST_F(KeeperTest, AReadDoesNotWaitForACheckpoint) {
  start();
  send_cold(kOrders, "cold");
  const std::uint64_t checkpoints = shard->keeper().checkpoints();
  send(kBills, "warm");
  ASSERT_EQ(background.waiting(Work::kCheckpoint), 1U);
  const Answer cold = receive(kOrders);
  read();
  EXPECT_EQ(body_of(cold), "cold");
  EXPECT_EQ(shard->keeper().checkpoints(), checkpoints);
}

TEST_F(KeeperTest, WhoWaitsForTheStoreIsServedInOrderOfArrival) {
  start();
  send_cold(kOrders, "1");
  send_cold(kOrders, "2");
  send_cold(kOrders, "3");
  const std::vector<Answer> answers{receive(kOrders), receive(kOrders), receive(kOrders)};
  EXPECT_EQ(shard->requests_blocked(), 3U);
  read();
  EXPECT_EQ(body_of(answers[0]), "1");
  EXPECT_EQ(body_of(answers[1]), "2");
  EXPECT_EQ(body_of(answers[2]), "3");
}

TEST_F(KeeperTest, AReadThatACheckpointOvertookIsMadeAgain) {
  start();
  send_cold(kOrders, "cold");
  send(kBills, "warm");
  const Answer cold = receive(kOrders);
  background.work(Work::kRead);        // It has read,
  background.work(Work::kCheckpoint);  // and this ends before the loop hears of it.
  const std::uint64_t reads = shard->keeper().reads();
  loop.run();
  settle();
  EXPECT_EQ(body_of(cold), "cold");
  EXPECT_GE(shard->keeper().reads(), reads + 1);
}

TEST_F(KeeperTest, APollWhoseTimeIsOverIsNotAnsweredEmptyWhileItsMessageIsBeingRead) {
  start();
  send(kOrders, "hello");
  EXPECT_EQ(body_of(receive(kOrders)), "hello");
  settle();
  ASSERT_EQ(shard->engine().find(kOrders)->find(Seq(1))->content, nullptr);
  clock.at += 25s;
  const Answer poll = receive(kOrders, 10);
  EXPECT_EQ(shard->parked_polls(), 1U);
  clock.at += 5s;
  shard->tick();  // It is visible again, and asked for.
  clock.at += 5s;
  shard->tick();
  loop.run();
  EXPECT_EQ(shard->parked_polls(), 0U);
  EXPECT_EQ(body_of(poll), std::nullopt);
  read();
  EXPECT_EQ(body_of(poll), "hello");
}

TEST_F(KeeperTest, APollWhoseTimeIsOverWhileItsMessageIsReadDoesNotWaitAgain) {
  start();
  send(kOrders, "hello");
  EXPECT_EQ(body_of(receive(kOrders)), "hello");
  settle();
  clock.at += 25s;
  const Answer poll = receive(kOrders, 10);
  clock.at += 5s;
  shard->tick();  // It is visible again, and asked for.
  clock.at += 5s;
  shard->tick();
  loop.run();
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  settle();
  EXPECT_EQ(shard->parked_polls(), 0U);
  EXPECT_EQ(body_of(poll), "not one message") << "its ten seconds were over";
}

TEST_F(KeeperTest, ARepeatedAttemptGetsAllItsMessagesThoughThereIsNoRoomForThem) {
  start(2'000);
  const ReceiveMessage attempt = receive_steps_of_1000_bytes(3);
  const Answer again = submit(attempt);
  EXPECT_FALSE(*again);
  // Each comes by itself, and what nobody waits for leaves memory before the next.
  for (std::size_t reads = background.waiting(Work::kRead); reads > 0; --reads) {
    ASSERT_TRUE(background.work_once(Work::kRead));
    loop.run();
  }
  ASSERT_TRUE(was_accepted(again));
  EXPECT_EQ(std::get<ReceiveMessageResult>(***again).messages.size(), 3U);
  submit(TagQueue{kSteps, {{"a", std::string(200, 'x')}}});
  settle();
  EXPECT_LE(shard->engine().resident_bytes(), 2'000U) << "at the next checkpoint";
}

TEST_F(KeeperTest, WhatWasReadForAReceiveThatWasCancelledLeavesMemory) {
  start(2'000);
  const ReceiveMessage attempt = receive_steps_of_1000_bytes(3);
  const Ticket ticket(next_ticket);
  submit(attempt);
  shard->cancel(ticket);
  settle();
  EXPECT_LE(shard->engine().resident_bytes(), 2'000U);
}

// What expires is not in the journal: whoever replays it must find that the same has expired.
TEST_F(KeeperTest, ARetentionIsNotChangedBeforeItIsKnownWhatHasExpiredUnderTheOldOne) {
  start();
  send_cold(kOrders, "old");
  clock.at += 100s;
  send_cold(kOrders, "new");
  ASSERT_EQ(shard->engine().find(kOrders)->stock().cold_by_first.size(), 1U) << "in one chunk";
  const auto set_retention = [&](const char* seconds) {
    return submit(SetQueueAttributes{kOrders, {{"MessageRetentionPeriod", seconds}}});
  };
  EXPECT_TRUE(was_accepted(set_retention("60")));
  ASSERT_TRUE(shard->engine().find(kOrders)->stalled());
  const Answer longer = set_retention("345600");
  EXPECT_FALSE(*longer) << "it is not known yet which of them is gone";
  settle();
  EXPECT_TRUE(was_accepted(longer));
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 1}));

  engine::Engine replayed({});
  ASSERT_TRUE(journal->replay(Position(1), [&](Position, std::string_view bytes) -> Status {
    const auto record = parse_record(bytes);
    replayed.advance(record->at);
    for (const Fact& fact : record->facts) replayed.apply(fact, record->at);
    return {};
  }));
  EXPECT_EQ(replayed.find(kOrders)->counts(), counts(kOrders));
}

TEST_F(KeeperTest, AReceiveThatIsCancelledWhileItWaitsTakesNothing) {
  start();
  send_cold(kOrders, "cold");
  const Ticket ticket(next_ticket);
  const Answer gone = receive(kOrders);
  shard->cancel(ticket);
  EXPECT_EQ(shard->requests_blocked(), 0U);
  settle();
  EXPECT_FALSE(*gone);
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 1}));
}

TEST_F(KeeperTest, AReceiveWhoseQueueIsDeletedWhileItWaitsIsToldSo) {
  start();
  send_cold(kOrders, "cold");
  const Answer answer = receive(kOrders);
  EXPECT_TRUE(was_accepted(submit(DeleteQueue{kOrders})));
  settle();
  EXPECT_EQ(body_of(answer), "refused: The specified queue does not exist.");
  EXPECT_EQ(shard->requests_blocked(), 0U);
  EXPECT_TRUE(peers.failures.empty());
}

TEST_F(KeeperTest, AReceiveWhoseQueueIsPurgedWhileItWaitsFindsNothing) {
  start();
  send_cold(kOrders, "cold");
  const Answer answer = receive(kOrders);
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  settle();
  EXPECT_EQ(body_of(answer), "not one message");
  EXPECT_TRUE(peers.failures.empty());
}

TEST_F(KeeperTest, SendsWaitWhileMemoryIsFullAndACheckpointIsUnderWay) {
  start(1'000);
  const std::string large(2'000, 'x');
  EXPECT_TRUE(was_accepted(send(kOrders, large))) << "no checkpoint is under way";
  const Answer second = send(kOrders, "small");
  EXPECT_FALSE(*second);
  EXPECT_EQ(shard->requests_blocked(), 1U);
  EXPECT_EQ(body_of(receive(kOrders)), large) << "others do not wait";
  commit();
  EXPECT_TRUE(was_accepted(second));
  EXPECT_EQ(shard->requests_blocked(), 0U);
}

TEST_F(KeeperTest, WhatStillWaitsForRoomWhenTheShardClosesIsNotAppended) {
  start();
  journal->room_left = journal::Room::kBusy;
  const Answer waiting = send(kOrders, "too late");
  EXPECT_FALSE(*waiting);
  journal->room_left = journal::Room::kPlenty;
  ASSERT_TRUE(shard->close());
  EXPECT_FALSE(*waiting);
}

TEST_F(KeeperTest, OnAFullDiskACheckpointIsTriedAgainAndNothingLeavesMemoryMeanwhile) {
  start();
  const Position trimmed = journal->trimmed;
  store->fails_with = ENOSPC;
  send(kOrders, "hello");
  loop.alarm();
  commit();
  EXPECT_TRUE(peers.failures.empty());
  EXPECT_GT(shard->engine().resident_bytes(), 0U);
  EXPECT_EQ(journal->trimmed, trimmed);
  const Answer refused = send(kOrders, "no room");
  ASSERT_TRUE(*refused);
  ASSERT_FALSE(**refused) << "it would wait for as long as the disk is full";
  EXPECT_EQ((*refused)->error().code, ErrorCode::kServiceUnavailable);
  loop.ring();
  commit();
  EXPECT_GT(shard->engine().resident_bytes(), 0U) << "it is full still";
  store->fails_with = 0;
  loop.ring();
  settle();
  EXPECT_EQ(shard->engine().resident_bytes(), 0U);
  EXPECT_GT(journal->trimmed, trimmed);
  EXPECT_TRUE(was_accepted(send(kOrders, "room")));
}

TEST_F(KeeperTest, AStoreThatCannotBeWrittenEndsTheProcess) {
  start();
  const Position trimmed = journal->trimmed;
  store->fails_with = EIO;
  send(kOrders, "hello");
  commit();
  ASSERT_EQ(peers.failures.size(), 1U);
  EXPECT_EQ(peers.failures.front().message, "it does not want to");
  EXPECT_EQ(journal->trimmed, trimmed);
}

TEST_F(KeeperTest, AStoreThatLacksAMessageEndsTheProcess) {
  start();
  send_cold(kOrders, "cold");
  Batch loss;
  loss.erased_ranges.push_back(engine::all_of(engine::KeyType::kMessage));
  ASSERT_TRUE(store->commit(loss));
  const Answer answer = receive(kOrders);
  read();
  ASSERT_EQ(peers.failures.size(), 1U);
  EXPECT_FALSE(*answer);
}

TEST_F(KeeperTest, ACheckpointIsMadeInTimeThoughLittleWasWritten) {
  start(std::size_t{1} << 20);
  const std::uint64_t before = shard->keeper().checkpoints();
  send(kOrders, "hello");
  EXPECT_EQ(shard->keeper().next_deadline(), clock.at + 30s);
  clock.at += 30s;
  shard->tick();
  settle();
  EXPECT_EQ(shard->keeper().checkpoints(), before + 1);
  EXPECT_EQ(shard->keeper().next_deadline(), kNever) << "nothing changed since";
}

}  // namespace
}  // namespace stanchion::broker
