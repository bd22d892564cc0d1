#include "service/console_sessions.h"

#include <gtest/gtest.h>

#include <set>

namespace stanchion::service {
namespace {

using Now = ConsoleSessions::Now;

TEST(ConsoleSessions, ATokenStandsForItsKeyUntilItsTimeIsOver) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  const Now now{};
  const std::string token = sessions.begin("AKIA", now);
  EXPECT_EQ(sessions.find(token, now), "AKIA");
  EXPECT_EQ(sessions.find(token, now + ConsoleSessions::kLasts - std::chrono::seconds(1)), "AKIA");
  EXPECT_FALSE(sessions.find(token, now + ConsoleSessions::kLasts));
  EXPECT_FALSE(sessions.find("", now));
  EXPECT_FALSE(sessions.find(token.substr(1), now));
}

TEST(ConsoleSessions, SigningOutEndsOneSessionOnly) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  const std::string one = sessions.begin("AKIA", {}), other = sessions.begin("AKIA", {});
  EXPECT_NE(one, other);
  sessions.end(one);
  EXPECT_FALSE(sessions.find(one, {}));
  EXPECT_TRUE(sessions.find(other, {}));
}

TEST(ConsoleSessions, TooManyPushOutTheOldest) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  Now now{};
  const std::string first = sessions.begin("first", now);
  std::string last;
  for (std::size_t i = 0; i < ConsoleSessions::kMost; ++i)
    last = sessions.begin("more", now += std::chrono::milliseconds(1));
  EXPECT_FALSE(sessions.find(first, now));
  EXPECT_TRUE(sessions.find(last, now));
}

}  // namespace
}  // namespace stanchion::service
