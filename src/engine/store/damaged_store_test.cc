// A store that contradicts itself. RocksDB's checksums find damage by the disk; this is about
// entries that were written wrong: the store is refused, or they do no harm.
#include <gtest/gtest.h>

#include <array>

#include "engine/sample_world.h"

namespace stanchion::engine {
namespace {

class DamagedStore : public testing::Test {
 protected:
  DamagedStore() {
    SampleWorld sample;
    now = sample.world.now();
    entries = saved_of(sample.world.engine(), now);
  }

  std::size_t count_of(KeyType type) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        entries, [&](const auto& e) { return e.first[0] == static_cast<char>(type); }));
  }

  Entries entries;
  Instant now;
};

TEST_F(DamagedStore, TheSampleHasEntriesOfEveryType) {
  for (int type = 1; type <= 9; ++type)
    EXPECT_GT(count_of(static_cast<KeyType>(type)), 0U) << "type " << type;
  EXPECT_TRUE(std::ranges::any_of(entries, [](const auto& entry) {
    return entry.first[0] == static_cast<char>(KeyType::kMessage) &&
           entry.second[0] == Series::kPackMark;
  })) << "a pack";
  EXPECT_TRUE(try_store(entries, now));
}

TEST_F(DamagedStore, AnEntryThatIsMissingIsRefusedOrDoesNoHarm) {
  for (const auto& [key, value] : entries) {
    Entries damaged = entries;
    damaged.erase(key);
    try_store(damaged, now);
  }
}

TEST_F(DamagedStore, AnEntryOfAnotherSizeIsRefusedOrDoesNoHarm) {
  for (const auto& [key, value] : entries) {
    for (const std::string& other :
         {std::string(), value.substr(0, value.size() - 1), value.substr(1), value + '\0'}) {
      Entries damaged = entries;
      damaged[key] = other;
      try_store(damaged, now);
    }
  }
}

// Sanitizers make everything about ten times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStep = 7;
#else
constexpr std::size_t kStep = 1;
#endif

TEST_F(DamagedStore, AByteThatIsWrongIsRefusedOrDoesNoHarm) {
  constexpr std::array kFlips{0x01, 0x80, 0xFF};
  std::size_t flips = 0;
  for (const auto& [key, value] : entries) {
    for (std::size_t i = 0; i < value.size(); i += kStep) {
      Entries damaged = entries;
      damaged[key][i] = static_cast<char>(value[i] ^ kFlips[flips++ % kFlips.size()]);
      try_store(damaged, now);
    }
  }
}

TEST_F(DamagedStore, AnEntryUnderAnotherKeyIsRefusedOrDoesNoHarm) {
  for (const auto& [key, value] : entries) {
    for (std::size_t i = 0; i < key.size(); i += kStep) {
      Entries damaged = entries;
      damaged.erase(key);
      std::string other = key;
      other[i] = static_cast<char>(other[i] ^ 0x01);
      damaged[other] = value;
      try_store(damaged, now);
      damaged[key] = value;
      try_store(damaged, now);
    }
  }
}

// Those above allow both; these must be refused.

TEST_F(DamagedStore, AStoreWithoutTheShardsRecordIsRefused) {
  entries.erase(std::string(shard_key().view()));
  Engine engine(SampleWorld::options());
  EXPECT_FALSE(engine.load(scan_of(entries), now));
}

TEST_F(DamagedStore, AShardWithoutAPositionIsRefused) {
  std::string& shard = entries[std::string(shard_key().view())];
  shard.replace(1, sizeof(std::uint64_t), sizeof(std::uint64_t), '\0');  // Behind the version.
  Engine engine(SampleWorld::options());
  EXPECT_FALSE(engine.load(scan_of(entries), now));
}

TEST_F(DamagedStore, BytesBehindAnEntryAreRefused) {
  for (const auto& [key, value] : entries) {
    const auto type = static_cast<KeyType>(key[0]);
    // What comes behind the fields of these is the content of a message, which has its own tests.
    if (type == KeyType::kDeparture || type == KeyType::kMessage) continue;
    Entries damaged = entries;
    damaged[key] += '\0';
    EXPECT_FALSE(try_store(damaged, now)) << "type " << int{key[0]};
  }
}

TEST_F(DamagedStore, WhatIsNamedByItsContentIsRefusedUnderAnotherName) {
  for (const auto& [key, value] : entries) {
    const auto type = static_cast<KeyType>(key[0]);
    if (type != KeyType::kDeduplication && type != KeyType::kAttempt) continue;
    Entries damaged = entries;
    damaged.erase(key);
    std::string other = key;
    other.back() = static_cast<char>(other.back() ^ 0x01);
    damaged[other] = value;
    EXPECT_FALSE(try_store(damaged, now)) << "type " << int{key[0]};
  }
}

TEST_F(DamagedStore, AScanThatGivesKeysInNoOrderIsRefused) {
  const Engine::ScanStore backwards = [&](const KeyRange& range, const auto& visit) -> Status {
    for (auto it = entries.lower_bound(range.end); it != entries.lower_bound(range.begin);)
      if (--it; !visit(it->first, it->second)) break;
    return {};
  };
  Engine engine(SampleWorld::options());
  EXPECT_FALSE(engine.load(backwards, now));
}

TEST_F(DamagedStore, AScanThatGivesMoreThanWasAskedForIsRefused) {
  const Engine::ScanStore more = [&](const KeyRange& range, const auto& visit) -> Status {
    for (auto it = entries.lower_bound(range.begin); it != entries.end(); ++it)
      if (!visit(it->first, it->second)) break;
    return {};
  };
  Engine engine(SampleWorld::options());
  EXPECT_FALSE(engine.load(more, now));
}

// Whether something is refused when the store is loaded or all queues are received from.
bool is_noticed(const Entries& entries, Instant now) {
  Engine engine(SampleWorld::options());
  Instant at;
  if (!engine.load(scan_of(entries), at)) return true;
  std::vector<QueueRef> queues;
  engine.for_each_queue([&](const Queue& queue) { queues.push_back(queue.ref); });
  for (const QueueRef& queue : queues) {
    for (int i = 0; i < 5; ++i) {
      ReceiveMessage receive;
      receive.queue = queue;
      receive.max_number_of_messages = 10;
      receive.visibility_timeout = 600;
      if (!ask_of(engine, entries, receive, now)) return true;
    }
  }
  return false;
}

TEST_F(DamagedStore, AMessageOfAnotherTimeThanItsChunkKnowsIsRefused) {
  ASSERT_FALSE(is_noticed(entries, now));
  for (const auto change : {&Message::entered, &Message::retained_from}) {
    std::size_t noticed = 0;
    for (const auto& [key, value] : entries) {
      if (key[0] != static_cast<char>(KeyType::kMessage) || value[0] == Series::kPackMark) continue;
      std::vector<StoredMessage> found;
      ASSERT_TRUE(parse_stored_messages(key, value, true, found));
      Message message;
      message.seq = found.front().seq;
      message.content = found.front().content;
      message.entered = found.front().entered;
      message.retained_from = found.front().retained_from;
      message.due = found.front().due;
      message.receive_count = found.front().receive_count;
      message.first_received = found.front().first_received;
      message.*change += std::chrono::hours(1);
      KeyReader parts(key);
      parts.type();
      const StockName stock = parts.stock();
      Entries damaged = entries;
      const Put put = put_message(stock, parts.lane(), message);
      damaged[key] = put.head + std::string(put.content->encoded());
      noticed += is_noticed(damaged, now);
    }
    EXPECT_GT(noticed, 0U);
  }
}

// Whether a group may be received from is not known then.
TEST(UnreadableStore, AFifoQueueWhoseDelayedMessagesCannotBeReadIsNamedAndStaysSound) {
  TestWorld world;
  const QueueRef queue = TestWorld::ref("steps.fifo");
  world.ask(CreateQueue{queue, {{"FifoQueue", "true"}, {"DelaySeconds", "60"}}, {}});
  SendMessage request{queue, "me", {}};
  request.message.body = "later";
  request.message.group_id = "g";
  request.message.deduplication_id = "d";
  world.ask(request);
  const Entries entries = saved_of(world.engine(), world.now());
  const auto scan = [&](const KeyRange& range, const auto& visit) -> Status {
    if (range.begin[0] == static_cast<char>(KeyType::kMessage)) return fail("no such sector", EIO);
    return scan_of(entries)(range, visit);
  };
  Engine engine(SampleWorld::options());
  Instant at;
  ASSERT_TRUE(engine.load(scan, at));
  engine.check_invariants();
  EXPECT_TRUE(engine.has_unreadable());
  engine.advance(world.now() + std::chrono::seconds(61));
  engine.check_invariants();
  EXPECT_EQ(engine.take_unreadable().size(), 1U);
}

}  // namespace
}  // namespace stanchion::engine
