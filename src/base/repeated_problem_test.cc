#include "base/repeated_problem.h"

#include <gtest/gtest.h>

#include <vector>

namespace stanchion {
namespace {

using Told = std::vector<std::string>;

constexpr RepeatedProblem::Time kNow{std::chrono::hours(1)};

TEST(RepeatedProblem, IsSaidOnceAndThenCounted) {
  Told told;
  {
    RepeatedProblem problem([&](std::string_view what) { told.emplace_back(what); }, "{} more");
    for (const char* what : {"a", "b", "c"}) problem.say(what, kNow);
    EXPECT_EQ(told, Told{"a"});
    problem.tell_if_due(kNow + RepeatedProblem::kSayAgain);
    EXPECT_EQ(told, (Told{"a", "2 more"}));
    problem.say("d", kNow + RepeatedProblem::kSayAgain);
    EXPECT_EQ(told.size(), 2u) << "the count was said a moment ago";
  }
  EXPECT_EQ(told, (Told{"a", "2 more", "1 more"}));
}

TEST(RepeatedProblem, SeveralMayBeSaidAtOnce) {
  Told told;
  RepeatedProblem problem([&](std::string_view what) { told.emplace_back(what); }, "{} more", 2);
  for (const char* what : {"a", "b", "c", "d"}) problem.say(what, kNow);
  EXPECT_EQ(told, (Told{"a", "b"}));
  const auto later = kNow + RepeatedProblem::kSayAgain;
  for (const char* what : {"e", "f"}) problem.say(what, later);
  EXPECT_EQ(told, (Told{"a", "b", "2 more", "e"}));
  problem.say("g", later + RepeatedProblem::kSayAgain);
  problem.say("h", later + 3 * RepeatedProblem::kSayAgain);
  EXPECT_EQ(told, (Told{"a", "b", "2 more", "e", "1 more", "g", "h"}));
}

}  // namespace
}  // namespace stanchion
