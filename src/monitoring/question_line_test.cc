// Who is answered when by the history's thread, and what a stop does to those who wait.
#include "monitoring/question_line.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace stanchion::monitoring {
namespace {

using Turn = QuestionLine::Turn;

// Tasks run when the test says so.
class ManualBackground final : public broker::Background {
 public:
  void run(broker::Work work, broker::Task task) override {
    EXPECT_EQ(work, broker::Work::kHistory);
    tasks.push_back(std::move(task));
  }
  bool run_one() {
    if (tasks.empty()) return false;
    broker::Task task = std::move(tasks.front());
    tasks.pop_front();
    task();
    return true;
  }

  std::deque<broker::Task> tasks;
};

class QuestionLineTest : public testing::Test {
 protected:
  // Takes so many turns, each of which is noted by its name, and holds so much between them.
  bool ask(const std::string& account, const std::string& name, int turns = 1,
           std::size_t held = 0) {
    return line_.ask(account, [this, name, turns, held](const history::History*) mutable -> Turn {
      seen_ += name;
      return {.more = --turns > 0, .held = held};
    });
  }
  std::string run_all() {
    while (background_.run_one()) EXPECT_LE(background_.tasks.size(), 1U);
    return std::exchange(seen_, {});
  }

  ManualBackground background_;
  std::string seen_;
  std::vector<bool> stopping_;
  QuestionLine line_{background_, [this](QuestionLine::Question& question, bool stopping) {
                       stopping_.push_back(stopping);
                       return question(nullptr);
                     }};
};

TEST_F(QuestionLineTest, AccountsTakeTurnsWhateverOneOfThemAsks) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(ask("A", "a"));
  ASSERT_TRUE(ask("B", "b"));
  ASSERT_TRUE(ask("C", "c"));
  ASSERT_TRUE(ask("B", "b"));
  EXPECT_EQ(run_all(), "abcabaaa");
}

TEST_F(QuestionLineTest, ALongQuestionLetsOthersGoFirstAgainAndAgain) {
  ASSERT_TRUE(ask("A", "a", 5));
  ASSERT_TRUE(ask("B", "b", 2));
  ASSERT_TRUE(background_.run_one());
  ASSERT_TRUE(ask("C", "c"));
  EXPECT_EQ(run_all(), "abacbaaa") << "b comes first after the first a: it was there before c";
}

TEST_F(QuestionLineTest, QuestionsOfOneAccountTakeTurnsToo) {
  ASSERT_TRUE(ask("A", "1", 3));
  ASSERT_TRUE(ask("A", "2", 3));
  ASSERT_TRUE(ask("A", "3"));
  EXPECT_EQ(run_all(), "1231212");
}

TEST_F(QuestionLineTest, AnAccountCannotTakeThePlacesOfAllOthers) {
  std::size_t taken = 0;
  while (ask("A", "a")) ++taken;
  EXPECT_EQ(taken, QuestionLine::kQuestionsOfAccountMax);
  EXPECT_TRUE(ask("B", "b"));
  EXPECT_EQ(run_all().size(), taken + 1);
  EXPECT_TRUE(ask("A", "a")) << "there is room again";
}

TEST_F(QuestionLineTest, SeveralAccountsCannotTakeThePlacesOfAllOthers) {
  std::size_t in_all = 0;
  for (int account = 0; in_all < QuestionLine::kQuestionsMax; ++account)
    while (ask(std::to_string(account), "c")) ++in_all;
  EXPECT_EQ(in_all, QuestionLine::kQuestionsMax);
  EXPECT_TRUE(ask("A", "a"));
  EXPECT_TRUE(ask("B", "b"));
  EXPECT_FALSE(ask("A", "a")) << "beyond the bound an account has one place";
  EXPECT_FALSE(ask("0", "c"));
  EXPECT_EQ(run_all().size(), in_all + 2);
}

TEST_F(QuestionLineTest, WhatIsHeldBetweenTurnsIsBounded) {
  constexpr std::size_t kHalf = QuestionLine::kHeldMax / 2;
  ASSERT_TRUE(ask("A", "a", 3, kHalf));
  ASSERT_TRUE(ask("B", "b", 3, kHalf));
  ASSERT_TRUE(ask("C", "c", 3, kHalf));
  // The third would be too much, so it is brought to its end before anybody else goes on.
  EXPECT_EQ(run_all(), "abcccabab");
}

TEST_F(QuestionLineTest, AStopTurnsEverybodyAwayAtOnce) {
  ASSERT_TRUE(ask("A", "a", 1'000));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(ask("A", "w", 1'000));
  ASSERT_TRUE(background_.run_one());
  stopping_.clear();
  line_.stop();
  EXPECT_EQ(run_all().size(), 1U + 61U) << "one turn each";
  EXPECT_EQ(stopping_, std::vector<bool>(61, true));
  EXPECT_FALSE(ask("B", "b"));
}

TEST_F(QuestionLineTest, AQuestionThatFailedIsDone) {
  int turns = 0;
  ASSERT_TRUE(line_.ask("A", [&](const history::History*) -> Turn {
    ++turns;
    return {.more = true, .held = 1, .failure = Failure{"damaged", 0}};
  }));
  run_all();
  EXPECT_EQ(turns, 1);
}

}  // namespace
}  // namespace stanchion::monitoring
