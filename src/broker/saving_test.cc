// Two shards that are backed up at different moments, with a dead letter under way between them:
// the copies must have it exactly once, whatever the moments.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "broker/broker.h"
#include "broker/routing.h"
#include "broker/shard_test_kit.h"
#include "store/memory_store.h"

namespace stanchion::broker {
namespace {

using Entries = store::MemoryStore::Entries;
using Copies = std::array<Entries, 2>;

QueueRef queue_on(std::uint32_t shard, const std::string& name = "queue") {
  for (int i = 0;; ++i) {
    const QueueRef ref{"000000000000", "us-east-1", name + "-" + std::to_string(i)};
    if (shard_of(ref, 2) == ShardIndex(shard)) return ref;
  }
}

// A broker of two shards, each on a loop that runs when it is told to.
class TwoShards {
 public:
  explicit TwoShards(const Copies& copies = {}) {
    auto opened = Broker::open(
        {.shards = 2, .parallel_recovery = false},
        [&](ShardIndex shard) -> Result<Broker::Storage> {
          stores[shard.value()] = std::make_shared<store::MemoryStore>(copies[shard.value()]);
          return Broker::Storage{std::make_unique<HeldJournal>(), stores[shard.value()]};
        },
        clock, entropy);
    EXPECT_TRUE(opened) << opened.error().message;
    broker = std::move(*opened);
    broker->start(
        {&loops[0], &loops[1]}, background, [] {}, [](const Failure&) { FAIL(); });
    run();
  }

  void run() {
    for (int round = 0; round < 10; ++round)
      for (ManualLoop& loop : loops) loop.run();
  }

  // Executes it, and nothing on any loop.
  void submit(Request request) {
    Loop& loop = broker->loop_of(shard_of(*queue_of(request), 2));
    broker->submit(loop, std::move(request), [](const Reply& reply) { EXPECT_TRUE(reply); });
  }

  // Received once more than allowed, it becomes a dead letter.
  void make_dead_letter() {
    ReceiveMessage receive;
    receive.queue = source;
    receive.visibility_timeout = 0;
    submit(receive);
    submit(receive);
  }

  void save() {
    broker->back_up(
        [this](ShardIndex shard, Position) {
          copies_made[shard.value()] = stores[shard.value()]->entries();
          return Status();
        },
        [this](Status status) { outcome = std::move(status); });
  }

  std::size_t messages(std::uint32_t shard) const {
    const engine::Holdings held = broker->shard(ShardIndex(shard)).engine().holdings();
    return held.in_memory + held.cold;
  }

  const QueueRef source = queue_on(0), dead = queue_on(1);
  NumberClock clock;
  CountingEntropy entropy;
  std::array<ManualLoop, 2> loops;
  struct Waiting final : Background {
    void run(Work work, Task task) override {
      if (work == Work::kRead || !held) return task();
      tasks.push_back(std::move(task));
    }
    void release() {
      held = false;
      for (Task& task : std::exchange(tasks, {})) task();
    }
    bool held = false;  // Checkpoints wait.
    std::vector<Task> tasks;
  } background;
  std::array<std::shared_ptr<store::MemoryStore>, 2> stores;
  std::unique_ptr<Broker> broker;
  Copies copies_made;
  std::optional<Status> outcome;
};

class SavingTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    shards.submit(CreateQueue{shards.dead, {}, {}});
    shards.submit(CreateQueue{shards.source,
                              {{"RedrivePolicy", R"({"maxReceiveCount":1,"deadLetterTargetArn":")" +
                                                     shards.dead.arn() + "\"}"}},
                              {}});
    shards.run();
    SendMessage send;
    send.queue = shards.source;
    send.message.body = "hello";
    shards.submit(send);
    shards.run();
  }

  TwoShards shards;
};

// The parameter says whose loop runs, each time that one can; the message leaves before or in
// between. With the last bit, the destination has a checkpoint under way and is saved long after
// the source.
TEST_P(SavingTest, ADeadLetterIsInTheCopiesOnce) {
  const int order = GetParam();
  const auto loop = [&](int turn) -> ManualLoop& { return shards.loops[(order >> turn) & 1]; };
  if ((order & 0x10) != 0) shards.make_dead_letter();
  if ((order & 0x20) != 0) {
    shards.background.held = true;
    shards.clock.at += std::chrono::minutes(1);
    shards.submit(CreateQueue{queue_on(1, "other"), {}, {}});
    shards.loops[1].run();
    EXPECT_EQ(shards.background.tasks.size(), 1u);
  }
  shards.save();
  loop(0).run();
  loop(1).run();
  if ((order & 0x10) == 0) shards.make_dead_letter();
  loop(2).run();
  loop(3).run();
  shards.run();
  shards.background.release();
  shards.run();
  ASSERT_TRUE(shards.outcome);
  ASSERT_TRUE(*shards.outcome) << shards.outcome->error().message;
  EXPECT_EQ(shards.messages(0), 0u) << "transfers go on";
  EXPECT_EQ(shards.messages(1), 1u);

  TwoShards restored(shards.copies_made);
  EXPECT_EQ(restored.messages(0) + restored.messages(1), 1u);
  for (int i = 0; i < 2; ++i) {
    restored.make_dead_letter();
    restored.run();
  }
  EXPECT_EQ(restored.messages(0), 0u);
  EXPECT_EQ(restored.messages(1), 1u);
}

INSTANTIATE_TEST_SUITE_P(Orders, SavingTest, testing::Range(0, 64));

TEST_F(SavingTest, AShardThatCannotBeSavedIsToldAndEverythingGoesOn) {
  shards.broker->back_up(
      [](ShardIndex shard, Position) -> Status {
        if (shard == ShardIndex(1)) return fail("no luck");
        return {};
      },
      [&](Status status) { shards.outcome = std::move(status); });
  shards.run();
  ASSERT_TRUE(shards.outcome);
  ASSERT_FALSE(*shards.outcome);
  EXPECT_EQ(shards.outcome->error().message, "shard 1: no luck");
  shards.make_dead_letter();
  shards.run();
  EXPECT_EQ(shards.messages(1), 1u);
  shards.save();
  shards.run();
  EXPECT_TRUE(*shards.outcome);
}

}  // namespace
}  // namespace stanchion::broker
