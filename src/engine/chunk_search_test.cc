// Where late messages keep early chunks alive, a lane has many chunks without members. However many
// there are, nobody walks over them.
#include <gtest/gtest.h>

#include <bit>

#include "engine/stock_test_kit.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class ChunkSearch : public StockTest {
 protected:
  // How often all searches together have come by a chunk.
  std::uint64_t looks() {
    std::uint64_t sum = 0;
    for (const Chunk* chunk = lane().first_chunk; chunk != nullptr; chunk = chunk->next)
      sum += chunk->looks;
    return sum;
  }

  // Chunks of which only one message is left, in flight or delayed by one millisecond more than the one before,
  // and behind them one with messages that wait.
  void make_chunks(int count, bool delayed) {
    for (int i = 0; i < count; ++i) {
      send_many(kChunkMessages - 1);
      send("late", delayed ? (i + 1) * 1ms : 0ms);
    }
    while (queue.has_receivable()) {
      Message& message = receive();
      if (message.content->body() != "late") queue.remove(message, now);
    }
    send_many(kChunkMessages);
    ASSERT_EQ(chunks().size(), static_cast<std::size_t>(count) + 1);
  }
};

// A tree that is balanced is no deeper than twice this, and is searched when a chunk gets its first
// member and when it loses its last.
std::uint64_t allowed(int count) {
  return 4 * static_cast<std::uint64_t>(count) *
         static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(count)) + 1);
}

TEST_F(ChunkSearch, TheFirstChunkWithMembersIsFoundWhereverLateMessagesCome) {
  for (const int count : {10, 40, 160, 640}) {
    make_chunks(count, true);
    const std::uint64_t before = looks();
    for (int i = 0; i < count; ++i) {
      now += 1ms;
      queue.advance(now);
      // It stays in flight, so that its chunk stays.
      Message& late = receive();
      ASSERT_EQ(late.content->body(), "late");
      queue.change_visibility(late, now + 1h, now);
    }
    EXPECT_EQ(lane().front(), lane().last_chunk);
    EXPECT_LT(looks() - before, allowed(count)) << count;
    queue.check_invariants();
    drain();
    while (Message* first = queue.stock().first_to_expire()) queue.remove(*first, now);
  }
}

TEST_F(ChunkSearch, WhatWasReadIsInstalledWithoutASearch) {
  for (const int count : {10, 40, 160, 640}) {
    make_chunks(count, false);
    checkpoint();
    const std::uint64_t before = looks();
    for (int i = 0; i < count; ++i) {
      ASSERT_GT(evict(), 0U);
      bring_in_head();
      ASSERT_FALSE(lane().front()->is_cold());
      checkpoint();
    }
    EXPECT_LT(looks() - before, allowed(count)) << count;
    queue.check_invariants();
    drain();
    while (Message* first = queue.stock().first_to_expire()) queue.remove(*first, now);
  }
}

TEST_F(ChunkSearch, WhatIsReadAheadIsBehindChunksWithoutMembers) {
  for (const int count : {10, 40, 160, 640}) {
    make_chunks(count, true);
    now += 1ms;
    queue.advance(now);
    ASSERT_EQ(lane().front(), lane().first_chunk);
    const std::uint64_t before = looks();
    queue.read_ahead(lane());
    EXPECT_LT(looks() - before, 8U) << count;
    drain();
    while (Message* first = queue.stock().first_to_expire()) queue.remove(*first, now);
  }
}

TEST_F(ChunkSearch, AReadOfAChunkThatIsGoneIsForgotten) {
  send_many(kChunkMessages);
  checkpoint();
  ASSERT_GT(evict(), 0U);
  queue.want(queue.next_to_receive());
  const auto reads = wanted();
  ASSERT_EQ(reads.size(), 1U);
  now += std::chrono::seconds(queue.attributes().retention_seconds);
  queue.advance(now);
  EXPECT_TRUE(chunks().empty());
  EXPECT_TRUE(queue.install(reads[0], read(reads[0]), now));
  send();
  queue.check_invariants();
  EXPECT_EQ(queue.counts().visible, 1U);
}

// The contents of detached messages, of which there may be hundreds of thousands.
TEST_F(ChunkSearch, ContentsAreEvictedSomeAtATimeAndEachIsLookedAtOnce) {
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) send("late", 30s);
  checkpoint();
  const std::size_t all = queue.stock().bytes();
  const Evicted first = queue.stock().residency().evict_contents(SIZE_MAX);
  EXPECT_GT(first.bytes, 0U);
  EXPECT_LT(first.bytes, all / 2) << "the rest in later calls";
  EXPECT_TRUE(first.more);
  int calls = 1;
  while (queue.stock().residency().evict_contents(SIZE_MAX).more) ++calls;
  EXPECT_LE(calls, 3);
  EXPECT_EQ(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U);
  queue.for_each_message([](const Message& message) { ASSERT_EQ(message.content, nullptr); });

  // One that was read meanwhile is evicted again.
  EXPECT_EQ(queue.look_for(Seq(7), true), Presence::kAskedFor);
  ASSERT_TRUE(read_wanted());
  ASSERT_NE(queue.find(Seq(7))->content, nullptr);
  EXPECT_GT(queue.stock().residency().evict_contents(SIZE_MAX).bytes, 0U);
  EXPECT_EQ(queue.find(Seq(7))->content, nullptr);
  queue.check_invariants();
}

}  // namespace
}  // namespace stanchion::engine
