#include "worker/in_flight.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stanchion::worker {
namespace {

Task task_of(std::uint64_t id, const std::string& group = {}) {
  TaskInformation task;
  task.id = TaskId{id};
  if (!group.empty()) task.attributes["MessageGroupId"] = group;
  return std::make_shared<const TaskInformation>(std::move(task));
}

TEST(InFlight, MessagesOfAStandardQueueAllBeginWhateverTheirGroup) {
  InFlight in_flight(false);
  const Task one = task_of(1, "tenant");
  const Task two = task_of(2, "tenant");
  in_flight.add(one);
  in_flight.add(two);
  EXPECT_EQ(in_flight.next(), one);
  EXPECT_EQ(in_flight.next(), two);
  EXPECT_TRUE(in_flight.end(one, true).empty());
  EXPECT_EQ(in_flight.size(), 1u);
}

TEST(InFlight, AGroupBeginsOneMessageAfterTheOther) {
  InFlight in_flight(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a")};
  const Task b = task_of(3, "b");
  for (const Task& task : a) in_flight.add(task);
  in_flight.add(b);
  EXPECT_EQ(in_flight.next(), a[0]);
  EXPECT_EQ(in_flight.next(), b);
  EXPECT_FALSE(in_flight.has_next());
  EXPECT_TRUE(in_flight.end(a[0], false).empty());
  ASSERT_TRUE(in_flight.has_next());
  EXPECT_EQ(in_flight.next(), a[1]);
}

TEST(InFlight, AfterAFailureTheLaterMessagesOfTheGroupLeaveInOrderAndOthersStay) {
  InFlight in_flight(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a"), task_of(3, "a")};
  const Task b = task_of(4, "b");
  for (const Task& task : a) in_flight.add(task);
  in_flight.add(b);
  EXPECT_EQ(in_flight.next(), a[0]);
  EXPECT_EQ(in_flight.end(a[0], true), (std::vector<Task>{a[1], a[2]}));
  EXPECT_EQ(in_flight.size(), 1u);
  EXPECT_EQ(in_flight.next(), b);
  EXPECT_FALSE(in_flight.has_next());
}

TEST(InFlight, GroupsThatBeginTogetherKeepTheirOrderAndOnlyWhatHasNotBegunLeavesAfterAFailure) {
  InFlight in_flight(true, true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a"), task_of(3, "a")};
  const Task b = task_of(4, "b");
  in_flight.add(a[0]);
  in_flight.add(a[1]);
  in_flight.add(b);
  in_flight.add(a[2]);
  EXPECT_EQ(in_flight.next(), a[0]);
  EXPECT_EQ(in_flight.next(), a[1]);
  EXPECT_EQ(in_flight.end(a[0], true), std::vector<Task>{a[2]});
  EXPECT_EQ(in_flight.next(), b);
  EXPECT_FALSE(in_flight.has_next());
  EXPECT_TRUE(in_flight.end(a[1], true).empty());
  EXPECT_EQ(in_flight.size(), 1u);
  in_flight.add(a[2]);
  EXPECT_EQ(in_flight.take_waiting(), std::vector<Task>{a[2]});
  EXPECT_EQ(in_flight.size(), 1u);
}

TEST(InFlight, WhatHasNotBegunCanBeTakenAndTheRestEndsAsUsual) {
  InFlight in_flight(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a")};
  const std::vector<Task> b{task_of(3, "b"), task_of(4, "b")};
  for (const Task& task : a) in_flight.add(task);
  EXPECT_EQ(in_flight.next(), a[0]);
  for (const Task& task : b) in_flight.add(task);
  EXPECT_EQ(in_flight.take_waiting().size(), 3u);
  EXPECT_FALSE(in_flight.has_next());
  EXPECT_EQ(in_flight.size(), 1u);
  EXPECT_TRUE(in_flight.end(a[0], true).empty());
  EXPECT_EQ(in_flight.size(), 0u);
}

}  // namespace
}  // namespace stanchion::worker
