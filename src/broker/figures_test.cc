// What the broker tells to those who watch it.
#include "broker/figures.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "broker/routing.h"
#include "broker/shard_test_kit.h"

namespace stanchion::broker {
namespace {

using namespace std::chrono_literals;

class FiguresTest : public testing::Test {
 protected:
  FiguresTest() {
    auto opened = Broker::open(
        {.shards = 2, .parallel_recovery = false},
        [&](ShardIndex shard) -> Result<Broker::Storage> {
          auto journal = std::make_unique<HeldJournal>();
          journals_[shard.value()] = journal.get();
          return Broker::Storage{std::move(journal), nullptr};
        },
        clock_, entropy_);
    EXPECT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
    broker_->start(
        {&loops_[0], &loops_[1]}, background_, [] {}, [](const Failure&) { FAIL(); });
    run();
  }

  void run() {
    for (int round = 0; round < 10; ++round)
      for (ManualLoop& loop : loops_) loop.run();
  }

  static QueueRef ref(const std::string& name) { return {"000000000000", "us-east-1", name}; }

  void submit(Request request) {
    Loop& loop = broker_->loop_of(shard_of(*queue_of(request), 2));
    broker_->submit(loop, std::move(request), [](const Reply& reply) { EXPECT_TRUE(reply); });
  }

  void send(const QueueRef& queue) {
    SendMessage request{queue, "me", {}};
    request.message.body = "hello";
    submit(request);
  }

  void collect() {
    figures_.reset();
    broker_->collect(
        loops_[0], [](const engine::Queue&, Instant) { return true; },
        [this](std::vector<ShardFigures> all) { figures_ = std::move(all); });
    run();
  }

  const QueueFigures& of(const QueueRef& queue) {
    for (const ShardFigures& shard : *figures_)
      for (const QueueFigures& one : shard.queues)
        if (one.queue == queue) return one;
    throw std::runtime_error("no figures of " + queue.name);
  }

  NumberClock clock_;
  CountingEntropy entropy_;
  std::array<ManualLoop, 2> loops_;
  ManualBackground background_;
  std::array<HeldJournal*, 2> journals_{};
  std::unique_ptr<Broker> broker_;
  std::optional<std::vector<ShardFigures>> figures_;
};

TEST_F(FiguresTest, EveryQueueIsThereOnceHoweverManyThereAre) {
  constexpr std::size_t kQueues = 5'000;
  for (std::size_t i = 0; i < kQueues; ++i)
    submit(CreateQueue{ref("q" + std::to_string(i)), {}, {}});
  run();
  collect();
  ASSERT_TRUE(figures_);
  ASSERT_EQ(figures_->size(), 2U);
  std::set<std::string> names;
  std::size_t seen = 0, said = 0;
  for (const ShardFigures& shard : *figures_) {
    said += shard.queue_count;
    seen += shard.queues.size();
    for (const QueueFigures& queue : shard.queues) names.insert(queue.queue.name);
  }
  EXPECT_EQ(names.size(), kQueues);
  EXPECT_EQ(seen, kQueues);
  EXPECT_EQ(said, kQueues);
}

// Otherwise a count could be lower after a crash than somebody has seen it.
TEST_F(FiguresTest, NobodyIsToldOfWhatIsNotDurable) {
  const QueueRef queue = ref("q");
  submit(CreateQueue{queue, {}, {}});
  run();
  HeldJournal& journal = *journals_[shard_of(queue, 2).value()];
  journal.held = true;
  send(queue);
  collect();
  EXPECT_FALSE(figures_);
  journal.release();
  run();
  ASSERT_TRUE(figures_);
  EXPECT_EQ(of(queue).activity.sent, 1U);
  EXPECT_EQ(of(queue).activity.sent_bytes, 5U);
}

TEST_F(FiguresTest, AQueueThatIsLeftAloneGrowsOlder) {
  const QueueRef queue = ref("q"), empty = ref("empty");
  submit(CreateQueue{queue, {}, {}});
  submit(CreateQueue{empty, {}, {}});
  run();
  send(queue);
  run();
  clock_.at += 90s;
  collect();
  ASSERT_TRUE(figures_);
  EXPECT_EQ(of(queue).oldest_age, 90s);
  EXPECT_EQ(of(queue).counts.visible, 1U);
  EXPECT_FALSE(of(empty).oldest_age);
}

TEST_F(FiguresTest, AReceiveWithoutAMessageIsCountedWhenItIsAnswered) {
  const QueueRef queue = ref("q");
  submit(CreateQueue{queue, {}, {}});
  run();
  ReceiveMessage receive;
  receive.queue = queue;
  submit(receive);
  run();
  collect();
  EXPECT_EQ(of(queue).activity.empty_receives, 1U);
  receive.wait_time_seconds = 20;
  submit(receive);
  run();
  collect();
  EXPECT_EQ(of(queue).activity.empty_receives, 1U) << "it waits";
  std::size_t parked = 0;
  for (const ShardFigures& shard : *figures_) parked += shard.parked_polls;
  EXPECT_EQ(parked, 1U);
  clock_.at += 21s;
  collect();
  EXPECT_EQ(of(queue).activity.empty_receives, 2U);
}

}  // namespace
}  // namespace stanchion::broker
