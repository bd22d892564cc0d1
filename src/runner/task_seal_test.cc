#include "runner/task_seal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

namespace stanchion::runner {
namespace {

constexpr const char* kOld = "an old key of some length";
constexpr const char* kNew = "a new key of some length!";
constexpr const char* kNoon = "2026-11-16T12:00:00Z";

TaskSeal seal_of(const std::string& text) {
  auto seal = TaskSeal::of_lines(text);
  EXPECT_TRUE(seal) << seal.error().message;
  return *seal;
}

TEST(TaskSeal, KnowsWhatWorkersWithTheSameKeySigned) {
  const std::string signature = seal_of(kOld).sign("ticks.fifo", "report", kNoon);
  EXPECT_EQ(signature.size(), 64u);
  const TaskSeal again = seal_of(std::string(kOld) + "\n");
  EXPECT_TRUE(again.is_signed("ticks.fifo", "report", kNoon, signature));
  EXPECT_FALSE(again.is_signed("others.fifo", "report", kNoon, signature));
  EXPECT_FALSE(again.is_signed("ticks.fifo", "delete-all", kNoon, signature));
  EXPECT_FALSE(again.is_signed("ticks.fifo", "report", "2026-11-16T12:01:00Z", signature));
  EXPECT_FALSE(again.is_signed("ticks.fifo", "report", kNoon, ""));
  EXPECT_FALSE(seal_of(kNew).is_signed("ticks.fifo", "report", kNoon, signature));
}

TEST(TaskSeal, PartsCannotBeDividedInAnotherWay) {
  const TaskSeal seal = seal_of(kOld);
  EXPECT_NE(seal.sign("q", "ab", "c"), seal.sign("q", "a", "bc"));
  EXPECT_NE(seal.sign("q", "a", "1:b"), seal.sign("q", "a1:b", ""));
}

TEST(TaskSeal, AKeyCanBeChangedWhileWorkersRun) {
  const TaskSeal before = seal_of(kOld);
  const TaskSeal between = seal_of(fmt::format("{}\r\n\n{}\n", kOld, kNew));
  const TaskSeal after = seal_of(fmt::format("{}\n{}", kNew, kOld));
  const auto knows = [](const TaskSeal& one, const TaskSeal& other) {
    return one.is_signed("q", "t", kNoon, other.sign("q", "t", kNoon));
  };
  EXPECT_TRUE(knows(before, between) && knows(between, before));
  EXPECT_TRUE(knows(between, after) && knows(after, between));
  EXPECT_FALSE(knows(before, after));
}

TEST(TaskSeal, AKeyIsLongEnough) {
  EXPECT_FALSE(TaskSeal::of_lines(""));
  EXPECT_FALSE(TaskSeal::of_lines("\n\n"));
  EXPECT_FALSE(TaskSeal::of_lines("fifteen letters"));
  EXPECT_TRUE(TaskSeal::of_lines("sixteen letters!"));
}

TEST(TaskSeal, ComesFromASecretThatLasts) {
  const auto seal = TaskSeal::of_credentials({.access_key_id = "A", .secret_access_key = "B"});
  ASSERT_TRUE(seal);
  EXPECT_FALSE(seal->everybody_can_sign());
  EXPECT_TRUE(TaskSeal::of_credentials({})->everybody_can_sign());
  const auto same = TaskSeal::of_credentials({.access_key_id = "C", .secret_access_key = "B"});
  EXPECT_EQ(seal->sign("q", "t", kNoon), same->sign("q", "t", kNoon));
  const auto other = TaskSeal::of_credentials({.access_key_id = "A", .secret_access_key = "C"});
  EXPECT_NE(seal->sign("q", "t", kNoon), other->sign("q", "t", kNoon));
  const auto temporary = TaskSeal::of_credentials(
      {.access_key_id = "A", .secret_access_key = "B", .session_token = "C"});
  ASSERT_FALSE(temporary);
  EXPECT_NE(temporary.error().message.find("--cron-key"), std::string::npos);
  EXPECT_FALSE(TaskSeal::of_credentials({.access_key_id = "A",
                                         .secret_access_key = "B",
                                         .expires = std::chrono::system_clock::now()}));
}

TEST(TaskSeal, ATaskThatWasSentLongAfterItsTimeIsNoWorkers) {
  const std::string noon = "2026-11-16T12:00:00Z";
  ASSERT_TRUE(parse_iso_time(noon));
  EXPECT_EQ(iso_time(*parse_iso_time(noon)), noon);
  const auto sent = [&](std::chrono::milliseconds after) {
    return std::to_string((parse_iso_time(noon)->time_since_epoch() + after).count());
  };
  EXPECT_FALSE(was_sent_too_late(noon, sent(-std::chrono::minutes(5))));
  EXPECT_FALSE(was_sent_too_late(noon, sent(kSentWithin)));
  EXPECT_TRUE(was_sent_too_late(noon, sent(kSentWithin + std::chrono::milliseconds(1))));
  EXPECT_FALSE(was_sent_too_late(noon, "")) << "it is not known";
  EXPECT_TRUE(was_sent_too_late("noon", sent(std::chrono::minutes(1))));
  EXPECT_TRUE(was_sent_too_late(noon + "x", sent(std::chrono::minutes(1))));
}

}  // namespace
}  // namespace stanchion::runner
