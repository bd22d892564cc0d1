// The containers that queues are made of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/deduplication.h"
#include "engine/hash_places.h"
#include "engine/indexed_heap.h"
#include "engine/message_table.h"
#include "engine/move_task.h"
#include "engine/receive_attempts.h"
#include "engine/stock.h"
#include "engine/transfers.h"
#include "model/limits.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

constexpr Instant kStart = from_millis(1'700'000'000'000);

struct Element {
  int key = 0;
  std::uint32_t index = kNoIndex;
};
using Heap = IndexedHeap<Element, int, &Element::index>;

TEST(IndexedHeap, GivesItsElementsInOrder) {
  std::mt19937 random(1);
  std::vector<Element> elements(1'000);
  Heap heap;
  for (Element& e : elements) heap.push(e, e.key = static_cast<int>(random() % 500));
  std::vector<int> out;
  while (!heap.empty()) {
    ASSERT_EQ(heap.top_key(), heap.top().key);
    out.push_back(heap.top_key());
    heap.remove(heap.top());
  }
  EXPECT_EQ(out.size(), elements.size());
  EXPECT_TRUE(std::ranges::is_sorted(out));
}

TEST(IndexedHeap, StaysSoundUnderAnyMixOfChanges) {
  std::mt19937 random(2);
  std::vector<Element> elements(200);
  Heap heap;
  for (int step = 0; step < 20'000; ++step) {
    Element& e = elements[random() % elements.size()];
    if (Heap::holds(e) && random() % 3 == 0) {
      heap.remove(e);
    } else {
      heap.set(e, e.key = static_cast<int>(random() % 1'000));
    }
    if (step % 97 == 0) {
      ASSERT_TRUE(heap.is_sound());
    }
  }
  ASSERT_TRUE(heap.is_sound());
  const auto held = std::ranges::count_if(elements, [](auto& e) { return Heap::holds(e); });
  EXPECT_EQ(static_cast<std::size_t>(held), heap.size());
  for (const Element& e : elements) EXPECT_TRUE(!Heap::holds(e) || heap.key_of(e) == e.key);
}

std::unique_ptr<Message> message_of(std::uint64_t seq, std::string_view group = "") {
  auto message = std::make_unique<Message>();
  message->seq = Seq(seq);
  ContentParts parts;
  parts.body = "x";
  parts.group = group;
  message->content = Content::make(parts);
  return message;
}

TEST(MessageTable, FindsWalksAndGivesBackWhatWasPutIn) {
  MessageTable table;
  for (const std::uint64_t seq : {1, 2, 63, 64, 65, 1'000, 1'000'000})
    table.insert(message_of(seq));
  EXPECT_EQ(table.size(), 7U);
  EXPECT_EQ(table.first()->seq, Seq(1));
  EXPECT_EQ(table.find(Seq(64))->seq, Seq(64));
  EXPECT_EQ(table.find(Seq(3)), nullptr);
  EXPECT_EQ(table.find(Seq(2'000'000)), nullptr);
  std::vector<std::uint64_t> order;
  table.for_each([&](const Message& m) { order.push_back(m.seq.value()); });
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 63, 64, 65, 1'000, 1'000'000}));
  EXPECT_EQ(table.extract(Seq(1))->seq, Seq(1));
  EXPECT_EQ(table.find(Seq(1)), nullptr);
  EXPECT_EQ(table.first()->seq, Seq(2));
  table.clear();
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.first(), nullptr);
  EXPECT_EQ(table.footprint(), 0U);
}

TEST(MessageTable, TakesAMessageThatComesBackBehindTheEnd) {
  MessageTable table;
  table.insert(message_of(10));
  table.insert(message_of(5'000));
  auto away = table.extract(Seq(10));
  table.insert(std::move(away));
  EXPECT_EQ(table.first()->seq, Seq(10));
}

class Lanes : public testing::Test {
 protected:
  static Message& put(Stock& stock, std::uint64_t seq, std::string_view group) {
    auto message = message_of(seq, group);
    message->retained_from = kStart;
    return stock.insert(std::move(message), kStart, kStart, Instant::min());
  }
  static void take(Stock& stock, Message& message) {
    stock.hand_out(message, kStart + 30s, kStart);
  }
  static void give_back(Stock& stock, Message& message) { stock.make_ready(message, kStart); }

  static const Lane* next(const Stock& stock) { return stock.next_to_receive({}).lane; }

  Memory memory_;
  Stock standard_{StockName{QueueId(1)}, false, memory_};
  Stock fifo_{StockName{QueueId(2)}, true, memory_};
};

TEST_F(Lanes, HeadIsTheLowestSeqOfLineAndReturned) {
  Message& one = put(standard_, 1, "");
  Message& two = put(standard_, 2, "");
  put(standard_, 3, "");
  const Lane& lane = *one.lane;
  take(standard_, one);
  take(standard_, two);
  EXPECT_EQ(lane.head()->seq, Seq(3));
  give_back(standard_, two);
  EXPECT_EQ(lane.head()->seq, Seq(2));
  give_back(standard_, one);
  EXPECT_EQ(lane.head()->seq, Seq(1));
  EXPECT_TRUE(lane.is_sound());
  take(standard_, one);
  EXPECT_EQ(lane.head()->seq, Seq(2));
  EXPECT_TRUE(lane.is_sound());
}

TEST_F(Lanes, MessagesLeaveTheLineFromAnyPlace) {
  std::vector<Message*> messages;
  for (std::uint64_t seq = 1; seq <= 5; ++seq) messages.push_back(&put(standard_, seq, "t"));
  const Lane& lane = *messages[0]->lane;
  for (const std::size_t i : {2, 4, 0}) {
    standard_.erase(*messages[i], kStart);
    standard_.check_invariants();
  }
  EXPECT_EQ(lane.waiting, 2U);
  EXPECT_EQ(lane.front()->first->seq, Seq(2));
  EXPECT_EQ(lane.front()->last->seq, Seq(4));
}

TEST_F(Lanes, AFifoLaneThatWasReceivedFromGoesToTheBackOfTheLine) {
  Message& a1 = put(fifo_, 1, "a");
  put(fifo_, 2, "a");
  Message& b1 = put(fifo_, 3, "b");
  EXPECT_EQ(next(fifo_)->group, "a");
  take(fifo_, a1);
  EXPECT_EQ(next(fifo_)->group, "b");
  give_back(fifo_, a1);
  EXPECT_EQ(next(fifo_)->group, "b") << "though the head of a is older";
  take(fifo_, b1);
  EXPECT_EQ(next(fifo_)->group, "a");
  fifo_.check_invariants();
}

TEST_F(Lanes, AFifoLaneIsHeldBackByEarlierMessagesOnly) {
  Message& one = put(fifo_, 1, "a");
  Message& two = put(fifo_, 2, "a");
  Message& three = put(fifo_, 3, "a");
  put(fifo_, 4, "a");
  const Lane& lane = *one.lane;
  for (Message* message : {&one, &two, &three}) take(fifo_, *message);
  EXPECT_EQ(lane.first_blocker, &one);
  give_back(fifo_, two);
  EXPECT_EQ(next(fifo_), nullptr) << "the first is still away";
  give_back(fifo_, one);
  EXPECT_EQ(next(fifo_), &lane) << "only a later one is away";
  take(fifo_, one);
  take(fifo_, two);
  EXPECT_EQ(lane.first_blocker, &one) << "put where it belongs";
  EXPECT_EQ(lane.last_blocker, &three);
  fifo_.check_invariants();
}

TEST_F(Lanes, IdleLaneIsGone) {
  Message& a1 = put(fifo_, 1, "a");
  EXPECT_EQ(fifo_.lanes().size(), 1U);
  take(fifo_, a1);
  EXPECT_EQ(next(fifo_), nullptr);
  EXPECT_EQ(fifo_.lanes().size(), 1U) << "it is locked by what is in flight";
  fifo_.erase(a1, kStart);
  EXPECT_EQ(fifo_.lanes().size(), 0U);
}

TEST(RecentSum, HalvesEveryMinuteAndForgetsInTheEnd) {
  const Instant start = from_millis(60'000 * 1'000);
  RecentSum sum;
  sum.add(1'024, start);
  EXPECT_EQ(sum.at(start), 1'024U);
  EXPECT_EQ(sum.at(start + 1min), 512U);
  EXPECT_EQ(sum.at(start + 10min), 1U);
  EXPECT_EQ(sum.at(start + 24h), 0U);
  sum.add(100, start + 1min);
  EXPECT_EQ(sum.at(start + 1min), 612U);
}

// Compared with a map that cannot be wrong; few bits of hash, so that many collide.
TEST(HashPlaces, HoldsWhatAMapWouldHold) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  HashPlaces places;
  std::map<std::uint32_t, std::uint32_t> hashes;  // By place.
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    // First grows, then shrinks.
    if (below(10) < (step < 10'000 ? 6U : 3U)) {
      const auto hash = below(64) * 0x01000401U;
      places.expect(hash);
      places.insert(hash, step);
      hashes[step] = hash;
    } else if (!hashes.empty()) {
      auto some = hashes.lower_bound(below(step));
      if (some == hashes.end()) some = hashes.begin();
      places.erase(some->second, some->first);
      hashes.erase(some);
    }
    ASSERT_EQ(places.size(), hashes.size());
    if (step % 100 != 0) continue;
    for (const auto& [place, hash] : hashes)
      ASSERT_EQ(places.find(hash, [&](std::uint32_t p) { return p == place; }), place);
    std::map<std::uint32_t, std::uint32_t> visited;
    places.for_each([&](std::uint32_t hash, std::uint32_t place) { visited[place] = hash; });
    ASSERT_EQ(visited, hashes);
  }
  for (const auto& [place, hash] : hashes) places.erase(hash, place);
  EXPECT_EQ(places.size(), 0U);
  EXPECT_FALSE(places.find(0, [](std::uint32_t) { return true; }));
}

TEST(DeduplicationWindow, RemembersForFiveMinutes) {
  DeduplicationWindow window;
  const Hash128 key = DeduplicationWindow::key_of(DeduplicationScope::kQueue, "g", "id");
  EXPECT_EQ(window.find(key), nullptr);
  EXPECT_EQ(window.next_deadline(), kNever);
  window.remember(key, {MessageId{}, Seq(7)}, kStart);
  ASSERT_NE(window.find(key), nullptr);
  EXPECT_EQ(window.find(key)->seq, Seq(7));
  EXPECT_EQ(window.next_deadline(), kStart + 5min);
  window.expire(kStart + 5min - 1ms);
  EXPECT_EQ(window.size(), 1U);
  window.expire(kStart + 5min);
  EXPECT_EQ(window.size(), 0U);
  EXPECT_EQ(window.find(key), nullptr);
}

TEST(DeduplicationWindow, ScopeDecidesWhetherTheGroupIsPartOfTheKey) {
  const auto key = [](DeduplicationScope scope, std::string_view group, std::string_view id) {
    return DeduplicationWindow::key_of(scope, group, id);
  };
  const auto queue = DeduplicationScope::kQueue, group = DeduplicationScope::kMessageGroup;
  EXPECT_EQ(key(queue, "a", "id"), key(queue, "b", "id"));
  EXPECT_NE(key(group, "a", "id"), key(group, "b", "id"));
  EXPECT_NE(key(group, "ab", "c"), key(group, "a", "bc"));
  EXPECT_NE(key(group, "a", "id"), key(queue, "a", "id"));
}

Hash128 nth_key(std::uint64_t n) {
  return DeduplicationWindow::key_of(DeduplicationScope::kQueue, "", std::to_string(n));
}

// One every millisecond, from kStart on.
void remember_some(DeduplicationWindow& window, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t n = first; n < first + count; ++n)
    window.remember(nth_key(n), {MessageId{}, Seq(n)}, kStart + std::chrono::milliseconds(n));
}

TEST(DeduplicationWindow, FindsEachOfManyUntilItExpires) {
  constexpr std::uint64_t kMany = 20'000;
  DeduplicationWindow window;
  remember_some(window, 0, kMany);
  for (std::uint64_t n = 0; n < kMany; ++n) ASSERT_EQ(window.find(nth_key(n))->seq, Seq(n));
  EXPECT_EQ(window.find(nth_key(kMany)), nullptr);
  window.expire(kStart + 5min + 12'344ms);
  EXPECT_EQ(window.size(), kMany - 12'345);
  EXPECT_EQ(window.next_deadline(), kStart + 5min + 12'345ms);
  for (std::uint64_t n = 0; n < kMany; ++n)
    ASSERT_EQ(window.find(nth_key(n)) != nullptr, n >= 12'345);
  window.expire(kStart + 6min);
  EXPECT_EQ(window.size(), 0U);
  remember_some(window, kMany, 1);
  EXPECT_EQ(window.find(nth_key(kMany))->seq, Seq(kMany));
}

// What the store holds after the checkpoints of a window.
class SavedWindow {
 public:
  // How many pages it wrote.
  std::size_t save(DeduplicationWindow& window) {
    Batch batch;
    window.begin_save(batch, kStock);
    window.save_some(SIZE_MAX);
    EXPECT_FALSE(window.has_pending());
    for (const KeyRange& range : batch.erased_ranges) {
      for (const Put& put : batch.puts)
        EXPECT_FALSE(put.key.view() >= range.begin && put.key.view() < range.end);
      entries_.erase(entries_.lower_bound(range.begin), entries_.lower_bound(range.end));
    }
    for (const Put& put : batch.puts) entries_[std::string(put.key.view())] = put.head;
    return batch.puts.size();
  }

  DeduplicationWindow load(Instant at) const {
    DeduplicationWindow window;
    for (const auto& [key, value] : entries_)
      EXPECT_TRUE(window.load(kStock, key, value, kEnd, at));
    return window;
  }

  std::size_t pages() const { return entries_.size(); }
  const std::string& first_key() const { return entries_.begin()->first; }
  const std::string& first() const { return entries_.begin()->second; }

  static constexpr StockName kStock{QueueId(3), 1};
  static constexpr Seq kEnd{2'000};  // Of the numbers that the queue has given.

 private:
  std::map<std::string, std::string> entries_;
};

std::vector<std::uint64_t> seqs_of(const DeduplicationWindow& window) {
  std::vector<std::uint64_t> seqs;
  window.for_each([&](const Hash128& key, const DeduplicationWindow::Original& original, Instant) {
    EXPECT_EQ(window.find(key)->seq, original.seq);
    seqs.push_back(original.seq.value());
  });
  return seqs;
}

TEST(DeduplicationWindow, IsLoadedAsItWasSaved) {
  DeduplicationWindow window;
  SavedWindow saved;
  EXPECT_EQ(saved.save(window), 0U);
  remember_some(window, 0, 300);
  EXPECT_EQ(saved.save(window), 2U);
  EXPECT_EQ(saved.save(window), 0U) << "nothing changed";
  remember_some(window, 300, 10);
  EXPECT_EQ(saved.save(window), 1U) << "the last page grew";
  EXPECT_EQ(saved.pages(), 2U);

  DeduplicationWindow loaded = saved.load(kStart);
  EXPECT_EQ(seqs_of(loaded), seqs_of(window));
  EXPECT_EQ(loaded.next_deadline(), window.next_deadline());
  remember_some(loaded, 310, 1);
  EXPECT_EQ(saved.save(loaded), 1U) << "the loaded page grew";
  EXPECT_EQ(seqs_of(saved.load(kStart)).size(), 311U);
}

TEST(DeduplicationWindow, WhatExpiredLeavesTheStorePageByPage) {
  DeduplicationWindow window;
  SavedWindow saved;
  remember_some(window, 0, 600);
  saved.save(window);
  ASSERT_EQ(saved.pages(), 3U);
  const Instant later = kStart + 5min + 260ms;
  window.expire(later);
  // An id that expired and comes again, while its old page still exists.
  window.remember(nth_key(258), {MessageId{}, Seq(1'000)}, later);
  saved.save(window);
  EXPECT_EQ(saved.pages(), 2U);
  DeduplicationWindow loaded = saved.load(later);
  EXPECT_EQ(seqs_of(loaded), seqs_of(window));
  EXPECT_EQ(loaded.find(nth_key(258))->seq, Seq(1'000));

  loaded.expire(kStart + 1h);
  EXPECT_EQ(saved.save(loaded), 0U);
  EXPECT_EQ(saved.pages(), 0U);
}

TEST(DeduplicationWindow, PagesThatExpiredBeforeTheyWereLoadedLeaveTheStoreToo) {
  DeduplicationWindow window;
  SavedWindow saved;
  remember_some(window, 0, 300);
  saved.save(window);
  DeduplicationWindow loaded = saved.load(kStart + 1h);
  EXPECT_EQ(loaded.size(), 0U);
  saved.save(loaded);
  EXPECT_EQ(saved.pages(), 0U);
}

TEST(DeduplicationWindow, DamageIsNoticed) {
  DeduplicationWindow window;
  SavedWindow saved;
  remember_some(window, 0, 2);
  saved.save(window);
  const std::string good = saved.first();
  const auto refuses = [&](const std::string& bytes, Seq end = SavedWindow::kEnd) {
    return !DeduplicationWindow().load(SavedWindow::kStock, saved.first_key(), bytes, end, kStart);
  };
  EXPECT_FALSE(refuses(good));
  EXPECT_TRUE(refuses(""));
  EXPECT_TRUE(refuses(good.substr(1)));
  EXPECT_TRUE(refuses(good + good)) << "the same id twice";
  std::string many;
  for (int i = 0; i < 200; ++i) many += good;
  EXPECT_TRUE(refuses(many));
  EXPECT_TRUE(refuses(good.substr(48) + good.substr(0, 48))) << "in the wrong order";
  EXPECT_TRUE(refuses(good.substr(48))) << "under the key of another";
  EXPECT_TRUE(refuses(good, Seq(1))) << "of a message that was never sent";
}

TEST(ReceiveAttempts, ReplacedAttemptLivesAsLongAsItsLatestForm) {
  ReceiveAttempts attempts;
  attempts.remember("id", {.items = {{Seq(1), 1, kStart}}, .expires = kStart + 5min});
  attempts.remember("id", {.items = {{Seq(2), 1, kStart}}, .expires = kStart + 6min});
  attempts.expire(kStart + 5min);
  ASSERT_NE(attempts.find("id"), nullptr);
  EXPECT_EQ(attempts.find("id")->items.front().seq, Seq(2));
  EXPECT_EQ(attempts.next_deadline(), kStart + 6min);
  attempts.expire(kStart + 6min);
  EXPECT_EQ(attempts.find("id"), nullptr);
  EXPECT_EQ(attempts.next_deadline(), kNever);
}

MoveTask task_of(std::int64_t rate, std::uint64_t to_move) {
  MoveTask task;
  task.max_per_second = rate;
  task.to_move = to_move;
  task.started = kStart;
  task.next_micros = to_millis(kStart) * 1'000;
  return task;
}

TEST(MoveTask, MovesAsManyPerSecondAsItsRateSays) {
  for (const std::int64_t rate : {1, 3, 7, 100, 499, 500}) {
    MoveTask task = task_of(rate, 1'000'000);
    std::uint64_t went = 0;
    Instant now = kStart;
    while (now < kStart + 10s) {
      const std::uint64_t allowed = task.allowed(now);
      task.went(allowed, now);
      task.in_transit = 0;
      task.moved += allowed;
      went += allowed;
      now = std::max(now + 1ms, task.next_allowed());
    }
    EXPECT_NEAR(static_cast<double>(went), static_cast<double>(rate) * 10, 1.0) << rate;
  }
}

TEST(MoveTask, PauseIsNotFollowedByABurst) {
  MoveTask task = task_of(100, 1'000'000);
  EXPECT_LE(task.allowed(kStart + 1h), 11U);
}

TEST(MoveTask, WithoutARateOnlyWhatIsUnderWayLimitsIt) {
  MoveTask task = task_of(0, 5'000);
  EXPECT_EQ(task.allowed(kStart), limits::kMoveTaskInTransitMax);
  task.went(900, kStart);
  EXPECT_EQ(task.allowed(kStart), limits::kMoveTaskInTransitMax - 900);
  task.moved = 4'500;
  task.in_transit = 400;
  EXPECT_EQ(task.allowed(kStart), 100U);
  EXPECT_TRUE(task.wants_more());
  task.in_transit = 500;
  EXPECT_EQ(task.allowed(kStart), 0U);
  EXPECT_FALSE(task.wants_more());
  EXPECT_FALSE(task.is_through(10));
  task.moved = 5'000;
  task.in_transit = 0;
  EXPECT_TRUE(task.is_through(10));
}

TEST(Inbox, AcceptsEachNumberOfASourceOnceAndForgetsWhatIsSettled) {
  Inbox inbox;
  const ShardIndex a(1), b(2);
  EXPECT_FALSE(inbox.has(a, TransferNo(1)));
  inbox.accept(a, TransferNo(1), TransferNo(1));
  inbox.accept(a, TransferNo(3), TransferNo(1));
  EXPECT_TRUE(inbox.has(a, TransferNo(1)));
  EXPECT_FALSE(inbox.has(a, TransferNo(2)));
  EXPECT_FALSE(inbox.has(b, TransferNo(1)));
  EXPECT_EQ(inbox.remembered(), 2U);
  inbox.accept(a, TransferNo(4), TransferNo(3));
  EXPECT_EQ(inbox.remembered(), 2U) << "3 and 4";
  EXPECT_TRUE(inbox.has(a, TransferNo(1))) << "numbers below the settled ones never come again";
  EXPECT_TRUE(inbox.has(a, TransferNo(2)));
}

TEST(Inbox, SaysWhatItKnowsOfTheNumbersOfASource) {
  Inbox inbox;
  const ShardIndex a(1), b(2);
  EXPECT_EQ(inbox.end(a), TransferNo());
  inbox.accept(a, TransferNo(7), TransferNo(3));
  EXPECT_EQ(inbox.settled_below(a), TransferNo(3));
  EXPECT_EQ(inbox.end(a), TransferNo(8));
  inbox.accept(a, TransferNo(8), TransferNo(9));
  EXPECT_EQ(inbox.end(a), TransferNo(9));
  EXPECT_EQ(inbox.settled_below(b), TransferNo());
}

TEST(Outbox, ResumesBehindNumbersThatMayHaveBeenUsedAndNeverGoesBack) {
  std::size_t memory = 0;
  Outbox outbox(memory);
  outbox.resume_at(TransferNo(9));
  EXPECT_EQ(outbox.next(), TransferNo(9));
  EXPECT_EQ(outbox.settled_below(), TransferNo(9));
  outbox.resume_at(TransferNo(4));
  EXPECT_EQ(outbox.next(), TransferNo(9));
}

TEST(Inbox, WhatContradictsItselfIsNotLoaded) {
  struct Source {
    std::uint32_t shard;
    std::uint64_t settled_below;
    std::vector<std::uint64_t> accepted;
  };
  const auto loads = [](const std::vector<Source>& sources) {
    std::string bytes;
    ByteWriter writer(bytes);
    writer.varint(sources.size());
    for (const Source& source : sources) {
      writer.u32(source.shard);
      writer.u64(source.settled_below);
      writer.varint(source.accepted.size());
      for (const std::uint64_t number : source.accepted) writer.u64(number);
    }
    ByteReader reader(bytes);
    return Inbox().load(reader);
  };
  EXPECT_TRUE(loads({{1, 3, {3, 4, 7}}, {2, 1, {}}}));
  EXPECT_FALSE(loads({{1, 3, {2, 4}}})) << "2 was settled";
  EXPECT_FALSE(loads({{1, 3, {4, 3}}})) << "in the wrong order";
  EXPECT_FALSE(loads({{1, 3, {4, 4}}})) << "twice";
  EXPECT_FALSE(loads({{1, 3, {4}}, {1, 3, {5}}})) << "one shard twice";
}

}  // namespace
}  // namespace stanchion::engine
