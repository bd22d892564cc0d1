#include "worker/visibility_monitor.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace stanchion::worker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A monitor whose batches are kept for the test, and the losses that it tells.
struct Monitored {
  explicit Monitored(MonitorOptions options)
      : monitor(
            options, [this](ExtensionBatch batch) { batches.push_back(std::move(batch)); },
            [this](const Task& task, Loss loss) {
              task->lose(loss);
              lost[task->id] = loss;
            }) {}

  Task add(std::uint64_t id, Instant received, const std::string& queue = "q") {
    TaskInformation task;
    task.id = TaskId{id};
    task.queue_url = queue;
    task.receipt_handle = "r" + std::to_string(id);
    auto made = std::make_shared<const TaskInformation>(std::move(task));
    monitor.add(made, received);
    return made;
  }

  // Answers everything that was sent, and returns how many extensions that were.
  std::size_t answer(Extended result, Instant now) {
    std::size_t count = 0;
    for (const ExtensionBatch& batch : std::exchange(batches, {}))
      for (const Extension& extension : batch.extensions) {
        monitor.answered(extension.task, result, now);
        ++count;
      }
    return count;
  }

  std::vector<ExtensionBatch> batches;
  std::map<TaskId, Loss> lost;
  VisibilityMonitor monitor;
};

const Instant kStart(hours(1));

TEST(VisibilityMonitor, AJobOfManyPeriodsIsExtendedEveryHalfPeriodAndNeverRunsOut) {
  Monitored m({.period = seconds(10)});
  const Task task = m.add(1, kStart);
  Instant now = kStart;
  for (int halves = 1; halves <= 100; ++halves) {
    ASSERT_EQ(m.monitor.next_tick(), now + seconds(5));
    now += seconds(5);
    m.monitor.tick(now);
    ASSERT_LT(now, task->visibility_end());
    ASSERT_EQ(m.answer(Extended::kYes, now), 1u);
    ASSERT_EQ(task->visibility_end(), now + seconds(10));
  }
  EXPECT_TRUE(m.lost.empty());
}

TEST(VisibilityMonitor, WhatEndedInTimeIsNotExtendedAndAnEmptyMonitorNeedsNoTick) {
  Monitored m({.period = seconds(10)});
  m.add(1, kStart);
  EXPECT_FALSE(m.monitor.remove(TaskId{1}));
  EXPECT_EQ(m.monitor.next_tick(), std::nullopt);
  m.monitor.tick(kStart + seconds(5));
  EXPECT_TRUE(m.batches.empty());
}

TEST(VisibilityMonitor, BatchesHaveTenEntriesAtMostAndOneQueueEach) {
  Monitored m({.period = seconds(10)});
  for (std::uint64_t id = 0; id < 46; ++id) m.add(id, kStart, id % 2 == 0 ? "even" : "odd");
  m.monitor.tick(kStart + seconds(5));
  ASSERT_EQ(m.batches.size(), 6u);
  for (const ExtensionBatch& batch : m.batches) {
    EXPECT_LE(batch.extensions.size(), 10u);
    for (const Extension& extension : batch.extensions)
      EXPECT_EQ(batch.queue_url,
                static_cast<std::uint64_t>(extension.task) % 2 == 0 ? "even" : "odd");
  }
  EXPECT_EQ(m.answer(Extended::kYes, kStart + seconds(5)), 46u);
}

TEST(VisibilityMonitor, AnExtensionCountsFromTheMomentItWasSent) {
  Monitored m({.period = seconds(10)});
  const Task task = m.add(1, kStart);
  m.monitor.tick(kStart + seconds(5));
  m.answer(Extended::kYes, kStart + seconds(8));
  EXPECT_EQ(task->visibility_end(), kStart + seconds(15));
}

TEST(VisibilityMonitor, ARefusedExtensionTellsTheJobOnceAndLeavesTheOthersAlone) {
  Monitored m({.period = seconds(10)});
  const Task task = m.add(1, kStart);
  m.add(2, kStart);
  m.monitor.tick(kStart + seconds(5));
  m.monitor.answered(TaskId{1}, Extended::kRefused, kStart + seconds(5));
  m.monitor.answered(TaskId{1}, Extended::kRefused, kStart + seconds(5));
  EXPECT_EQ(m.lost, (std::map<TaskId, Loss>{{TaskId{1}, Loss::kGone}}));
  EXPECT_EQ(task->loss(), Loss::kGone);
  EXPECT_TRUE(task->stop().stop_requested());
  EXPECT_EQ(m.monitor.size(), 1u);
}

TEST(VisibilityMonitor, AFailedExtensionIsTriedAgainBeforeTheVisibilityEnds) {
  Monitored m({.period = seconds(10)});
  const Task task = m.add(1, kStart);
  m.monitor.tick(kStart + seconds(5));
  m.answer(Extended::kFailed, kStart + seconds(5));
  ASSERT_EQ(m.monitor.next_tick(), kStart + milliseconds(6'250));
  m.monitor.tick(*m.monitor.next_tick());
  EXPECT_EQ(m.answer(Extended::kYes, kStart + milliseconds(6'250)), 1u);
  EXPECT_EQ(task->visibility_end(), kStart + milliseconds(16'250));
}

TEST(VisibilityMonitor, AJobIsToldWhenItsVisibilityEndsWithoutAnAnswer) {
  Monitored m({.period = seconds(10)});
  m.add(1, kStart);
  m.monitor.tick(kStart + seconds(5));
  ASSERT_EQ(m.batches.size(), 1u);
  m.monitor.tick(kStart + seconds(10));
  EXPECT_EQ(m.batches.size(), 1u) << "an extension was under way twice";
  EXPECT_EQ(m.lost, (std::map<TaskId, Loss>{{TaskId{1}, Loss::kExpired}}));
  EXPECT_EQ(m.answer(Extended::kYes, kStart + seconds(11)), 1u);
  EXPECT_EQ(m.monitor.size(), 0u);
}

TEST(VisibilityMonitor, ATaskThatLeavesSaysWhetherAnExtensionIsUnderWay) {
  Monitored m({.period = seconds(10)});
  m.add(1, kStart);
  m.monitor.tick(kStart + seconds(5));
  EXPECT_TRUE(m.monitor.remove(TaskId{1}));
  EXPECT_FALSE(m.monitor.remove(TaskId{1}));
}

TEST(VisibilityMonitor, NoExtensionGoesBeyondTwelveHoursAndThenTheJobIsTold) {
  Monitored m({.period = seconds(7'000)});
  const Task task = m.add(1, kStart);
  while (m.lost.empty()) {
    const Instant now = *m.monitor.next_tick();
    ASSERT_LE(now, kStart + hours(12));
    m.monitor.tick(now);
    for (const ExtensionBatch& batch : m.batches)
      ASSERT_LE(now + batch.extensions.at(0).timeout, kStart + hours(12));
    m.answer(Extended::kYes, now);
  }
  EXPECT_EQ(task->loss(), Loss::kCapped);
  EXPECT_EQ(task->visibility_end(), kStart + hours(12));
}

TEST(VisibilityMonitor, AWiderWindowExtendsWhatEndsLater) {
  Monitored narrow({.period = seconds(10)});
  Monitored wide({.period = seconds(10), .window = seconds(12)});
  for (Monitored* m : {&narrow, &wide}) {
    m->add(1, kStart);
    m->add(2, kStart + seconds(6));
    m->monitor.tick(kStart + seconds(5));
  }
  EXPECT_EQ(narrow.answer(Extended::kYes, kStart + seconds(5)), 1u);
  EXPECT_EQ(wide.answer(Extended::kYes, kStart + seconds(5)), 2u);
}

class VisibilityMonitorOf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(VisibilityMonitorOf, ATickCostsWhatItExtendsWhateverElseIsHeld) {
  const std::uint64_t count = GetParam();
  Monitored m({.period = seconds(10)});
  // One in ten ends within the window of the first tick.
  for (std::uint64_t id = 0; id < count; ++id)
    m.add(id, id % 10 == 0 ? kStart : kStart + seconds(6));
  const Instant now = kStart + seconds(5);
  m.monitor.tick(now);
  EXPECT_EQ(m.monitor.visited(), count / 10 + 1);
  EXPECT_EQ(m.batches.size(), (count / 10 + 9) / 10);
  EXPECT_EQ(m.answer(Extended::kYes, now), count / 10);
  EXPECT_EQ(m.monitor.size(), count);
  for (std::uint64_t id = 0; id < count; ++id) m.monitor.remove(TaskId{id});
  EXPECT_EQ(m.monitor.next_tick(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(FromTenToAHundredThousand, VisibilityMonitorOf,
                         testing::Values(10, 1'000, 100'000));

}  // namespace
}  // namespace stanchion::worker
