// A queue's messages in chunks: how they are evicted and read back.
#include <algorithm>

#include "engine/stock_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

TEST_F(StockTest, AChunkThatHasItsMessagesIsFollowedByAnother) {
  send_many(7);
  EXPECT_EQ(chunks(), (Chunks{3, 3, 1}));
  queue.check_invariants();
}

TEST_F(StockTest, AChunkThatHasItsBytesIsFollowedByAnother) {
  memory.options.chunk_bytes = 1'000;
  const std::string large(600, 'x');
  for (int i = 0; i < 3; ++i) send(large);
  EXPECT_EQ(chunks(), (Chunks{2, 1}));
}

TEST_F(StockTest, TheFrontIsTheFirstChunkThatHasMembers) {
  send_many(5);
  for (int i = 0; i < 3; ++i) receive();
  EXPECT_EQ(chunks(), (Chunks{0, 2}));
  EXPECT_EQ(lane().front(), lane().last_chunk);
  EXPECT_EQ(lane().first_chunk->detached, 3U);
  queue.check_invariants();
}

TEST_F(StockTest, ADetachedMessageKeepsItsChunkAliveAndTheLastOneTakesItAway) {
  send_many(3);
  checkpoint();
  Message& last = (queue.remove(receive(), now), queue.remove(receive(), now), receive());
  EXPECT_EQ(chunks(), (Chunks{0}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 1U) << "its content is kept in the store";
  queue.remove(last, now);
  EXPECT_EQ(chunks(), Chunks{});
  checkpoint();
  EXPECT_EQ(entries.size(), 1U) << "only the queue itself is left";
}

TEST_F(StockTest, OnlyWhatADurableCheckpointHasMayLeaveMemory) {
  send_many(3);
  EXPECT_EQ(evict(), 0U) << "not written";
  const Batch batch = save();
  EXPECT_EQ(evict(), 0U) << "written, but not known to be durable";
  commit(batch);
  const std::size_t before = memory.messages;
  EXPECT_EQ(evict(), before);
  EXPECT_EQ(memory.messages, 0U);
}

TEST_F(StockTest, HoweverManyCannotLeaveMemoryThoseThatCanAreFound) {
  memory.options.chunk_messages = 1;
  send_many(10);
  for (int i = 0; i < 5'000; ++i) send("later", std::chrono::seconds(10));
  checkpoint();
  const Evicted first = queue.stock().residency().evict(SIZE_MAX, true);
  EXPECT_EQ(first.bytes, 0U) << "the newest are looked at first, and wait elsewhere";
  EXPECT_TRUE(first.more);
  int rounds = 0;
  while (queue.stock().residency().evict(SIZE_MAX, true).more) ASSERT_LT(++rounds, 5);
  queue.for_each_message([](const Message& message) { EXPECT_FALSE(message.in_line); });
  EXPECT_EQ(queue.stock().residency().cold().size(), 10U);
  EXPECT_EQ(evict(), 0U);
  EXPECT_FALSE(queue.stock().residency().evict(SIZE_MAX, true).more) << "until the next checkpoint";
  bring_in_head();
  EXPECT_GT(evict(), 0U) << "what has come since is looked at";
  queue.check_invariants();
}

TEST_F(StockTest, LanesAndChunksAreCountedAndGivenBack) {
  EXPECT_EQ(memory.structure, 0U);
  send_many(3);
  const std::size_t resident = memory.structure;
  EXPECT_GT(resident, 0U);
  checkpoint();
  evict();
  EXPECT_GT(memory.structure, resident) << "of what is cold a summary stays";
  queue.check_invariants();
  bring_in_head();
  drain();
  EXPECT_EQ(memory.structure, 0U);
  send_many(3);
  const auto discarded = queue.purge(now);
  EXPECT_EQ(memory.structure, 0U) << "though it is not destroyed yet";
}

TEST_F(StockTest, ColdMessagesCountAndComeBackAsTheyWere) {
  send("first");
  send("second");
  checkpoint();
  evict();
  EXPECT_EQ(queue.find(Seq(1)), nullptr);
  EXPECT_EQ(queue.counts().visible, 2U);
  EXPECT_EQ(queue.oldest_entered(), now);
  EXPECT_TRUE(queue.next_to_receive().is_cold());
  bring_in_head();
  EXPECT_EQ(receive().content->body(), "first");
  EXPECT_EQ(receive().content->body(), "second");
  queue.check_invariants();
}

TEST_F(StockTest, WhatWasReadAheadStaysLongerThanWhatNobodyAskedFor) {
  memory.options.read_ahead = 7;
  send_many(9);
  checkpoint();
  evict();
  send_many(3);
  checkpoint();
  bring_in_head();
  receive();
  queue.read_ahead(lane());
  EXPECT_EQ(memory.wanted.size(), 2U) << "up to what is wanted ahead, at once";
  ASSERT_TRUE(read_wanted());
  EXPECT_GT(queue.stock().residency().evict(1, false).bytes, 0U);
  EXPECT_TRUE(lane().last_chunk->is_cold()) << "it is received last";
  EXPECT_EQ(queue.stock().residency().evict(SIZE_MAX, false).bytes, 0U);
  queue.check_invariants();
}

TEST_F(StockTest, ReadingAheadWaitsUntilHalfOfItIsUsedUp) {
  memory.options.read_ahead = 6;
  send_many(12);
  checkpoint();
  evict();
  bring_in_head();
  queue.read_ahead(lane());
  ASSERT_TRUE(read_wanted());
  for (int left = 6; left > 3; --left) {
    queue.read_ahead(lane());
    EXPECT_TRUE(memory.wanted.empty()) << left;
    queue.remove(receive(), now);
  }
  queue.read_ahead(lane());
  EXPECT_EQ(memory.wanted.size(), 1U);
}

TEST_F(StockTest, LargeMessagesAreReadAheadByTheirBytes) {
  memory.options.chunk_bytes = 1'000;
  memory.options.read_ahead = 100;
  memory.options.read_ahead_bytes = 5'000;
  const std::string large(2'000, 'x');
  for (int i = 0; i < 9; ++i) send(large);
  checkpoint();
  evict();
  bring_in_head();
  queue.read_ahead(lane());
  EXPECT_EQ(memory.wanted.size(), 2U) << "with the first one that is enough";
  ASSERT_TRUE(read_wanted());
  queue.read_ahead(lane());
  EXPECT_TRUE(memory.wanted.empty());
}

TEST_F(StockTest, NeighboursAreReadByOneWalkAndWhatLiesBetweenIsLeftOut) {
  send_many(9);
  checkpoint();
  evict();
  Chunk* first = lane().first_chunk;
  for (Chunk* chunk : {first, first->next->next}) queue.stock().residency().want(*chunk);
  const std::vector<ColdRead> reads = wanted();
  ASSERT_TRUE(reads.at(0).precedes(reads.at(1)));
  EXPECT_FALSE(reads[1].precedes(reads[0]));
  auto found = Engine::read(reads, scan());
  ASSERT_TRUE(found);
  EXPECT_EQ(walks, 1);
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).size(), 3U);
  EXPECT_EQ(found->at(1).size(), 3U);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_TRUE(queue.install(reads[i], std::move((*found)[i]), now));
  queue.check_invariants();
}

TEST_F(StockTest, AMessageInTheMiddleOfAColdChunkIsFoundByItsGroupAndTakenFromThere) {
  send_many(9);
  checkpoint();
  evict();
  const std::string group;
  EXPECT_EQ(queue.look_for(Seq(5), true), Presence::kBehindAnother) << "without its group";
  EXPECT_EQ(queue.look_for(Seq(5), true, &group), Presence::kAskedFor);
  EXPECT_EQ(queue.look_for(Seq(10), true, &group), Presence::kBehindAnother) << "there is none";
  const std::string other = "g";
  EXPECT_EQ(queue.look_for(Seq(5), true, &other), Presence::kBehindAnother);
  ASSERT_EQ(memory.wanted.size(), 1U) << "one chunk";
  ASSERT_TRUE(read_wanted());
  ASSERT_EQ(queue.look_for(Seq(5), true, &group), Presence::kInMemory);
  EXPECT_EQ(queue.find(Seq(2)), nullptr);
  queue.receive(*queue.find(Seq(5)), now + std::chrono::seconds(30), now);
  EXPECT_EQ(chunks(), (Chunks{3, 2, 3}));
  queue.check_invariants();
  checkpoint();
  evict();
  queue.check_invariants();
  for (const std::uint64_t next : {1, 2, 3, 4, 6, 7, 8, 9}) {
    if (queue.next_to_receive().is_cold()) bring_in_head();
    EXPECT_EQ(receive().seq, Seq(next));
  }
  queue.check_invariants();
}

TEST_F(StockTest, AMessageThatComesAfterAColdChunkDoesNotJoinIt) {
  send();
  checkpoint();
  evict();
  send();
  EXPECT_EQ(chunks(), (Chunks{1, 1}));
  EXPECT_FALSE(lane().last_chunk->is_cold());
  queue.check_invariants();
}

TEST_F(StockTest, SmallColdNeighboursBecomeOneUpToTheSizeOfAChunk) {
  for (std::uint32_t i = 0; i < kChunkMessages + 1; ++i) {
    send();
    checkpoint();
    evict();
  }
  EXPECT_EQ(chunks(), (Chunks{kChunkMessages, 1}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kChunk), 2U);
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(1));
  queue.check_invariants();
}

TEST_F(StockTest, AMergedChunkRemembersWhatWasRemovedFromBoth) {
  send();
  checkpoint();
  evict();
  send_many(2);
  checkpoint();
  Message& gone = *queue.find(Seq(2));
  queue.remove(gone, now);
  evict();
  ASSERT_EQ(chunks(), (Chunks{2}));
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(1));
  EXPECT_EQ(receive().seq, Seq(3));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 2U);
}

TEST_F(StockTest, ChunksAreMergedOnlyWhenTheStoreHasNothingBetweenThem) {
  send();
  checkpoint();
  evict();
  send_many(4);
  checkpoint();
  ASSERT_EQ(chunks(), (Chunks{1, 3, 1}));
  for (const Seq seq : {Seq(2), Seq(3), Seq(4)}) queue.remove(*queue.find(seq), now);
  evict();
  EXPECT_EQ(chunks(), (Chunks{1, 1})) << "merged, and a read would find what was removed";
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(1));
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(5));
  queue.check_invariants();
}

TEST_F(StockTest, ChunksAreMergedOnceACheckpointHasErasedWhatWasBetweenThem) {
  send();
  checkpoint();
  evict();
  send_many(4);
  checkpoint();
  for (const Seq seq : {Seq(2), Seq(3), Seq(4)}) queue.remove(*queue.find(seq), now);
  checkpoint();
  evict();
  ASSERT_EQ(chunks(), (Chunks{2}));
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(1));
  EXPECT_EQ(receive().seq, Seq(5));
  queue.check_invariants();
}

TEST_F(StockTest, ADetachedMessageAndWhatWasRemovedSinceAreNotBroughtInAsMembers) {
  send_many(3);
  checkpoint();
  Message& deleted = receive();
  const Seq in_flight = receive().seq;
  checkpoint();
  evict();
  queue.remove(deleted, now);
  bring_in_head();
  EXPECT_EQ(chunks(), (Chunks{1}));
  EXPECT_EQ(receive().seq, Seq(3));
  EXPECT_EQ(queue.find(in_flight)->state, State::kInFlight);
  queue.check_invariants();
}

TEST_F(StockTest, AReadThatWasMadeBeforeCheckpointsEndedIsNotMadeAgain) {
  send_many(3);
  Message& first_gone = send("late", 10s);
  Message& then_gone = send("late", 10s);
  send();
  for (int i = 0; i < 3; ++i) queue.remove(receive(), now);
  checkpoint();
  evict();
  queue.want(queue.next_to_receive());
  const auto reads = wanted();
  ASSERT_EQ(reads.size(), 1U);
  const auto found = read(reads.front());
  // Messages that were read are erased, by more than one checkpoint.
  queue.remove(first_gone, now);
  checkpoint();
  queue.remove(then_gone, now);
  checkpoint();
  ASSERT_TRUE(queue.install(reads.front(), found, now));
  EXPECT_FALSE(lane().front()->is_cold()) << "however fast checkpoints follow each other";
  EXPECT_EQ(receive().seq, Seq(6));
  queue.check_invariants();
}

TEST_F(StockTest, AStoreThatLacksAMessageIsDamaged) {
  send_many(2);
  checkpoint();
  send();
  checkpoint();
  evict();
  entries.erase(std::prev(entries.end()));
  queue.want(queue.next_to_receive());
  const Status status = read_wanted();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the store is damaged: of 3 messages from number 1 on it holds 2");
}

TEST_F(StockTest, AStoreThatHasAMessageTooManyIsDamaged) {
  memory.options.chunk_messages = 4;
  send();
  Message& first_gone = send("late", 10s);
  Message& then_gone = send("late", 10s);
  send();
  checkpoint();
  const auto before = entries;
  queue.remove(first_gone, now);
  checkpoint();
  queue.remove(then_gone, now);
  checkpoint();
  evict();
  entries.insert(before.begin(), before.end());
  queue.want(queue.next_to_receive());
  const Status status = read_wanted();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "the store is damaged: of 2 messages from number 1 on it holds 3");
}

TEST_F(StockTest, AColdChunkThatExpiredAsAWholeIsNotRead) {
  send_many(3);
  checkpoint();
  evict();
  now += 60s;
  queue.advance(now);
  EXPECT_FALSE(queue.stalled());
  EXPECT_TRUE(wanted().empty());
  EXPECT_EQ(queue.counts(), Counts{});
  checkpoint();
  EXPECT_EQ(entries.size(), 1U) << "its space is given back";
}

TEST_F(StockTest, WhichMembersOfAColdChunkExpiredIsReadFirst) {
  send();
  now += 10s;
  send();
  checkpoint();
  evict();
  now += 50s;
  queue.advance(now);
  EXPECT_TRUE(queue.stalled());
  ASSERT_EQ(memory.wanted.size(), 1U);
  EXPECT_EQ(memory.wanted.front().purpose, ColdRead::Purpose::kExpiries);
  ASSERT_TRUE(read_wanted());
  EXPECT_FALSE(queue.stalled());
  EXPECT_EQ(queue.counts().visible, 1U);
  EXPECT_EQ(queue.oldest_entered(), now - 50s);
  EXPECT_TRUE(lane().front()->is_cold()) << "contents stay where they are";
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(2));
}

TEST_F(StockTest, ExpiriesAreKnownBeforeTheyAreNeeded) {
  send();
  now += 10s;
  send();
  checkpoint();
  evict();
  now = queue.next_deadline();
  queue.advance(now);
  EXPECT_FALSE(queue.stalled()) << "nothing has expired yet";
  ASSERT_TRUE(read_wanted());
  now = queue.next_deadline();
  queue.advance(now);
  EXPECT_FALSE(queue.stalled());
  EXPECT_TRUE(wanted().empty());
  EXPECT_EQ(queue.counts().visible, 1U);
}

TEST_F(StockTest, ADetachedMessagesHomeOutlivesItsMembers) {
  send_many(3);
  checkpoint();
  now += 40s;
  queue.advance(now);
  receive();
  checkpoint();
  evict();
  ASSERT_TRUE(lane().first_chunk->is_cold());
  now += 20s;
  queue.advance(now);
  ASSERT_TRUE(read_wanted());
  EXPECT_EQ(queue.counts(), Counts{}) << "the one in flight expires, too";
  EXPECT_EQ(chunks(), Chunks{});
  checkpoint();
  EXPECT_EQ(entries.size(), 1U);
}

TEST_F(StockTest, ADelayedMessageIsADetachedMessageUntilItIsDueAndThenTakesItsPlace) {
  send("late", 10s);
  send("soon");
  EXPECT_EQ(chunks(), (Chunks{1}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kDetached), 1U);
  now += 10s;
  queue.advance(now);
  EXPECT_EQ(chunks(), (Chunks{2}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kDetached), 0U);
  EXPECT_EQ(receive().content->body(), "late") << "it was sent first";
}

TEST_F(StockTest, AContentLeavesMemoryWhileItsRecordStays) {
  send("hello");
  Message& message = receive();
  EXPECT_EQ(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U)
      << "the store does not have it yet";
  checkpoint();
  EXPECT_GT(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U);
  EXPECT_EQ(message.content, nullptr);
  now += 30s;
  queue.advance(now);
  bring_in_head();
  EXPECT_EQ(receive().content->body(), "hello");
}

TEST_F(StockTest, APurgeBeginsANewIncarnationAndErasesTheOldOneAsRanges) {
  send_many(7);
  receive();
  checkpoint();
  evict();
  const auto old = queue.purge(now);
  EXPECT_EQ(memory.messages, 0U);
  EXPECT_EQ(queue.stock().name().incarnation, 1U);
  send();
  const Batch batch = save();
  EXPECT_TRUE(batch.erased.empty()) << "however many messages there were";
  commit(batch);
  EXPECT_EQ(keys(KeyType::kMessage), 1U);
  EXPECT_EQ(keys(KeyType::kChunk), 1U);
  EXPECT_EQ(keys(KeyType::kDetached), 0U);
}

TEST_F(StockTest, AReadOfWhatWasPurgedSinceChangesNothing) {
  send_many(3);
  checkpoint();
  evict();
  queue.want(queue.next_to_receive());
  const auto old = queue.purge(now);
  send("new");
  ASSERT_TRUE(read_wanted());
  EXPECT_EQ(queue.counts().visible, 1U);
  EXPECT_EQ(receive().content->body(), "new");
  queue.check_invariants();
}

}  // namespace
}  // namespace stanchion::engine
