#include "worker/pause_watch.h"

#include <gtest/gtest.h>

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{1'000};

Instant at(int millis) {
  return Instant(milliseconds(100'000 + millis));
}

client::StringMap tags(std::initializer_list<std::string> keys) {
  client::StringMap map;
  for (const std::string& key : keys) map[key] = "yes";
  return map;
}

TEST(PauseWatch, NothingBeginsBeforeTheFirstLook) {
  PauseWatch watch(false, kInterval);
  EXPECT_FALSE(watch.may_begin(at(0)));
  watch.observe({}, at(0));
  EXPECT_TRUE(watch.may_begin(at(0)));
  EXPECT_EQ(watch.mode(), PauseMode::kRunning);
}

TEST(PauseWatch, AStandardQueueFollowsAtOnceAndHandlesWhatComesWhileItIsResumed) {
  PauseWatch watch(false, kInterval);
  watch.observe({}, at(0));
  watch.observe(tags({PauseWatch::kPausedTag}), at(10));
  EXPECT_TRUE(watch.may_begin(at(10)));
  EXPECT_TRUE(watch.moves(""));
  EXPECT_FALSE(watch.comes_back());
  watch.observe(tags({PauseWatch::kResumingTag}), at(20));
  EXPECT_FALSE(watch.moves(""));
  EXPECT_TRUE(watch.comes_back());
}

TEST(PauseWatch, AFifoQueueWaitsUntilAllWorkersHaveSeenAChange) {
  PauseWatch watch(true, kInterval);
  watch.observe({}, at(0));
  watch.observe({}, at(2'000));
  EXPECT_TRUE(watch.may_begin(at(2'000)));
  watch.observe(tags({PauseWatch::kPausedTag}), at(3'000));
  EXPECT_FALSE(watch.may_begin(at(3'000)));
  watch.observe(tags({PauseWatch::kPausedTag}), at(4'000));
  EXPECT_FALSE(watch.may_begin(at(4'999)));
  EXPECT_TRUE(watch.may_begin(at(5'000)));
}

// Others may still act on what the tags said right before it looked.
TEST(PauseWatch, AFifoQueueWaitsAfterTheFirstLookToo) {
  PauseWatch watch(true, kInterval);
  watch.observe(tags({PauseWatch::kPausedTag}), at(0));
  EXPECT_FALSE(watch.may_begin(at(1'999)));
  EXPECT_TRUE(watch.may_begin(at(2'000)));
}

TEST(PauseWatch, AFifoQueueStandsStillWhileTheTagsCannotBeRead) {
  PauseWatch watch(true, kInterval);
  watch.observe({}, at(0));
  EXPECT_TRUE(watch.may_begin(at(2'000)));
  EXPECT_FALSE(watch.may_begin(at(2'001)));
}

TEST(PauseWatch, AFifoQueueThatIsResumedSendsNewMessagesBehindTheOnesThatWait) {
  PauseWatch watch(true, kInterval);
  watch.observe(tags({PauseWatch::kResumingTag}), at(0));
  EXPECT_TRUE(watch.comes_back());
  EXPECT_TRUE(watch.moves("any"));
}

TEST(PauseWatch, OnlyThePausedGroupsOfAFifoQueueAreMoved) {
  PauseWatch watch(true, kInterval);
  watch.observe(tags({PauseWatch::tag_of_group("g")}), at(0));
  EXPECT_EQ(watch.mode(), PauseMode::kRunning);
  EXPECT_TRUE(watch.moves("g"));
  EXPECT_FALSE(watch.moves("h"));
  EXPECT_EQ(watch.groups().size(), 1u);
}

TEST(PauseWatch, AnAnswerThatWasOvertakenIsIgnored) {
  PauseWatch watch(false, kInterval);
  EXPECT_TRUE(watch.observe(tags({PauseWatch::kPausedTag}), at(20)));
  EXPECT_FALSE(watch.observe({}, at(10)));
  EXPECT_EQ(watch.mode(), PauseMode::kPaused);
}

TEST(PauseWatch, AQueueThatIsPausedAgainWhileItIsResumedIsPaused) {
  PauseWatch watch(false, kInterval);
  watch.observe(tags({PauseWatch::kPausedTag, PauseWatch::kResumingTag}), at(0));
  EXPECT_EQ(watch.mode(), PauseMode::kPaused);
}

}  // namespace
}  // namespace stanchion::worker
