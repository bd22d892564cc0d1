#include "service/answer_line.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::service {
namespace {

class AnswerLineTest : public testing::Test {
 protected:
  void enter(char name, std::size_t places = 1) {
    line_.enter(places, [this, name] { ran_ += name; });
  }
  void run_later() {
    while (!later_.empty()) {
      net::Task task = std::move(later_.front());
      later_.pop_front();
      task();
    }
  }

  std::deque<net::Task> later_;
  AnswerLine line_{[this](net::Task task) { later_.push_back(std::move(task)); }};
  std::string ran_;
};

TEST_F(AnswerLineTest, SomeRunAtATimeAndTheOthersInOrder) {
  static_assert(AnswerLine::kPlaces == 4);
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f'}) enter(name);
  EXPECT_EQ(ran_, "abcd");
  line_.leave(1);
  EXPECT_EQ(ran_, "abcd");  // Whoever leaves does not run the next one.
  run_later();
  EXPECT_EQ(ran_, "abcde");
  EXPECT_EQ(line_.waiting(), 1U);
}

TEST_F(AnswerLineTest, AHeavyOneRunsAloneAndIsNotOvertaken) {
  enter('a');
  enter('H', AnswerLine::kPlaces);
  enter('b');
  EXPECT_EQ(ran_, "a");
  line_.leave(1);
  run_later();
  EXPECT_EQ(ran_, "aH");
  line_.leave(AnswerLine::kPlaces);
  run_later();
  EXPECT_EQ(ran_, "aHb");
}

TEST_F(AnswerLineTest, ThoseThatLeaveAtOnceDoNotRunInsideEachOther) {
  int depth = 0;
  int deepest = 0;
  int ran = 0;
  for (std::size_t i = 0; i < AnswerLine::kPlaces; ++i) enter('-');
  for (int i = 0; i < 1'000; ++i)
    line_.enter(1, [&] {
      deepest = std::max(deepest, ++depth);
      ++ran;
      line_.leave(1);
      --depth;
    });
  line_.leave(1);
  run_later();
  EXPECT_EQ(ran, 1'000);
  EXPECT_EQ(deepest, 1);
}

}  // namespace
}  // namespace stanchion::service
