// What the broker tells to those who watch it.
#include "broker/figures.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
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
    broker_->collect(loops_[0], {.queues = [](const engine::Queue&, Instant) { return true; }},
                     [this](Figures all) { figures_ = std::move(all.shards); });
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

// So many askers hold what one of them needs.
TEST_F(FiguresTest, AreCollectedAgainForAPurposeWhenTheLastOnesAreGone) {
  submit(CreateQueue{ref("q"), {}, {}});
  run();
  std::deque<Figures> held;
  std::vector<int> order;
  for (int i = 0; i < 3; ++i)
    broker_->collect(loops_[i % 2], {.queues = [](const engine::Queue&, Instant) { return true; }},
                     [&, i](Figures all) {
                       order.push_back(i);
                       held.push_back(std::move(all));
                     });
  for (int i = 0; i < 3; ++i) {
    run();
    ASSERT_EQ(held.size(), 1U);
    EXPECT_EQ(order.back(), i);
    held.clear();
  }
  // Nobody has a turn now.
  collect();
  EXPECT_TRUE(figures_);
}

// Somebody may hold figures for long: a history whose disk hangs does.
TEST_F(FiguresTest, ForOnePurposeDoNotWaitForThoseOfAnother) {
  submit(CreateQueue{ref("q"), {}, {}});
  run();
  std::deque<Figures> held;
  const auto collect_for = [&](WantedFigures wanted) {
    broker_->collect(loops_[0], std::move(wanted),
                     [&](Figures all) { held.push_back(std::move(all)); });
    run();
  };
  const WantsQueue all = [](const engine::Queue&, Instant) { return true; };
  for (const Purpose purpose :
       {Purpose::kHistory, Purpose::kMetrics, Purpose::kConsole, Purpose::kAdvice})
    collect_for({.queues = all, .purpose = purpose});
  ASSERT_EQ(held.size(), 4U);
  for (const Figures& one : held) {
    std::size_t queues = 0;
    for (const ShardFigures& shard : one.shards) queues += shard.queues.size();
    EXPECT_EQ(queues, 1U);
  }
  // Nor does who wants no queues.
  collect_for({.purpose = Purpose::kServer});
  ASSERT_EQ(held.size(), 5U);
  EXPECT_EQ(held.back().shards.size(), held.front().shards.size());
}

TEST_F(FiguresTest, ATurnThatOutlivesTheBrokerIsNobodysTurn) {
  std::optional<Figures> held;
  bool forgotten = false;
  broker_->collect(loops_[0], {.queues = [](const engine::Queue&, Instant) { return true; }},
                   [&](Figures all) { held = std::move(all); });
  run();
  auto guard = std::make_shared<int>();
  const std::weak_ptr<int> alive = guard;
  broker_->collect(loops_[0], {.queues = [](const engine::Queue&, Instant) { return true; }},
                   [&forgotten, guard = std::move(guard)](Figures) { forgotten = true; });
  broker_.reset();
  EXPECT_TRUE(alive.expired()) << "who waits is not kept";
  held.reset();
  run();
  EXPECT_FALSE(forgotten);
}

TEST_F(FiguresTest, OnlyTheHistoryIsToldOfSizesAndOfDeletedQueues) {
  const QueueRef queue = ref("q");
  submit(CreateQueue{queue, {}, {}});
  submit(CreateQueue{ref("gone"), {}, {}});
  run();
  send(queue);
  submit(DeleteQueue{ref("gone")});
  run();
  for (const Purpose purpose : {Purpose::kMetrics, Purpose::kHistory}) {
    const std::size_t expected = purpose == Purpose::kHistory ? 1 : 0;
    std::size_t sized = 0, deleted = 0;
    broker_->collect(
        loops_[0],
        {.queues = [](const engine::Queue&, Instant) { return true; }, .purpose = purpose},
        [&](const Figures& all) {
          const Minute now = minute_of(clock_.at);
          for (const ShardFigures& shard : all.shards) {
            deleted += shard.deleted_queues.size();
            for (const QueueFigures& one : shard.queues)
              sized += one.sent_sizes.between(now - 1, now).count();
          }
        });
    run();
    EXPECT_EQ(sized, expected);
    EXPECT_EQ(deleted, expected);
  }
}

}  // namespace
}  // namespace stanchion::broker
