// What checkpoints write about a queue's messages.
#include <algorithm>

#include "engine/stock_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

std::size_t puts_of(const Batch& batch) {
  std::size_t count = 0;
  batch.for_each_put([&](auto&&...) { ++count; });
  return count;
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

TEST_F(StockTest, WhatTheNextCheckpointErasesIsCounted) {
  send_many(6);
  Message& first = receive();
  Message& second = receive();
  Message& third = receive();
  checkpoint();
  EXPECT_EQ(memory.to_erase, 0U);
  queue.remove(first, now);
  EXPECT_EQ(memory.to_erase, 2U) << "its entry and its record";
  begin_save();
  queue.remove(second, now);
  EXPECT_EQ(memory.to_erase, 2U) << "the checkpoint that has begun erases the others";
  commit(end_save());
  EXPECT_EQ(memory.to_erase, 2U);
  queue.remove(third, now);
  EXPECT_EQ(memory.to_erase, 4U) << "two records, the chunk, and all that was in it at once";
  queue.check_invariants();
  checkpoint();
  EXPECT_EQ(memory.to_erase, 0U);
}

TEST_F(StockTest, WhatDidNotChangeIsNotWrittenAgain) {
  send_many(7);
  checkpoint();
  const Batch batch = save();
  EXPECT_EQ(batch.puts.size(), 1U) << "the queue's own record";
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
  EXPECT_EQ(keys(KeyType::kDetached), 0U) << "nothing was in flight then";
  checkpoint();
  EXPECT_EQ(messages_stored(), 7U) << "one has gone, one has come";
  EXPECT_EQ(keys(KeyType::kDetached), 1U);
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
  EXPECT_EQ(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kMessage), 2U) << "one waits, one is in flight";
  EXPECT_EQ(messages_stored(), 2U);
  EXPECT_GT(evict(), 0U);
  EXPECT_GT(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U);
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

TEST_F(StockTest, MembersWithADetachedMessageAmongThemAreWrittenOneByOne) {
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
  auto owned = queue.depart(*queue.next_to_receive().message, now);
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
  constexpr std::size_t kMembersAt = 1 + 8;  // After the group, which is empty, and `until`.
  const std::string& first = entries.lower_bound(all_of(KeyType::kChunk).begin)->second;
  EXPECT_EQ(first[kMembersAt], 1);
  checkpoint();
  EXPECT_EQ(keys(KeyType::kChunk), 1U);
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

// A bug once: its record was put and erased in one checkpoint.
TEST_F(StockTest, ADelayedMessageThatIsDueAndReceivedBetweenTwoCheckpointsKeepsItsRecord) {
  const Message& late = send("late", 10s);
  const Key record = detached_key(queue.stock().name(), late.seq);
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
