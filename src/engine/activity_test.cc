// What a queue counts, and that a replay, a checkpoint and an older store lose none of it.
#include "model/activity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/sample_world.h"
#include "engine/store/store_keys.h"

namespace stanchion::engine {
namespace {

using namespace std::chrono_literals;

class Counting : public testing::Test {
 protected:
  void create(const std::string& name, StringMap attributes = {}) {
    ASSERT_TRUE(world.ask(CreateQueue{TestWorld::ref(name), std::move(attributes), {}}));
  }

  void create_with_dead_letters(const std::string& name, const std::string& dead) {
    create(dead);
    create(name,
           {{"RedrivePolicy", fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":1}})",
                                          TestWorld::ref(dead).arn())}});
  }

  void send(const std::string& name, const std::string& body = "x") {
    SendMessage request{TestWorld::ref(name), "me", {}};
    request.message.body = body;
    ASSERT_TRUE(world.ask(request));
  }

  void send_to_fifo(const std::string& name, const std::string& deduplication_id) {
    SendMessage request{TestWorld::ref(name), "me", {}};
    request.message.body = "x";
    request.message.group_id = "g";
    request.message.deduplication_id = deduplication_id;
    ASSERT_TRUE(world.ask(request));
  }

  std::vector<std::string> receive(const std::string& name, int timeout,
                                   const std::string& attempt = "") {
    ReceiveMessage request;
    request.queue = TestWorld::ref(name);
    request.max_number_of_messages = 10;
    request.visibility_timeout = timeout;
    if (!attempt.empty()) request.attempt_id = attempt;
    std::vector<std::string> receipts;
    for (const auto& message : world.get<ReceiveMessageResult>(request).messages)
      receipts.push_back(message.receipt_handle);
    return receipts;
  }

  void remove(const std::string& name, const std::string& receipt) {
    ASSERT_TRUE(world.ask(DeleteMessage{TestWorld::ref(name), receipt}));
  }

  const Activity& of(const std::string& name) {
    return world.engine().find(TestWorld::ref(name))->activity;
  }

  TestWorld world;
};

// Those that are counted from facts.
std::vector<std::uint64_t> kept(const Activity& a) {
  return {a.sent,          a.sent_bytes, a.received,   a.deleted,
          a.dead_lettered, a.moved_away, a.moved_here, a.expired};
}

TEST_F(Counting, SendsReceivesAndDeletesAreCountedOneByOne) {
  create("q");
  send("q", "12345");
  SendMessage with_attribute{TestWorld::ref("q"), "me", {}};
  with_attribute.message.body = "123";
  with_attribute.message.attributes.push_back({"name", "String", "value", {}});
  ASSERT_TRUE(world.ask(with_attribute));
  EXPECT_EQ(of("q").sent, 2U);
  EXPECT_EQ(of("q").sent_bytes, 5U + 3 + 4 + 6 + 5) << "name, type and value count too";
  EXPECT_EQ(receive("q", 0).size(), 2U);
  const auto receipts = receive("q", 30);
  EXPECT_EQ(of("q").received, 4U) << "each time anew";
  remove("q", receipts[0]);
  EXPECT_EQ(of("q").deleted, 1U);
  remove("q", receipts[0]);
  EXPECT_EQ(of("q").deleted, 1U);
  EXPECT_EQ(of("q").deleted_again, 1U);
}

TEST_F(Counting, ARefusedSendIsNotCounted) {
  create("q");
  SendMessage empty{TestWorld::ref("q"), "me", {}};
  EXPECT_FALSE(world.ask(empty));
  EXPECT_EQ(of("q").sent, 0U);
}

TEST_F(Counting, ASendThatRepeatsAnotherIsCountedAsSuchOnly) {
  create("q.fifo", {{"FifoQueue", "true"}});
  send_to_fifo("q.fifo", "one");
  send_to_fifo("q.fifo", "one");
  send_to_fifo("q.fifo", "two");
  EXPECT_EQ(of("q.fifo").sent, 2U);
  EXPECT_EQ(of("q.fifo").deduplicated, 1U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(of("q.fifo").sent, 2U);
  EXPECT_EQ(of("q.fifo").deduplicated, 0U) << "no fact says so";
}

TEST_F(Counting, AReceiveThatIsRepeatedHandsOutItsMessagesOnceMore) {
  create("q.fifo", {{"FifoQueue", "true"}});
  send_to_fifo("q.fifo", "one");
  send_to_fifo("q.fifo", "two");
  EXPECT_EQ(receive("q.fifo", 30, "attempt").size(), 2U);
  EXPECT_EQ(receive("q.fifo", 30, "attempt").size(), 2U);
  EXPECT_EQ(of("q.fifo").received, 4U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(of("q.fifo").received, 4U);
}

TEST_F(Counting, ADeadLetterIsCountedWhereItLeavesAndWhereItArrives) {
  create_with_dead_letters("q", "dead");
  send("q");
  receive("q", 0);
  EXPECT_EQ(of("q").dead_lettered, 0U);
  receive("q", 0);
  EXPECT_EQ(of("q").dead_lettered, 1U);
  EXPECT_EQ(of("dead").moved_here, 1U);
  EXPECT_EQ(of("dead").sent, 0U) << "nobody sent it there";
  EXPECT_EQ(of("q").received, 1U);
}

TEST_F(Counting, ADeadLetterUnderWayIsNotCountedBeforeItHasArrived) {
  create_with_dead_letters("q", "dead");
  world.set_road(TestWorld::Road::kClosed);
  send("q");
  receive("q", 0);
  receive("q", 0);
  EXPECT_EQ(of("q").dead_lettered, 0U);
  world.set_road(TestWorld::Road::kOpen);
  EXPECT_EQ(of("q").dead_lettered, 1U);
}

TEST_F(Counting, MoveTasksAreCountedAtBothEnds) {
  create_with_dead_letters("q", "dead");
  for (int i = 0; i < 3; ++i) send("q");
  for (int i = 0; i < 2; ++i) receive("q", 0);
  ASSERT_TRUE(world.ask(StartMessageMoveTask{TestWorld::ref("dead").arn(), {}, {}}));
  world.tick(10s);
  EXPECT_EQ(of("dead").moved_away, 3U);
  EXPECT_EQ(of("q").moved_here, 3U);
  EXPECT_EQ(of("q").sent, 3U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(of("dead").moved_away, 3U);
  EXPECT_EQ(of("q").moved_here, 3U);
}

TEST_F(Counting, MessagesThatExpireAreCountedAndPurgedOnesAreNot) {
  create("q", {{"MessageRetentionPeriod", "60"}});
  send("q");
  send("q");
  world.tick(61s);
  EXPECT_EQ(of("q").expired, 2U);
  send("q");
  ASSERT_TRUE(world.ask(PurgeQueue{TestWorld::ref("q")}));
  world.tick(120s);
  EXPECT_EQ(of("q").expired, 2U);
  EXPECT_EQ(of("q").deleted, 0U);
  EXPECT_TRUE(world.restart());
  EXPECT_EQ(of("q").expired, 2U);
}

// A world in which every number but one is above 0 somewhere, and nothing has expired yet.
class Keeping : public testing::Test {
 protected:
  using Numbers = std::map<std::string, std::vector<std::uint64_t>>;

  static Numbers all_of(const Engine& engine) {
    Numbers all;
    engine.for_each_queue([&](const Queue& queue) { all[queue.ref.name] = kept(queue.activity); });
    return all;
  }

  // The entry of a queue, as it would be if its last `bytes` were missing.
  static void cut_queues(Entries& entries, std::size_t bytes) {
    for (auto& [key, value] : entries)
      if (key[0] == static_cast<char>(KeyType::kQueue)) value.resize(value.size() - bytes);
  }

  SampleWorld sample;
};

TEST_F(Keeping, AReplayGivesTheSameNumbers) {
  const Numbers before = all_of(sample.world.engine());
  EXPECT_EQ(before.at("full").front(), 12U);
  EXPECT_TRUE(sample.world.restart());
  EXPECT_EQ(all_of(sample.world.engine()), before);
}

TEST_F(Keeping, ACheckpointKeepsTheNumbers) {
  const Entries entries = saved_of(sample.world.engine(), sample.world.now());
  Engine loaded(SampleWorld::options());
  Instant at;
  ASSERT_TRUE(loaded.load(scan_of(entries), at));
  EXPECT_EQ(all_of(loaded), all_of(sample.world.engine()));
}

TEST_F(Keeping, AStoreOfAReleaseThatDidNotCountBeginsAtZero) {
  TestWorld world;
  ASSERT_TRUE(world.ask(CreateQueue{TestWorld::ref("q"), {}, {}}));
  Entries entries = saved_of(world.engine(), world.now());
  cut_queues(entries, 9);  // The count, and eight numbers that are 0.
  Engine loaded(Options{});
  Instant at;
  ASSERT_TRUE(loaded.load(scan_of(entries), at));
  EXPECT_EQ(all_of(loaded).at("q"), std::vector<std::uint64_t>(8));
}

TEST_F(Keeping, NumbersThatAreCutShortAreRefused) {
  TestWorld world;
  ASSERT_TRUE(world.ask(CreateQueue{TestWorld::ref("q"), {}, {}}));
  const Entries whole = saved_of(world.engine(), world.now());
  for (std::size_t missing = 1; missing <= 8; ++missing) {
    Entries entries = whole;
    cut_queues(entries, missing);
    Engine loaded(Options{});
    Instant at;
    EXPECT_FALSE(loaded.load(scan_of(entries), at)) << missing;
  }
}

TEST_F(Keeping, NumbersOfANewerReleaseAreIgnored) {
  TestWorld world;
  ASSERT_TRUE(world.ask(CreateQueue{TestWorld::ref("q"), {}, {}}));
  Entries entries = saved_of(world.engine(), world.now());
  for (auto& [key, value] : entries) {
    if (key[0] != static_cast<char>(KeyType::kQueue)) continue;
    ASSERT_EQ(value[value.size() - 9], 8);
    value[value.size() - 9] = 9;
    value += '\x07';
  }
  Engine loaded(Options{});
  Instant at;
  ASSERT_TRUE(loaded.load(scan_of(entries), at));
  EXPECT_EQ(all_of(loaded).at("q"), std::vector<std::uint64_t>(8));
}

}  // namespace
}  // namespace stanchion::engine
