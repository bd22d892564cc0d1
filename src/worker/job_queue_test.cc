#include "worker/job_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace stanchion::worker {
namespace {

Task make(std::uint64_t id, const std::string& group = {}) {
  TaskInformation task;
  task.id = TaskId{id};
  if (!group.empty()) task.attributes["MessageGroupId"] = group;
  return std::make_shared<const TaskInformation>(std::move(task));
}

JobQueue open(const QueueOptions& options, bool fifo = false) {
  return JobQueue(options, fifo, FailureThrottle(0.5, 2));
}

// WK2.
TEST(JobQueue, HasAPlaceForEachHandlerAndForThoseThatMayWait) {
  JobQueue jobs = open({.concurrency = 2, .waiting_max = 3});
  EXPECT_EQ(jobs.places(), 5u);
  jobs.add(std::vector<Task>{make(1), make(2), make(3)});
  EXPECT_EQ(jobs.places(), 2u);
  const Task first = jobs.begin();
  EXPECT_EQ(jobs.places(), 2u);
  jobs.returned(first->id);
  EXPECT_EQ(jobs.places(), 2u);
  jobs.end(first, false);
  EXPECT_EQ(jobs.places(), 3u);
  jobs.add(std::vector<Task>{make(4), make(5), make(6), make(7)});
  EXPECT_EQ(jobs.places(), 0u);
}

TEST(JobQueue, NoMoreRunThanThereAreHandlersAndFewerWhileTheyFail) {
  JobQueue jobs = open({.concurrency = 4});
  jobs.add(std::vector<Task>{make(1), make(2), make(3), make(4), make(5)});
  std::vector<Task> running;
  while (jobs.may_begin()) running.push_back(jobs.begin());
  EXPECT_EQ(running.size(), 4u);
  EXPECT_TRUE(jobs.has_more());
  for (std::size_t i = 0; i < 2; ++i) {
    jobs.returned(running[i]->id);
    EXPECT_FALSE(jobs.record(true));
    jobs.end(running[i], true);
  }
  // Two run, and two are allowed after a round of failures.
  EXPECT_FALSE(jobs.may_begin());
  EXPECT_EQ(jobs.places(), 0u);
  EXPECT_GT(jobs.pause().count(), 0);
  jobs.returned(running[2]->id);
  EXPECT_FALSE(jobs.record(false));
  EXPECT_TRUE(jobs.record(false));
  EXPECT_TRUE(jobs.may_begin());
}

// WK3.
TEST(JobQueue, AMessageOfAGroupBeginsAfterTheOneBeforeItIsGone) {
  JobQueue jobs = open({.concurrency = 4}, true);
  jobs.add(std::vector<Task>{make(1, "a"), make(2, "a"), make(3, "a"), make(4, "b")});
  const Task first = jobs.begin();
  EXPECT_EQ(jobs.begin()->id, TaskId{4});
  EXPECT_FALSE(jobs.may_begin());
  jobs.returned(first->id);
  EXPECT_FALSE(jobs.may_begin());
  EXPECT_TRUE(jobs.end(first, false).empty());
  const Task second = jobs.begin();
  EXPECT_EQ(second->id, TaskId{2});
  jobs.returned(second->id);
  const std::vector<Task> later = jobs.end(second, true);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0]->id, TaskId{3});
  EXPECT_TRUE(jobs.overtaking(second).empty());
  EXPECT_EQ(jobs.size(), 1u);
}

TEST(JobQueue, OfGroupsThatBeginTogetherTheLaterOnesThatRunWouldOvertakeOneThatFailed) {
  JobQueue jobs = open({.groups_together = true, .concurrency = 4}, true);
  jobs.add(std::vector<Task>{make(1, "a"), make(2, "a"), make(3, "b"), make(4, "a")});
  const Task first = jobs.begin();
  const Task second = jobs.begin();
  jobs.begin();
  const auto overtaking = jobs.overtaking(first);
  ASSERT_EQ(overtaking.size(), 1u);
  EXPECT_EQ(overtaking[0], second);
  EXPECT_TRUE(jobs.overtaking(second).empty());
}

TEST(JobQueue, WhatRunsCanBeTakenAndIsKnownNoMore) {
  JobQueue jobs = open({.concurrency = 2});
  jobs.add(std::vector<Task>{make(1), make(2), make(3)});
  jobs.begin();
  const Task second = jobs.begin();
  EXPECT_EQ(jobs.find_running(second->id), second);
  EXPECT_EQ(jobs.take_waiting().size(), 1u);
  EXPECT_EQ(jobs.take_running().size(), 2u);
  EXPECT_EQ(jobs.find_running(second->id), nullptr);
  EXPECT_EQ(jobs.running(), 0u);
  EXPECT_EQ(jobs.size(), 2u);
  jobs.end(second, true);
  EXPECT_EQ(jobs.size(), 1u);
}

}  // namespace
}  // namespace stanchion::worker
