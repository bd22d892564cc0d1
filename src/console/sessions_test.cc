#include "console/sessions.h"

#include <gtest/gtest.h>

namespace stanchion::console {
namespace {

using Now = ConsoleSessions::Now;

service::SignedIn key_of(std::string account, std::string id = "AKIA") {
  return {std::move(id), std::move(account), "fingerprint"};
}

TEST(ConsoleSessions, ATokenStandsForWhoSignedInUntilItsTimeIsOver) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  const Now now{};
  const service::SignedIn who = key_of("1");
  const std::string token = sessions.begin(who, now);
  EXPECT_EQ(sessions.find(token, now), who);
  EXPECT_EQ(sessions.find(token, now + ConsoleSessions::kLasts - std::chrono::seconds(1)), who);
  EXPECT_FALSE(sessions.find(token, now + ConsoleSessions::kLasts));
  EXPECT_FALSE(sessions.find("", now));
  EXPECT_FALSE(sessions.find(token.substr(1), now));
}

TEST(ConsoleSessions, SigningOutEndsOneSessionOnly) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  const std::string one = sessions.begin(key_of("1"), {}), other = sessions.begin(key_of("1"), {});
  EXPECT_NE(one, other);
  sessions.end(one);
  EXPECT_FALSE(sessions.find(one, {}));
  EXPECT_TRUE(sessions.find(other, {}));
}

TEST(ConsoleSessions, TooManyOfAnAccountPushOutItsOldestAndNobodyElses) {
  os::SystemEntropy entropy;
  ConsoleSessions sessions(entropy);
  Now now{};
  const std::string others = sessions.begin(key_of("2"), now);
  const std::string first = sessions.begin(key_of("1", "first"), now);
  const std::string second = sessions.begin(key_of("1"), now += std::chrono::milliseconds(1));
  std::string last;
  for (std::size_t i = 1; i < ConsoleSessions::kPerAccountMax; ++i)
    last = sessions.begin(key_of("1"), now += std::chrono::milliseconds(1));
  EXPECT_FALSE(sessions.find(first, now));
  EXPECT_TRUE(sessions.find(second, now));
  EXPECT_TRUE(sessions.find(last, now));
  EXPECT_TRUE(sessions.find(others, now));
}

}  // namespace
}  // namespace stanchion::console
