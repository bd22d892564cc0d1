#include "worker/hand.h"

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

TEST(Hand, MessagesOfAStandardQueueAllBeginWhateverTheirGroup) {
  Hand hand(false);
  const Task one = task_of(1, "tenant");
  const Task two = task_of(2, "tenant");
  hand.add(one);
  hand.add(two);
  EXPECT_EQ(hand.next(), one);
  EXPECT_EQ(hand.next(), two);
  EXPECT_TRUE(hand.end(one, true).empty());
  EXPECT_EQ(hand.size(), 1u);
}

TEST(Hand, AGroupBeginsOneMessageAfterTheOther) {
  Hand hand(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a")};
  const Task b = task_of(3, "b");
  for (const Task& task : a) hand.add(task);
  hand.add(b);
  EXPECT_EQ(hand.next(), a[0]);
  EXPECT_EQ(hand.next(), b);
  EXPECT_FALSE(hand.has_next());
  EXPECT_TRUE(hand.end(a[0], false).empty());
  ASSERT_TRUE(hand.has_next());
  EXPECT_EQ(hand.next(), a[1]);
}

TEST(Hand, AfterAFailureTheLaterMessagesOfTheGroupLeaveInOrderAndOthersStay) {
  Hand hand(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a"), task_of(3, "a")};
  const Task b = task_of(4, "b");
  for (const Task& task : a) hand.add(task);
  hand.add(b);
  EXPECT_EQ(hand.next(), a[0]);
  EXPECT_EQ(hand.end(a[0], true), (std::vector<Task>{a[1], a[2]}));
  EXPECT_EQ(hand.size(), 1u);
  EXPECT_EQ(hand.next(), b);
  EXPECT_FALSE(hand.has_next());
}

TEST(Hand, GroupsThatBeginTogetherKeepTheirOrderAndOnlyWhatHasNotBegunLeavesAfterAFailure) {
  Hand hand(true, true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a"), task_of(3, "a")};
  const Task b = task_of(4, "b");
  hand.add(a[0]);
  hand.add(a[1]);
  hand.add(b);
  hand.add(a[2]);
  EXPECT_EQ(hand.next(), a[0]);
  EXPECT_EQ(hand.next(), a[1]);
  EXPECT_EQ(hand.end(a[0], true), std::vector<Task>{a[2]});
  EXPECT_EQ(hand.next(), b);
  EXPECT_FALSE(hand.has_next());
  EXPECT_TRUE(hand.end(a[1], true).empty());
  EXPECT_EQ(hand.size(), 1u);
  hand.add(a[2]);
  EXPECT_EQ(hand.take_waiting(), std::vector<Task>{a[2]});
  EXPECT_EQ(hand.size(), 1u);
}

TEST(Hand, WhatHasNotBegunCanBeTakenAndTheRestEndsAsUsual) {
  Hand hand(true);
  const std::vector<Task> a{task_of(1, "a"), task_of(2, "a")};
  const std::vector<Task> b{task_of(3, "b"), task_of(4, "b")};
  for (const Task& task : a) hand.add(task);
  EXPECT_EQ(hand.next(), a[0]);
  for (const Task& task : b) hand.add(task);
  EXPECT_EQ(hand.take_waiting().size(), 3u);
  EXPECT_FALSE(hand.has_next());
  EXPECT_EQ(hand.size(), 1u);
  EXPECT_TRUE(hand.end(a[0], true).empty());
  EXPECT_EQ(hand.size(), 0u);
}

}  // namespace
}  // namespace stanchion::worker
