#include "console/sign_in_guard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stanchion::console {
namespace {

using Now = SignInGuard::Now;
using Seconds = SignInGuard::Seconds;

constexpr Now kNow{std::chrono::hours(1)};

TEST(SignInGuard, AnAddressMayFailSoOftenAndThenOnceInAWhile) {
  SignInGuard guard;
  const auto [at_once, forgiven_after] = SignInGuard::kPerAddress;
  for (int i = 0; i < at_once; ++i) {
    EXPECT_EQ(guard.wait_of_address("192.0.2.1", kNow), Seconds(0)) << i;
    guard.note_failure("192.0.2.1", "", kNow);
  }
  EXPECT_EQ(guard.wait_of_address("192.0.2.1", kNow), forgiven_after);
  EXPECT_EQ(guard.wait_of_address("192.0.2.2", kNow), Seconds(0));
  const Now later = kNow + forgiven_after;
  EXPECT_EQ(guard.wait_of_address("192.0.2.1", later - std::chrono::milliseconds(1)), Seconds(1));
  EXPECT_EQ(guard.wait_of_address("192.0.2.1", later), Seconds(0));
  guard.note_failure("192.0.2.1", "", later);
  EXPECT_EQ(guard.wait_of_address("192.0.2.1", later), forgiven_after);
}

TEST(SignInGuard, AKeyMayBeWrongSoOftenFromAllAddressesTogether) {
  SignInGuard guard;
  const auto [at_once, forgiven_after] = SignInGuard::kPerKey;
  for (int i = 0; i < at_once; ++i) {
    EXPECT_EQ(guard.wait_of_key("AKIA", "192.0.2.0", kNow), Seconds(0)) << i;
    guard.note_failure(fmt::format("192.0.2.{}", i), "AKIA", kNow);
  }
  EXPECT_EQ(guard.wait_of_key("AKIA", "192.0.2.1", kNow), forgiven_after);
  EXPECT_EQ(guard.wait_of_key("AKIB", "192.0.2.1", kNow), Seconds(0));
  EXPECT_EQ(guard.wait_of_address("192.0.2.1", kNow), Seconds(0));
  EXPECT_EQ(guard.wait_of_key("AKIA", "192.0.2.1", kNow + forgiven_after), Seconds(0));
}

// Whoever knows the id of a key, which is no secret, could lock out its owner for ever.
TEST(SignInGuard, TheLimitOfAKeyIsNotForAddressesThatHaveNotFailed) {
  SignInGuard guard;
  for (int i = 0; i < 10 * SignInGuard::kPerKey.at_once; ++i)
    guard.note_failure(fmt::format("198.51.100.{}", i % 250), "AKIA", kNow);
  EXPECT_GT(guard.wait_of_key("AKIA", "198.51.100.1", kNow), Seconds(0));
  EXPECT_EQ(guard.wait_of_key("AKIA", "192.0.2.1", kNow), Seconds(0));
  // A failure with any key counts, until it is forgiven.
  guard.note_failure("192.0.2.1", "", kNow);
  EXPECT_GT(guard.wait_of_key("AKIA", "192.0.2.1", kNow), Seconds(0));
  const Now later = kNow + SignInGuard::kPerAddress.forgiven_after;
  EXPECT_GT(guard.wait_of_key("AKIA", "198.51.100.1", later), Seconds(0));
  EXPECT_EQ(guard.wait_of_key("AKIA", "192.0.2.1", later), Seconds(0));
}

TEST(SignInGuard, OneClientHasAWholeNetworkOfIpv6) {
  EXPECT_EQ(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:2:ffff::9"));
  EXPECT_NE(network_of("2001:db8:1:2::1"), network_of("2001:db8:1:3::1"));
  EXPECT_NE(network_of("192.0.2.1"), network_of("192.0.2.2"));
  EXPECT_EQ(network_of("unix"), "unix");
  SignInGuard guard;
  for (int i = 0; i < SignInGuard::kPerAddress.at_once; ++i)
    guard.note_failure(fmt::format("2001:db8::{}", i), "", kNow);
  EXPECT_GT(guard.wait_of_address("2001:db8::abcd", kNow), Seconds(0));
}

TEST(SignInGuard, AnAddressOfIpv4InIpv6IsThatOfIpv4) {
  EXPECT_EQ(network_of("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(network_of("::ffff:c000:201"), "192.0.2.1");
  EXPECT_NE(network_of("::ffff:192.0.2.1"), network_of("::ffff:192.0.2.2"));
  SignInGuard guard;
  for (int i = 0; i < SignInGuard::kPerAddress.at_once; ++i)
    guard.note_failure("::ffff:192.0.2.1", "", kNow);
  EXPECT_GT(guard.wait_of_address("192.0.2.1", kNow), Seconds(0));
  EXPECT_EQ(guard.wait_of_address("::ffff:192.0.2.2", kNow), Seconds(0));
}

// Whoever has most addresses makes the guard forget those that have failed least.
TEST(SignInGuard, WhatIsRememberedHasABound) {
  SignInGuard guard;
  for (int i = 0; i < SignInGuard::kPerAddress.at_once; ++i)
    guard.note_failure("192.0.2.1", "", kNow);
  for (std::size_t i = 0; i < 2 * SignInGuard::kRemembered; ++i)
    guard.note_failure(fmt::format("address {}", i), "", kNow);
  EXPECT_GT(guard.wait_of_address("192.0.2.1", kNow), Seconds(0));
  EXPECT_LE(guard.remembered(), SignInGuard::kRemembered);
  guard.note_failure("one more", "", kNow + std::chrono::hours(1));
  EXPECT_EQ(guard.remembered(), 1u);
}

}  // namespace
}  // namespace stanchion::console
