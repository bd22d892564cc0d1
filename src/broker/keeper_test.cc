// A shard with a store: checkpoints, reads and evictions happen when the test lets them.
#include "broker/keeper.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "broker/keeper_test_kit.h"
#include "broker/shard_test_kit.h"
#include "engine/store/store_keys.h"
#include "model/limits.h"
#include "store/memory_store.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

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
  EXPECT_EQ(shard->requests_waiting(), 1U);
  read();
  EXPECT_EQ(body_of(cold), "cold");
  EXPECT_EQ(shard->requests_waiting(), 0U);
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
  EXPECT_EQ(shard->requests_waiting(), 3U);
  read();
  EXPECT_EQ(body_of(answers[0]), "1");
  EXPECT_EQ(body_of(answers[1]), "2");
  EXPECT_EQ(body_of(answers[2]), "3");
}

TEST_F(KeeperTest, AReadThatACheckpointOvertookIsNotMadeAgain) {
  start();
  send_cold(kOrders, "cold");
  send(kBills, "warm");
  const Answer cold = receive(kOrders);
  background.work(Work::kRead);        // The read has ended,
  background.work(Work::kCheckpoint);  // and this ends before the loop is told.
  loop.run();
  EXPECT_EQ(body_of(cold), "cold") << "or who is slower than checkpoints waits for ever";
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
  shard->tick();  // It is visible again, and requested.
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
  shard->tick();  // It is visible again, and requested.
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
  // Each message is read by itself, and messages that nobody waits for are evicted before the next.
  for (std::size_t reads = background.waiting(Work::kRead); reads > 0; --reads) {
    ASSERT_TRUE(background.work_once(Work::kRead));
    loop.run();
  }
  ASSERT_TRUE(was_accepted(again));
  EXPECT_EQ(std::get<ReceiveMessageResult>(***again).messages.size(), 3U);
  submit(TagQueue{kSteps, {{"a", std::string(200, 'x')}}});
  settle();
  EXPECT_LE(shard->engine().message_bytes(), 2'000U) << "at the next checkpoint";
}

TEST_F(KeeperTest, ANewDelayGetsAllMessagesTogetherThoughThereIsNoRoomForThem) {
  engine_options.memory.chunk_messages = 1;
  start();
  send_steps(2);
  send_steps(2, "another");
  settle();
  ASSERT_EQ(shard->engine().message_bytes(), 0U);
  const Answer set = submit(SetQueueAttributes{kSteps, {{"DelaySeconds", "900"}}});
  for (int reads = 0; reads < 10 && !*set; ++reads) {
    background.work_once(Work::kRead);
    loop.run();
  }
  ASSERT_TRUE(was_accepted(set));
  EXPECT_EQ(counts(kSteps), (engine::Counts{.delayed = 4}));
}

TEST_F(KeeperTest, AChoiceThatWaitsForTheStoreIsNotHeldForEver) {
  start();
  send_cold(kOrders, "cold");
  const Answer peeked = submit(StanchionPeek{kOrders, {}, {}, {}, {}, {}});
  read();
  ASSERT_TRUE(was_accepted(peeked));
  const auto& shown = std::get<StanchionPeekResult>(***peeked).messages;
  ASSERT_EQ(shown.size(), 1U);
  ReceiveMessage choice;
  choice.queue = kOrders;
  choice.positions = {shown.front().position};
  const Answer chosen = submit(choice);
  ASSERT_FALSE(*chosen) << "it waits for the read";
  shard->engine().check_invariants();
  EXPECT_LE(shard->engine().next_deadline(), shard->now() + limits::kRoomWaitMax);
  read();
  EXPECT_EQ(body_of(chosen), "cold");
}

TEST_F(KeeperTest, WhatWasReadForANewDelayLeavesMemoryWhenNobodyWaitsForItAnyMore) {
  engine_options.memory.chunk_messages = 1;
  start();
  send_steps(2);
  send_steps(2, "another");
  settle();
  const Answer set = submit(SetQueueAttributes{kSteps, {{"DelaySeconds", "900"}}});
  background.work_once(Work::kRead);
  loop.run();
  EXPECT_GT(shard->engine().message_bytes(), 1'000U);
  clock.at += limits::kRoomWaitMax;
  loop.ring();
  ASSERT_TRUE(*set);
  EXPECT_FALSE(was_accepted(set));
  settle();
  send_cold(kBills, "whose checkpoint lets go of what can leave");
}

TEST_F(KeeperTest, ADelayOfMoreMessagesThanMemoryHasRoomForIsRefused) {
  engine_options.memory.delayed_again = 3'000;
  start();
  send_steps(4);
  settle();
  const Answer set = submit(SetQueueAttributes{kSteps, {{"DelaySeconds", "900"}}});
  ASSERT_TRUE(*set);
  EXPECT_NE((*set)->error().message.find("--memory"), std::string::npos);
  EXPECT_EQ(counts(kSteps), (engine::Counts{.visible = 4}));
}

TEST_F(KeeperTest, WhatWasReadForAReceiveThatWasCancelledLeavesMemory) {
  start(2'000);
  const ReceiveMessage attempt = receive_steps_of_1000_bytes(3);
  const Ticket ticket(next_ticket);
  submit(attempt);
  shard->cancel(ticket);
  settle();
  EXPECT_LE(shard->engine().message_bytes(), 2'000U);
}

// Expiry is not in the journal: a replay must find that the same messages have expired.
TEST_F(KeeperTest, ARetentionIsNotChangedBeforeItIsKnownWhatHasExpiredUnderTheOldOne) {
  start();
  send_cold(kOrders, "old");
  clock.at += 100s;
  send_cold(kOrders, "new");
  engine::Holdings holdings;
  shard->engine().find(kOrders)->add_to(holdings);
  ASSERT_EQ(holdings.chunks, 1U);
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

TEST_F(KeeperTest, MessagesThatExpireWhileTheyAreNotInMemoryAreCounted) {
  start();
  submit(SetQueueAttributes{kOrders, {{"MessageRetentionPeriod", "60"}}});
  for (int i = 0; i < 3; ++i) send_cold(kOrders, "old");
  clock.at += 30s;
  send_cold(kOrders, "new");
  clock.at += 31s;
  shard->tick();
  settle();
  const auto expired = [&] { return shard->engine().find(kOrders)->activity.expired; };
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 1}));
  EXPECT_EQ(expired(), 3U);
  send_cold(kOrders, "newer");  // So that there is a checkpoint.
  restart();
  EXPECT_EQ(expired(), 3U);
  clock.at += 120s;
  shard->tick();
  settle();
  EXPECT_EQ(expired(), 5U);
}

TEST_F(KeeperTest, AReceiveThatIsCancelledWhileItWaitsTakesNothing) {
  start();
  send_cold(kOrders, "cold");
  const Ticket ticket(next_ticket);
  const Answer gone = receive(kOrders);
  shard->cancel(ticket);
  EXPECT_EQ(shard->requests_waiting(), 0U);
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
  EXPECT_EQ(shard->requests_waiting(), 0U);
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
  EXPECT_EQ(shard->requests_waiting(), 1U);
  EXPECT_EQ(body_of(receive(kOrders)), large) << "others do not wait";
  commit();
  EXPECT_TRUE(was_accepted(second));
  EXPECT_EQ(shard->requests_waiting(), 0U);
}

TEST_F(KeeperTest, ASendThatWaitsTooLongForMemoryIsRefusedAndChangesNothing) {
  start(1'000);
  send(kOrders, std::string(2'000, 'x'));
  const Answer waiting = send(kOrders, "small");
  clock.at += limits::kRoomWaitMax - 1ms;
  shard->tick();
  EXPECT_FALSE(*waiting);
  clock.at += 1ms;
  shard->tick();
  loop.run();
  ASSERT_TRUE(*waiting);
  ASSERT_FALSE(**waiting);
  EXPECT_EQ((*waiting)->error().code, ErrorCode::kServiceUnavailable);
  EXPECT_NE((*waiting)->error().message.find("--memory"), std::string::npos);
  EXPECT_EQ(shard->requests_waiting(), 0U);
  settle();
  EXPECT_EQ(counts(kOrders), (engine::Counts{.visible = 1}));
  EXPECT_TRUE(was_accepted(send(kOrders, "later")));
}

TEST_F(KeeperTest, AnAlarmEndsTheWait) {
  start(1'000);
  send(kOrders, std::string(2'000, 'x'));
  const Answer waiting = send(kOrders, "small");
  clock.at += limits::kRoomWaitMax;
  loop.ring();
  EXPECT_TRUE(*waiting);
}

TEST_F(KeeperTest, ARequestThatWaitsTooLongForTheJournalIsRefused) {
  start();
  journal->room_left = journal::Room::kBusy;
  const Answer waiting = send(kOrders, "too much");
  clock.at += limits::kRoomWaitMax;
  shard->tick();
  ASSERT_TRUE(*waiting);
  ASSERT_FALSE(**waiting);
  EXPECT_EQ((*waiting)->error().code, ErrorCode::kServiceUnavailable);
}

TEST_F(KeeperTest, AReceiveWhoseMessageIsNotReadInTimeIsRefusedAndTakesNothing) {
  start();
  send_cold(kOrders, "cold");
  const Answer first = receive(kOrders);
  clock.at += 3s;
  const Answer second = receive(kOrders);
  clock.at += limits::kRoomWaitMax - 3s;
  shard->tick();
  ASSERT_TRUE(*first);
  ASSERT_FALSE(**first);
  EXPECT_EQ((*first)->error().code, ErrorCode::kServiceUnavailable);
  EXPECT_FALSE(*second) << "it has not waited for so long";
  read();
  EXPECT_EQ(body_of(second), "cold");
}

TEST_F(KeeperTest, TheBacklogOfOneQueueDoesNotStopAnother) {
  start(12'000);
  const std::string large(9'200, 'x');
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  EXPECT_TRUE(was_accepted(send(kOrders, large)));
  const Answer waiting = send(kOrders, "small");
  EXPECT_FALSE(*waiting);
  EXPECT_TRUE(was_accepted(send(kBills, "small")));
  EXPECT_TRUE(was_accepted(send(kBills, "small")));
  const Answer more = send(kBills, large);
  EXPECT_TRUE(was_accepted(more)) << "what came before it was small";
  EXPECT_FALSE(*send(kBills, "small")) << "it is one of those that fill memory now";
  commit();
  EXPECT_TRUE(was_accepted(waiting));
}

TEST_F(KeeperTest, AStopRefusesWhatWaitsForRoomAtOnce) {
  start(1'000);
  send(kOrders, std::string(2'000, 'x'));
  const Answer waiting = send(kOrders, "small");
  shard->drain();
  ASSERT_TRUE(*waiting);
  ASSERT_FALSE(**waiting);
  EXPECT_EQ((*waiting)->error().code, ErrorCode::kServiceUnavailable);
  const Answer late = send(kOrders, "small");
  ASSERT_TRUE(*late);
  EXPECT_FALSE(**late);
  EXPECT_EQ(background.waiting(Work::kCheckpoint), 1U) << "and does not wait for the checkpoint";
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

TEST_F(KeeperTest, TenantsThatWaitCountAndTheirQueueIsRefusedWhenTheyFillMemory) {
  engine_options.memory.spare = 0;
  start(100'000);
  const auto send_as = [&](const QueueRef& queue, int tenant) {
    SendMessage request{queue, "me", {}};
    request.message.body = "hello";
    request.message.group_id = "tenant-" + std::to_string(tenant);
    return submit(request);
  };
  int accepted = 0;
  Answer last;
  while (accepted < 2'000 && was_accepted(last = send_as(kOrders, accepted))) {
    ++accepted;
    settle();
  }
  EXPECT_GT(accepted, 200);
  EXPECT_LT(accepted, 600)
      << "each takes some hundreds of bytes, and all may take twice the budget";
  ASSERT_TRUE(*last) << "nobody waits for what will not come";
  EXPECT_NE((*last)->error().message.find("--memory"), std::string::npos);
  EXPECT_TRUE(was_accepted(send(kBills, "small"))) << "it is not what fills memory";
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  EXPECT_EQ(shard->engine().structure_bytes(),
            shard->engine().find(kBills)->stock().bytes() - shard->engine().message_bytes());
  EXPECT_TRUE(was_accepted(send_as(kOrders, accepted)));
}

TEST_F(KeeperTest, AfterAStartWithLessMemoryThanTenantsTakeOtherQueuesGoOn) {
  engine_options.memory.spare = 0;
  start(1'000'000);
  SendMessage request{kOrders, "me", {}};
  request.message.body = "hello";
  for (int tenant = 0; tenant < 1'000; ++tenant) {
    request.message.group_id = "tenant-" + std::to_string(tenant);
    ASSERT_TRUE(was_accepted(submit(request)));
    settle();
  }
  clock.at += keeping.checkpoint_interval;
  loop.ring();
  settle();
  keeping.memory = 50'000;
  restart();
  ASSERT_GT(shard->engine().structure_bytes(), 200'000U);
  request.message.group_id = "one-more";
  EXPECT_FALSE(was_accepted(submit(request)));
  EXPECT_TRUE(was_accepted(send(kBills, "small")));
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

TEST_F(KeeperTest, AQueueThatLacksAMessageIsSetAside) {
  start();
  send_cold(kOrders, "cold");
  Batch loss;
  loss.erased_ranges.push_back(engine::all_of(engine::KeyType::kMessage));
  ASSERT_TRUE(store->commit(loss));
  const Answer answer = receive(kOrders);
  read();
  EXPECT_TRUE(peers.failures.empty());
  EXPECT_EQ(peers.damaged_queues, std::vector<std::string>{"orders"});
  ASSERT_TRUE(*answer);
  EXPECT_FALSE(**answer);
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

// The budget counts nothing of them, but until then it is remembered what the store must forget.
TEST_F(KeeperTest, ManyDeletedMessagesCauseACheckpoint) {
  constexpr std::size_t kBudget = 8 << 20, kMuch = kBudget / 8;
  constexpr std::size_t kMany =
      (kMuch / engine::kErasedBytes / 2 + 100) / 10 * 10;  // Two entries each.
  start(kBudget);
  std::vector<std::string> handles;
  for (std::size_t i = 0; i < 2 * kMany; ++i) send(kOrders, "hello");
  settle();
  for (std::size_t i = 0; i < 2 * kMany; i += 10) {
    ReceiveMessage request;
    request.queue = kOrders;
    request.max_number_of_messages = 10;
    request.visibility_timeout = 3600;
    const Answer answer = submit(request);
    for (const auto& message : std::get<ReceiveMessageResult>(***answer).messages)
      handles.push_back(message.receipt_handle);
  }
  ASSERT_EQ(handles.size(), 2 * kMany);
  clock.at += 30s;
  shard->tick();
  settle();
  const std::uint64_t before = shard->keeper().checkpoints();
  // Every second one, so that no chunk is erased as a whole.
  for (std::size_t i = 0; i < handles.size() && !shard->keeper().is_writing(); i += 2)
    submit(DeleteMessage{kOrders, handles[i]});
  EXPECT_TRUE(shard->keeper().is_writing());
  EXPECT_FALSE(shard->engine().exceeds(kBudget)) << "memory is no reason for it";
  settle();
  EXPECT_EQ(shard->keeper().checkpoints(), before + 1);
  EXPECT_EQ(shard->engine().memory().bytes_to_erase(), 0U);
}

// One damaged block: its queue reports it, and all other queues go on.
TEST_F(KeeperTest, AQueueThatCannotBeReadIsSetAside) {
  start();
  send_cold(kBills, "bill");
  send_cold(kOrders, "first");
  store->damage(shard->engine().find(kOrders)->id);
  const Answer refused = receive(kOrders);
  EXPECT_FALSE(*refused) << "it is being read";
  read();
  ASSERT_TRUE(*refused);
  ASSERT_FALSE(**refused);
  EXPECT_EQ((*refused)->error().code, ErrorCode::kInternalFailure);
  EXPECT_NE((*refused)->error().message.find("checksum mismatch in 000012.sst"), std::string::npos);
  EXPECT_TRUE(peers.failures.empty());
  EXPECT_EQ(peers.damaged_queues, std::vector<std::string>{"orders"});

  EXPECT_FALSE(was_accepted(send(kOrders, "third")));
  EXPECT_FALSE(was_accepted(receive(kOrders, 20))) << "nobody waits for it";
  EXPECT_TRUE(was_accepted(submit(GetQueueAttributes{kOrders, {}})));
  const Answer bill = receive(kBills);
  settle();
  EXPECT_EQ(body_of(bill), "bill");
  EXPECT_EQ(peers.damaged_queues.size(), 1U) << "it is told once";
}

TEST_F(KeeperTest, AReadThatFailsOnceIsTriedAgain) {
  start();
  send_cold(kOrders, "cold");
  store->failing_reads = 3;  // With its neighbours, by itself, and by itself once more.
  const Answer answer = receive(kOrders);
  settle();
  EXPECT_EQ(body_of(answer), "cold");
  EXPECT_TRUE(peers.damaged_queues.empty());
}

// No file can be opened: that is not damage, and passes.
TEST_F(KeeperTest, AReadWithoutAFileToOpenWaitsForOne) {
  start();
  send_cold(kOrders, "cold");
  store->failing_reads = 1'000;
  store->reads_fail_with = ENOSPC;
  const Answer refused = receive(kOrders);
  read();
  EXPECT_FALSE(*refused) << "it waits";
  clock.at += limits::kRoomWaitMax;
  shard->tick();
  ASSERT_TRUE(*refused);
  ASSERT_FALSE(**refused);
  EXPECT_EQ((*refused)->error().code, ErrorCode::kServiceUnavailable);
  EXPECT_TRUE(peers.failures.empty());
  EXPECT_TRUE(peers.damaged_queues.empty());
  store->failing_reads = 0;
  const Answer answer = receive(kOrders);
  EXPECT_FALSE(*answer);
  loop.ring_all();
  read();
  EXPECT_EQ(body_of(answer), "cold");
}

// A start has to read delayed messages of FIFO queues; if one cannot be read, the server starts all
// the same.
TEST_F(KeeperTest, AStartSetsAsideAQueueWhoseDelayedMessagesCannotBeRead) {
  start();
  submit(CreateQueue{kSteps, {{"FifoQueue", "true"}, {"DelaySeconds", "60"}}, {}});
  SendMessage request{kSteps, "me", {}};
  request.message.body = "delayed";
  request.message.group_id = request.message.deduplication_id = "a";
  ASSERT_TRUE(was_accepted(submit(request)));
  send(kOrders, "well");
  settle();
  store->damage(shard->engine().find(kSteps)->id);
  restart();
  EXPECT_EQ(peers.damaged_queues, std::vector<std::string>{"steps.fifo"});
  EXPECT_FALSE(was_accepted(receive(kSteps)));
  const Answer well = receive(kOrders);
  settle();
  EXPECT_EQ(body_of(well), "well");
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kSteps})));
  EXPECT_TRUE(peers.damaged_queues.empty());
}

TEST_F(KeeperTest, APurgeMakesAnEndOfTheDamage) {
  start();
  send_cold(kOrders, "first");
  store->damage(shard->engine().find(kOrders)->id);
  receive(kOrders);
  settle();
  ASSERT_FALSE(was_accepted(send(kOrders, "second")));
  EXPECT_TRUE(was_accepted(submit(PurgeQueue{kOrders})));
  EXPECT_TRUE(peers.damaged_queues.empty());
  EXPECT_TRUE(was_accepted(send(kOrders, "third")));
  settle();
  const Answer received = receive(kOrders);
  settle();
  EXPECT_EQ(body_of(received), "third");
  EXPECT_TRUE(peers.failures.empty());
}

TEST_F(KeeperTest, ADeletedQueueTakesItsDamageAlong) {
  start();
  send_cold(kOrders, "first");
  store->damage(shard->engine().find(kOrders)->id);
  receive(kOrders);
  settle();
  EXPECT_TRUE(was_accepted(submit(DeleteQueue{kOrders})));
  EXPECT_TRUE(peers.damaged_queues.empty());
  settle();
  EXPECT_TRUE(peers.failures.empty());
}

}  // namespace
}  // namespace stanchion::broker
