// The line of FIFO groups in the store: what a checkpoint writes, and what a start makes of it. The
// store is a map.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "engine/engine_test_kit.h"
#include "engine/store/store_keys.h"

namespace stanchion::engine {
namespace {

class Line : public testing::Test {
 protected:
  void SetUp() override {
    world_.get<QueueUrlResult>(CreateQueue{kQueue, {{"FifoQueue", "true"}}, {}});
  }

  void send(const std::string& group) {
    SendMessage request{kQueue, "", {}};
    request.message.body = "x";
    request.message.group_id = group;
    request.message.deduplication_id = std::to_string(++sent_);
    world_.get<SentMessage>(request);
  }
  std::string receive() {
    ReceiveMessage request;
    request.queue = kQueue;
    return world_.get<ReceiveMessageResult>(request).messages.at(0).receipt_handle;
  }
  void give_back(const std::string& receipt) {
    world_.get<NoResult>(ChangeMessageVisibility{kQueue, receipt, 0});
  }
  void remove(const std::string& receipt) { world_.get<NoResult>(DeleteMessage{kQueue, receipt}); }

  void checkpoint() {
    Engine& engine = world_.engine();
    engine.begin_checkpoint(Position(++checkpoints_), world_.now());
    while (!engine.save_some(1'000)) continue;
    const Batch batch = engine.take_checkpoint();
    for (const KeyRange& range : batch.erased_ranges)
      entries_.erase(entries_.lower_bound(range.begin), entries_.lower_bound(range.end));
    for (const Key& key : batch.erased) entries_.erase(std::string(key));
    batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
      std::string& value = entries_[std::string(key)] = head;
      if (content != nullptr) value += content->encoded();
    });
    engine.checkpoint_is_durable();
  }

  std::size_t places() const {
    const KeyRange range = all_of(KeyType::kPlace);
    return static_cast<std::size_t>(
        std::distance(entries_.lower_bound(range.begin), entries_.lower_bound(range.end)));
  }

  std::unique_ptr<Engine> loaded() const {
    auto engine = std::make_unique<Engine>(Options{});
    const auto scan = [this](const KeyRange& range, const auto& visit) -> Status {
      for (auto it = entries_.lower_bound(range.begin);
           it != entries_.end() && it->first < range.end; ++it)
        if (!visit(it->first, it->second)) break;
      return {};
    };
    Instant at;
    const auto position = engine->load(scan, at);
    if (!position) throw std::runtime_error(position.error().message);
    engine->check_invariants();
    return engine;
  }
  using Groups = std::vector<std::string>;
  Groups line() { return world_.engine().find(kQueue)->line(); }
  Groups loaded_line() const { return loaded()->find(kQueue)->line(); }

  const QueueRef kQueue = TestWorld::ref("q.fifo");
  TestWorld world_;
  std::map<std::string, std::string> entries_;
  std::uint64_t checkpoints_ = 0;
  int sent_ = 0;
};

TEST_F(Line, GroupsThatNobodyReceivedFromNeedNoPlaceInTheStore) {
  for (const char* group : {"b", "a", "c", "a", "b"}) send(group);
  checkpoint();
  EXPECT_EQ(places(), 0U);
  EXPECT_EQ(loaded_line(), (Groups{"b", "a", "c"}));
}

TEST_F(Line, IsTheSameAfterAStart) {
  for (const char* group : {"a", "b", "c"}) send(group);
  give_back(receive());
  send("d");
  EXPECT_EQ(line(), (Groups{"b", "c", "a", "d"}));
  checkpoint();
  EXPECT_EQ(places(), 1U);
  EXPECT_EQ(loaded_line(), line());
  give_back(receive());
  EXPECT_EQ(line(), (Groups{"c", "a", "d", "b"}));
  checkpoint();
  EXPECT_EQ(loaded_line(), line());
}

TEST_F(Line, APlaceLeavesTheStoreWithItsGroup) {
  send("a");
  give_back(receive());
  checkpoint();
  ASSERT_EQ(places(), 1U);
  const std::string receipt = receive();
  checkpoint();
  EXPECT_EQ(places(), 0U) << "it has none while its only message is in flight";
  give_back(receipt);
  checkpoint();
  ASSERT_EQ(places(), 1U);
  remove(receive());
  checkpoint();
  EXPECT_EQ(places(), 0U);
}

TEST_F(Line, AGroupThatIsGoneAndComesAgainIsANewOne) {
  send("a");
  give_back(receive());
  checkpoint();
  ASSERT_EQ(places(), 1U);
  remove(receive());
  send("b");
  send("a");
  give_back(receive());
  EXPECT_EQ(line(), (Groups{"a", "b"}));
  checkpoint();
  EXPECT_EQ(places(), 1U) << "of b";
  EXPECT_EQ(loaded_line(), line());
}

TEST_F(Line, APlaceOfAGroupThatIsNotThereIsErased) {
  send("a");
  give_back(receive());
  checkpoint();
  std::string stray;
  for (const auto& [key, value] : entries_)
    if (KeyReader(key).type() == KeyType::kPlace) stray = key;
  std::string other = stray;
  other.back() = static_cast<char>(other.back() ^ 1);
  entries_[other] = entries_[stray];
  const auto engine = loaded();
  EXPECT_EQ(engine->find(kQueue)->line(), line());
}

TEST_F(Line, APlaceThatMakesNoSenseIsRefused) {
  send("a");
  give_back(receive());
  checkpoint();
  for (auto& [key, value] : entries_)
    if (KeyReader(key).type() == KeyType::kPlace) value.resize(9);
  EXPECT_THROW(loaded(), std::runtime_error);
}

// A message received for 0 s is visible again when time next advances. The checkpoint came before
// that, and messages of its group and of an earlier one are still delayed, so that a start must
// read both.
TEST_F(Line, WhatComesBackAtTheInstantOfACheckpointGoesToTheBackAfterAStartToo) {
  world_.get<NoResult>(SetQueueAttributes{kQueue, {{"DelaySeconds", "2"}}});
  for (const char* group : {"a", "b", "c"}) send(group);
  world_.jump(std::chrono::seconds(2));
  for (const char* group : {"a", "b"}) send(group);
  receive();
  ReceiveMessage request;
  request.queue = kQueue;
  request.visibility_timeout = 0;
  ASSERT_TRUE(world_.ask_and_look_away(request));
  checkpoint();
  const auto engine = loaded();
  world_.jump(Duration(1));
  engine->advance(world_.now());
  EXPECT_EQ(line(), (Groups{"c", "b"}));
  EXPECT_EQ(engine->find(kQueue)->line(), line());
}

TEST_F(Line, AHeadThatFallsDueAtTheInstantOfACheckpointHasTheSamePlaceAfterAStart) {
  world_.get<NoResult>(SetQueueAttributes{kQueue, {{"DelaySeconds", "2"}}});
  for (const char* group : {"b", "a"}) send(group);
  world_.jump(std::chrono::seconds(2));
  give_back(receive());
  checkpoint();
  EXPECT_EQ(line(), (Groups{"a", "b"}));
  const auto engine = loaded();
  engine->advance(world_.now());
  EXPECT_EQ(engine->find(kQueue)->line(), line());
}

// World 950000022198. The first group has the place of its head, so the store need not have it,
// unless a start would treat the head as delayed.
TEST_F(Line, HeadsThatWereDelayedAnewHaveTheSamePlacesWhenTheyFallDueAtTheInstantOfACheckpoint) {
  for (const char* group : {"a", "b", "a"}) send(group);
  remove(receive());
  world_.get<NoResult>(SetQueueAttributes{kQueue, {{"DelaySeconds", "2"}}});
  checkpoint();
  world_.jump(std::chrono::seconds(2));
  EXPECT_EQ(line(), (Groups{"b", "a"}));
  checkpoint();
  const auto engine = loaded();
  engine->advance(world_.now());
  EXPECT_EQ(engine->find(kQueue)->line(), line());
  world_.jump(Duration(1));
  send("c");
  checkpoint();
  EXPECT_EQ(places(), 1U) << "that of the first is not needed any more";
  EXPECT_EQ(loaded_line(), line());
}

// The delay ends at the very instant at which it is set: the head was ready before and is so after.
TEST_F(Line, AHeadWhoseNewDelayEndsAtTheInstantOfACheckpointHasTheSamePlaceAfterAStart) {
  send("b");
  world_.jump(std::chrono::seconds(1));
  send("a");
  world_.get<NoResult>(SetQueueAttributes{kQueue, {{"DelaySeconds", "1"}}});
  checkpoint();
  const auto engine = loaded();
  engine->advance(world_.now());
  EXPECT_EQ(line(), (Groups{"b", "a"}));
  EXPECT_EQ(engine->find(kQueue)->line(), line());
}

// The chunk leaves memory at the instant at which its message falls due, while the store has it as
// delayed.
TEST_F(Line, AHeadThatFallsDueAndLeavesMemoryAtTheInstantOfACheckpointHasItsPlaceAfterAStart) {
  send("b");
  world_.get<NoResult>(SetQueueAttributes{kQueue, {{"DelaySeconds", "5"}}});
  checkpoint();
  send("a");
  world_.jump(std::chrono::seconds(5));
  EXPECT_EQ(line(), (Groups{"b", "a"}));
  world_.engine().evict_some(0);
  checkpoint();
  const auto engine = loaded();
  engine->advance(world_.now());
  EXPECT_EQ(engine->find(kQueue)->line(), line());
}

TEST_F(Line, APurgeLeavesNoPlaces) {
  for (const char* group : {"a", "b"}) send(group);
  give_back(receive());
  checkpoint();
  ASSERT_EQ(places(), 1U);
  world_.get<NoResult>(PurgeQueue{kQueue});
  checkpoint();
  EXPECT_EQ(places(), 0U);
  EXPECT_EQ(loaded_line(), Groups());
}

}  // namespace
}  // namespace stanchion::engine
