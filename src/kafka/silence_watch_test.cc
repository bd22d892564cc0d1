#include "kafka/silence_watch.h"

#include <gtest/gtest.h>

namespace stanchion::kafka {
namespace {

using journal::LogOffset;
using std::chrono::seconds;
using Step = SilenceWatch::Step;

constexpr seconds kPatience(30);
constexpr LogOffset kReached(7);

class SilenceWatchTest : public testing::Test {
 protected:
  Step look_after(seconds time) { return watch_.look(now_ += time, kReached); }
  void ask() { watch_.asked(now_); }
  void hear() { watch_.heard(now_); }

  SilenceWatch watch_{kPatience};

 private:
  SilenceWatch::Instant now_{std::chrono::hours(5)};
};

TEST_F(SilenceWatchTest, AReaderToWhichALogThatGoesOnShowsNothingGivesUp) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(seconds(29)), Step::kNone);
  EXPECT_EQ(look_after(seconds(1)), Step::kAsk);
  ask();
  watch_.answered(LogOffset(8));
  EXPECT_EQ(look_after(seconds(1)), Step::kNone);
  EXPECT_EQ(look_after(seconds(4)), Step::kAsk);
  ask();
  watch_.answered(LogOffset(8));
  EXPECT_EQ(look_after(seconds(1)), Step::kGiveUp);
}

// It is shown what came meanwhile a moment later.
TEST_F(SilenceWatchTest, WhoWasStoppedForLongDoesNotGiveUpWithTheFirstAnswer) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(seconds(600)), Step::kAsk);
  ask();
  watch_.answered(LogOffset(900));
  EXPECT_EQ(look_after(seconds(1)), Step::kNone);
  hear();
  EXPECT_EQ(look_after(seconds(29)), Step::kNone);
  EXPECT_EQ(look_after(seconds(1)), Step::kAsk);
  ask();
  watch_.answered(LogOffset(901));
  EXPECT_EQ(look_after(seconds(1)), Step::kNone) << "that was another silence";
}

TEST_F(SilenceWatchTest, WhoHasReadEverythingWaitsOn) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(kPatience), Step::kAsk);
  ask();
  watch_.answered(kReached);
  EXPECT_EQ(look_after(seconds(1)), Step::kNone);
  EXPECT_EQ(look_after(seconds(29)), Step::kNone);
  EXPECT_EQ(look_after(seconds(1)), Step::kAsk);
}

TEST_F(SilenceWatchTest, WhoIsShownSomethingWaitsOnWhateverWasAnswered) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(kPatience), Step::kAsk);
  ask();
  watch_.answered(LogOffset(8));
  hear();
  EXPECT_EQ(look_after(seconds(1)), Step::kNone);
  EXPECT_EQ(look_after(kPatience), Step::kAsk);
}

// Brokers that cannot be reached are waited for: nothing is wrong with the log.
TEST_F(SilenceWatchTest, NobodyGivesUpWithoutAnAnswer) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(kPatience), Step::kAsk);
  for (int i = 0; i < 100; ++i) {
    ask();
    EXPECT_EQ(look_after(seconds(1)), Step::kNone) << "not at once again";
    EXPECT_EQ(look_after(SilenceWatch::kAskAgain), Step::kAsk);
  }
}

TEST_F(SilenceWatchTest, AQuestionThatCouldNotBeAskedIsAskedWithTheNextLook) {
  EXPECT_EQ(look_after(seconds(0)), Step::kNone);
  EXPECT_EQ(look_after(kPatience), Step::kAsk);
  EXPECT_EQ(look_after(seconds(0)), Step::kAsk);
}

}  // namespace
}  // namespace stanchion::kafka
