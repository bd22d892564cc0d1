// A queue's messages in chunks: how they leave memory and come back, and what checkpoints write.
#include "engine/stock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChunkMessages = 3;

// A queue and a store that is a map. Time is a number.
std::size_t puts_of(const Batch& batch) {
  std::size_t count = 0;
  batch.for_each_put([&](auto&&...) { ++count; });
  return count;
}

class StockTest : public testing::Test {
 protected:
  static QueueAttributes standard() {
    QueueAttributes attributes;
    attributes.retention_seconds = 60;
    return attributes;
  }

  Message& send(std::string_view body = "hello", Duration delay = {}) {
    auto message = std::make_unique<Message>();
    message->seq = queue.next_seq();
    ContentParts parts;
    parts.body = body;
    message->content = Content::make(parts);
    message->retained_from = now;
    return queue.enter(std::move(message), now + delay, now);
  }
  void send_many(int count) {
    for (int i = 0; i < count; ++i) send();
  }
  Message& receive() {
    Message* message = queue.next_to_receive(nullptr).message;
    if (message == nullptr) throw std::runtime_error("nothing in memory to receive");
    queue.receive(*message, now + 30s, now);
    return *message;
  }
  void drain() {
    while (queue.has_receivable()) queue.remove(receive(), now);
  }

  void begin_save() {
    memory.batch = std::make_unique<Batch>();
    memory.checkpoint = ++checkpoints;
    queue.begin_save();
  }
  Batch end_save() {
    queue.stock().save_some(SIZE_MAX);
    return std::move(*std::exchange(memory.batch, nullptr));
  }
  Batch save() {
    begin_save();
    return end_save();
  }
  void commit(const Batch& batch) {
    for (const KeyRange& range : batch.erased_ranges)
      entries.erase(entries.lower_bound(range.begin), entries.lower_bound(range.end));
    for (const Key& key : batch.erased) entries.erase(std::string(key));
    batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
      std::string& value = entries[std::string(key)] = head;
      if (content != nullptr) value += content->encoded();
    });
    memory.durable_checkpoint = checkpoints;
  }
  void checkpoint() { commit(save()); }
  std::size_t evict() { return queue.stock().evict(SIZE_MAX, true); }

  Engine::ScanStore scan() {
    return [this](const KeyRange& range, const auto& visit) -> Status {
      ++walks;
      for (auto it = entries.lower_bound(range.begin); it != entries.end() && it->first < range.end;
           ++it)
        if (!visit(it->first, it->second)) break;
      return {};
    };
  }
  std::vector<StoredMessage> read(const ColdRead& wanted) {
    auto found = Engine::read(wanted, scan());
    if (!found) throw std::runtime_error(found.error().message);
    return std::move(*found);
  }
  std::vector<ColdRead> wanted() { return std::exchange(memory.wanted, {}); }
  Status read_wanted() {
    for (auto reads = wanted(); !reads.empty(); reads = wanted())
      for (const ColdRead& r : reads) RETURN_IF_FAILED(queue.install(r, read(r), now));
    return {};
  }
  void bring_in_head() {
    queue.want(queue.next_to_receive(nullptr));
    ASSERT_TRUE(read_wanted());
  }

  // Members of each chunk of the plain lane.
  std::vector<std::uint32_t> chunks() {
    std::vector<std::uint32_t> out;
    for (const Chunk* chunk = lane().first_chunk; chunk != nullptr; chunk = chunk->next)
      out.push_back(chunk->members);
    return out;
  }
  Lane& lane() { return queue.stock().lanes.of(""); }
  std::size_t keys(KeyType type) const {
    const KeyRange range = all_of(type);
    return static_cast<std::size_t>(
        std::distance(entries.lower_bound(range.begin), entries.lower_bound(range.end)));
  }
  // In packs or by themselves.
  std::size_t messages_stored() const {
    std::vector<StoredMessage> found;
    for (const auto& [key, value] : entries) {
      if (KeyReader(key).type() != KeyType::kMessage) continue;
      EXPECT_TRUE(parse_stored_messages(key, value, true, found));
    }
    return found.size();
  }

  using Chunks = std::vector<std::uint32_t>;

  Memory memory{.options = {.chunk_messages = kChunkMessages,
                            .chunk_bytes = 100'000,
                            .read_ahead = 4,
                            .near_messages = 2},
                .wanted = {}};
  Instant now = from_millis(1'700'000'000'000);
  Queue queue{QueueId(7), {"000000000000", "us-east-1", "orders"}, standard(), {}, now, memory};
  std::map<std::string, std::string> entries;
  std::uint64_t checkpoints = 0;
  int walks = 0;  // Over the store.
};

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
  EXPECT_EQ(lane().front, lane().last_chunk);
  EXPECT_EQ(lane().first_chunk->strangers, 3U);
  queue.check_invariants();
}

TEST_F(StockTest, AStrangerKeepsItsChunkAliveAndTheLastOneTakesItAway) {
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

TEST_F(StockTest, WhatIsSentAndDeletedBetweenTwoCheckpointsIsNeverWritten) {
  checkpoint();
  send_many(5);
  send("later", 10s);
  now += 10s;
  queue.advance(now);
  drain();
  const Batch batch = save();
  ASSERT_EQ(batch.puts.size(), 1U);
  EXPECT_EQ(batch.puts.front().key, queue_key(queue.id));
  EXPECT_TRUE(batch.erased.empty());
  EXPECT_TRUE(batch.erased_ranges.empty());
}

TEST_F(StockTest, WhatDidNotChangeIsNotWrittenAgain) {
  send_many(7);
  checkpoint();
  const Batch batch = save();
  EXPECT_EQ(batch.puts.size(), 1U) << "the queue's own record";
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

TEST_F(StockTest, ColdMessagesCountAndComeBackAsTheyWere) {
  send("first");
  send("second");
  checkpoint();
  evict();
  EXPECT_EQ(queue.find(Seq(1)), nullptr);
  EXPECT_EQ(queue.counts().visible, 2U);
  EXPECT_EQ(queue.oldest_entered(), now);
  EXPECT_TRUE(queue.next_to_receive(nullptr).is_cold());
  bring_in_head();
  EXPECT_EQ(receive().content->body(), "first");
  EXPECT_EQ(receive().content->body(), "second");
  queue.check_invariants();
}

TEST_F(StockTest, WhatACheckpointHasIsDecidedWhenItBegins) {
  send_many(7);
  begin_save();
  queue.remove(receive(), now);
  Message& in_flight = receive();
  send();
  queue.check_invariants();
  commit(end_save());
  EXPECT_EQ(messages_stored(), 7U) << "all that were there then";
  EXPECT_EQ(keys(KeyType::kStranger), 0U) << "nothing was in flight then";
  checkpoint();
  EXPECT_EQ(messages_stored(), 7U) << "one has gone, one has come";
  EXPECT_EQ(keys(KeyType::kStranger), 1U);
  queue.remove(in_flight, now);
  drain();
  checkpoint();
  EXPECT_EQ(entries.size(), 1U) << "only the queue itself is left";
}

TEST_F(StockTest, AChunkIsWrittenBeforeItChangesAndOnceOnly) {
  send_many(6);
  begin_save();
  EXPECT_EQ(puts_of(*memory.batch), 1U) << "the queue's own record";
  receive();
  EXPECT_EQ(puts_of(*memory.batch), 1U + 1 + 1) << "the first chunk: messages and record";
  receive();
  EXPECT_EQ(puts_of(*memory.batch), 1U + 1 + 1);
  EXPECT_EQ(puts_of(end_save()), 1U + 2 * (1 + 1));
}

TEST_F(StockTest, AFullChunkIsWrittenAsAPack) {
  send("first");
  send("second");
  send("third");
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 1U);
  EXPECT_EQ(messages_stored(), 3U);
  evict();
  bring_in_head();
  EXPECT_EQ(evict() > 0, true) << "it did not change";
  bring_in_head();
  for (const std::string_view body : {"first", "second", "third"})
    EXPECT_EQ(receive().content->body(), body);
  queue.check_invariants();
}

TEST_F(StockTest, WhatIsLeftOfAPackIsWrittenOneByOne) {
  send_many(3);
  checkpoint();
  Message& in_flight = receive();
  queue.remove(receive(), now);
  EXPECT_EQ(evict(), 0U) << "the store has it, but not by itself";
  EXPECT_EQ(queue.stock().evict_contents(SIZE_MAX), 0U);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 2U) << "one waits, one is in flight";
  EXPECT_EQ(messages_stored(), 2U);
  EXPECT_GT(evict(), 0U);
  EXPECT_GT(queue.stock().evict_contents(SIZE_MAX), 0U);
  queue.remove(in_flight, now);
  bring_in_head();
  EXPECT_EQ(receive().seq, Seq(3));
  queue.check_invariants();
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 1U);
}

TEST_F(StockTest, APackWhoseFirstMessageIsGoneIsErased) {
  send_many(3);
  checkpoint();
  queue.remove(receive(), now);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 2U);
  EXPECT_EQ(messages_stored(), 2U);
}

TEST_F(StockTest, APackIsErasedWithItsChunk) {
  send_many(3);
  checkpoint();
  drain();
  checkpoint();
  EXPECT_EQ(entries.size(), 1U) << "only the queue itself is left";
}

TEST_F(StockTest, APackSomeOfWhichExpiresIsBroughtIn) {
  send();
  now += 10s;
  send_many(2);
  checkpoint();
  evict();
  now += std::chrono::seconds(queue.attributes().retention_seconds) - 10s;
  queue.advance(now);
  EXPECT_TRUE(queue.stalled());
  ASSERT_TRUE(read_wanted());
  EXPECT_FALSE(queue.stalled());
  EXPECT_EQ(queue.counts().visible, 2U);
  EXPECT_EQ(receive().seq, Seq(2));
  queue.check_invariants();
}

TEST_F(StockTest, MembersAmongThemselvesAreWrittenAsASeries) {
  send_many(5);
  const Batch first = save();
  ASSERT_EQ(first.series.size(), 2U);
  EXPECT_EQ(first.series[0].entries.size(), 3U);
  EXPECT_TRUE(first.series[0].packed);
  EXPECT_EQ(first.series[1].entries.size(), 2U);
  EXPECT_FALSE(first.series[1].packed) << "more may join them";
  commit(first);
  send();
  const Batch second = save();
  ASSERT_EQ(second.series.size(), 1U);
  EXPECT_EQ(second.series[0].entries.size(), 1U) << "the others are there";
  commit(second);
  EXPECT_EQ(keys(KeyType::kMessage), 1U + 3);
  EXPECT_EQ(messages_stored(), 6U);
}

TEST_F(StockTest, MembersWithAStrangerAmongThemAreWrittenOneByOne) {
  send_many(2);
  send("late", 10s);
  const Batch batch = save();
  EXPECT_TRUE(batch.series.empty());
  commit(batch);
  EXPECT_EQ(keys(KeyType::kMessage), 3U);
}

TEST_F(StockTest, WhatACheckpointHasStillToWriteStaysInMemory) {
  send_many(3);
  checkpoint();
  queue.remove(receive(), now);
  begin_save();
  EXPECT_EQ(evict(), 0U);
  commit(end_save());
  EXPECT_GT(evict(), 0U);
}

TEST_F(StockTest, AMessageThatComesBackAfterACheckpointBeganHadLeft) {
  send();
  checkpoint();
  auto owned = queue.depart(*queue.next_to_receive(nullptr).message, now);
  begin_save();
  queue.departure_refused(std::move(owned), now);
  commit(end_save());
  EXPECT_EQ(keys(KeyType::kMessage), 0U);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 1U);
}

TEST_F(StockTest, ChunksThatBecomeOneAfterACheckpointBeganWereTwo) {
  send_many(2);
  Message& in_flight = receive();
  checkpoint();
  evict();
  send();
  checkpoint();
  queue.remove(in_flight, now);
  begin_save();
  EXPECT_GT(evict(), 0U);
  EXPECT_EQ(chunks(), Chunks{2});
  commit(end_save());
  EXPECT_EQ(keys(KeyType::kChunk), 2U);
  constexpr std::size_t kMembersAt = 1 + 8;  // Behind the group, which is empty, and `until`.
  const std::string& first = entries.lower_bound(all_of(KeyType::kChunk).begin)->second;
  EXPECT_EQ(first[kMembersAt], 1);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kChunk), 1U);
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
  EXPECT_GT(queue.stock().evict(1, false), 0U);
  EXPECT_TRUE(lane().last_chunk->is_cold()) << "it is received last";
  EXPECT_EQ(queue.stock().evict(SIZE_MAX, false), 0U);
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
  for (Chunk* chunk : {first, first->next->next}) queue.stock().want_chunk(*chunk);
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

TEST_F(StockTest, AStrangerAndWhatWasRemovedSinceAreNotBroughtInAsMembers) {
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

TEST_F(StockTest, AReadThatWasMadeBeforeACheckpointEndedIsMadeAgain) {
  send_many(3);
  Message& first_gone = send("late", 10s);
  Message& then_gone = send("late", 10s);
  send();
  for (int i = 0; i < 3; ++i) queue.remove(receive(), now);
  checkpoint();
  evict();
  queue.want(queue.next_to_receive(nullptr));
  const auto reads = wanted();
  ASSERT_EQ(reads.size(), 1U);
  const auto found = read(reads.front());
  // What was read is erased, and then forgotten that it was.
  queue.remove(first_gone, now);
  checkpoint();
  queue.remove(then_gone, now);
  checkpoint();
  ASSERT_TRUE(queue.install(reads.front(), found, now));
  EXPECT_TRUE(lane().front->is_cold());
  ASSERT_TRUE(read_wanted());
  EXPECT_EQ(receive().seq, Seq(6));
}

TEST_F(StockTest, AStoreThatLacksAMessageIsDamaged) {
  send_many(2);
  checkpoint();
  send();
  checkpoint();
  evict();
  entries.erase(std::prev(entries.end()));
  queue.want(queue.next_to_receive(nullptr));
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
  queue.want(queue.next_to_receive(nullptr));
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
  EXPECT_TRUE(lane().front->is_cold()) << "contents stay where they are";
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

TEST_F(StockTest, AStrangersHomeOutlivesItsMembers) {
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

TEST_F(StockTest, ADelayedMessageIsAStrangerUntilItIsDueAndThenTakesItsPlace) {
  send("late", 10s);
  send("soon");
  EXPECT_EQ(chunks(), (Chunks{1}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kStranger), 1U);
  now += 10s;
  queue.advance(now);
  EXPECT_EQ(chunks(), (Chunks{2}));
  checkpoint();
  EXPECT_EQ(keys(KeyType::kStranger), 0U);
  EXPECT_EQ(receive().content->body(), "late") << "it was sent first";
}

TEST_F(StockTest, AContentLeavesMemoryWhileItsRecordStays) {
  send("hello");
  Message& message = receive();
  EXPECT_EQ(queue.stock().evict_contents(SIZE_MAX), 0U) << "the store does not have it yet";
  checkpoint();
  EXPECT_GT(queue.stock().evict_contents(SIZE_MAX), 0U);
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
  EXPECT_EQ(queue.stock().name.incarnation, 1U);
  send();
  const Batch batch = save();
  EXPECT_TRUE(batch.erased.empty()) << "however many messages there were";
  commit(batch);
  EXPECT_EQ(keys(KeyType::kMessage), 1U);
  EXPECT_EQ(keys(KeyType::kChunk), 1U);
  EXPECT_EQ(keys(KeyType::kStranger), 0U);
}

TEST_F(StockTest, AReadOfWhatWasPurgedSinceChangesNothing) {
  send_many(3);
  checkpoint();
  evict();
  queue.want(queue.next_to_receive(nullptr));
  const auto old = queue.purge(now);
  send("new");
  ASSERT_TRUE(read_wanted());
  EXPECT_EQ(queue.counts().visible, 1U);
  EXPECT_EQ(receive().content->body(), "new");
  queue.check_invariants();
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes)
    for (const int shift : {4, 0}) out += "0123456789abcdef"[(byte >> shift) & 0xF];
  return out;
}

// The example of docs/formats.md.
TEST_F(StockTest, WhatIsWrittenIsWhatTheDocumentationShows) {
  send("waits");
  send("late", 10s);
  const Batch batch = save();
  std::map<std::string, std::string> heads;
  for (const Put& put : batch.puts) heads[hex(put.key)] = hex(put.head);
  heads.erase(hex(queue_key(queue.id)));
  const std::map<std::string, std::string> shown{
      {"030000000000000007"
       "00000000"
       "99aa06d3014798d86001c324468d497f"
       "0000000000000001",
       "00"
       "0200000000000000"
       "01000000"
       "0100000000000000"
       "0100000000000000"
       "02000000"
       "91000000"
       "0068e5cf8b010000"
       "0068e5cf8b010000"
       "0068e5cf8b010000"
       "0068e5cf8b010000"
       "0000000000000000"
       "00"},
      {"040000000000000007"
       "00000000"
       "0000000000000002",
       "d8984701d306aa99"
       "7f498d4624c30160"
       "0100000000000000"
       "0068e5cf8b010000"
       "0068e5cf8b010000"
       "108fe5cf8b010000"
       "0000000000000000"
       "0000000000000000"
       "00000000"
       "00"
       "00"},
      {"080000000000000007"
       "00000000"
       "99aa06d3014798d86001c324468d497f"
       "0000000000000001",
       "09"
       "80d095ffbc31"
       "00"
       "00"
       "00"},
      {"080000000000000007"
       "00000000"
       "99aa06d3014798d86001c324468d497f"
       "0000000000000002",
       "0b"
       "80d095ffbc31"
       "00"
       "a09c01"
       "00"},
  };
  EXPECT_EQ(heads, shown);
}

TEST_F(StockTest, APackIsWhatTheDocumentationShows) {
  send_many(3);
  now += 1s;
  const Batch batch = save();
  const std::string content(queue.find(Seq(1))->content->encoded());
  std::map<std::string, std::string> values;
  batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr&) {
    values[hex(key)] = hex(head);
  });
  const std::string entry =
      "0a"
      "0980d095ffbc31000000";
  const std::string encoded = hex(std::string(1, static_cast<char>(content.size()))) + hex(content);
  EXPECT_EQ(values["080000000000000007"
                   "00000000"
                   "99aa06d3014798d86001c324468d497f"
                   "0000000000000001"],
            "00"
            "00" +
                entry + encoded + "01" + entry + encoded + "01" + entry + encoded);
  EXPECT_TRUE(values["030000000000000007"
                     "00000000"
                     "99aa06d3014798d86001c324468d497f"
                     "0000000000000001"]
                  .ends_with("01"));
}

TEST_F(StockTest, AChunkOfTheFirstVersionIsNoPack) {
  send_many(2);
  checkpoint();
  const Key key = chunk_key(queue.stock().name, lane_name(""), Seq(1));
  std::string value = entries.at(std::string(key));
  value.pop_back();
  Stock loaded(queue.stock().name, false, memory);
  const auto chunk = loaded.load_chunk(lane_name(""), Seq(1), value);
  ASSERT_TRUE(chunk);
  EXPECT_EQ((*chunk)->members, 2U);
  EXPECT_EQ((*chunk)->pack, Seq());
}

TEST(StoredMessages, APackThatIsCutShortIsDamaged) {
  std::vector<StoredMessage> found;
  const Key key = message_key({QueueId(7)}, lane_name(""), Seq(1));
  Message message;
  message.seq = Seq(1);
  message.content = Content::make({});
  Series series = series_between({QueueId(7)}, lane_name(""), Seq(1), Seq(2), 2);
  series.packed = true;
  add_message(series, message);
  message.seq = Seq(2);
  add_message(series, message);
  std::string value;
  series.for_each([&](std::string_view, std::string_view all, const ContentPtr&) { value = all; });
  ASSERT_TRUE(parse_stored_messages(key, value, true, found));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].seq, Seq(2));
  for (std::size_t size = 2; size < value.size(); ++size) {
    found.clear();
    const Status status =
        parse_stored_messages(key, std::string_view(value).substr(0, size), true, found);
    EXPECT_TRUE(!status || found.size() == 1) << size;
  }
}

// Once, its record was put and erased in one checkpoint.
TEST_F(StockTest, ADelayedMessageThatIsDueAndReceivedBetweenTwoCheckpointsKeepsItsRecord) {
  const Message& late = send("late", 10s);
  const Key record = stranger_key(queue.stock().name, late.seq);
  save();
  now += 10s;
  queue.advance(now);
  receive();
  const Batch batch = save();
  EXPECT_EQ(std::ranges::count(batch.erased, record), 0);
  EXPECT_EQ(std::ranges::count(batch.puts, record, &Put::key), 1);
}

TEST_F(StockTest, AQueueThatTheStoreNeverKnewHasNothingToErase) {
  send();
  Batch batch;
  queue.erase_all(batch);
  EXPECT_TRUE(batch.empty());
  checkpoint();
  queue.erase_all(batch);
  commit(batch);
  EXPECT_TRUE(entries.empty());
}

}  // namespace
}  // namespace stanchion::engine
