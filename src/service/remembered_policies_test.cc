#include "service/remembered_policies.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "model/limits.h"

namespace stanchion::service {
namespace {

constexpr std::size_t kBytesMax = std::size_t{2} << 20;

// As long as a policy may be, with as many values as fit: all that its text says is short.
std::string many_short_values(int number, std::string_view value) {
  std::string text = fmt::format(
      R"({{"Version":"2012-10-17","Statement":[{{"Sid":"s{}","Effect":"Allow","Principal":"*",)"
      R"("Action":"sqs:*","Resource":"*","Condition":{{"StringLike":{{"aws:UserAgent":["{}")",
      number, value);
  constexpr std::string_view kEnd = "]}}}]}";
  while (text.size() + value.size() + 3 + kEnd.size() <= limits::kPolicySizeMax)
    text += fmt::format(",\"{}\"", value);
  return text.append(kEnd);
}

struct Remembering {
  RememberedPolicies policies{kBytesMax};
  std::vector<std::weak_ptr<const policy::Policy>> given;

  void ask(const std::string& text) {
    const auto policy = policies.parsed(text);
    ASSERT_TRUE(policy) << text;
    given.push_back(policy);
  }
  // What those take that are still there, though nobody uses them.
  std::size_t footprint() const {
    std::size_t bytes = 0;
    for (const auto& one : given)
      if (const auto policy = one.lock()) bytes += policy::footprint(*policy);
    return bytes;
  }
};

TEST(RememberedPoliciesTest, AFootprintHasEveryValueOfAPolicy) {
  for (const char* value : {"a", "${a}", "${a}${b}${c}", "*"}) {
    const std::string text = many_short_values(0, value);
    const auto policy = policy::parse_policy(text);
    ASSERT_TRUE(policy) << policy.error().message;
    const auto& values = policy->statements[0].conditions[0].values;
    std::size_t least = 0;
    for (const policy::PolicyText& one : values)
      least += sizeof one + one.keys().size() * (sizeof(policy::Pattern) + sizeof(std::string));
    EXPECT_GE(policy::footprint(*policy), least) << value;
    EXPECT_GE(policy::footprint(*policy), 8 * text.size()) << value;
    // Nothing is kept that is not used.
    EXPECT_LE(policy::footprint(*policy), 32 * text.size()) << value;
  }
}

TEST(RememberedPoliciesTest, WhatIsRememberedIsBoundedByWhatItTakesAndNotByItsText) {
  for (const char* value : {"a", "${a}"}) {
    Remembering r;
    for (int i = 0; i < 200; ++i) r.ask(many_short_values(i, value));
    EXPECT_LE(r.footprint(), kBytesMax);
    EXPECT_GT(r.footprint(), kBytesMax / 2);
    EXPECT_LE(r.policies.bytes(), kBytesMax);
  }
}

TEST(RememberedPoliciesTest, AllThreadsTogetherRememberNoMore) {
  Remembering r;
  for (int i = 0; i < 40; ++i)
    std::thread([&r, i] {
      for (int j = 0; j < 5; ++j) r.ask(many_short_values(5 * i + j, "a"));
    }).join();
  EXPECT_LE(r.footprint(), kBytesMax);
  EXPECT_GT(r.footprint(), kBytesMax / 2);
}

TEST(RememberedPoliciesTest, APolicyIsParsedOnceUntilItIsForgotten) {
  RememberedPolicies policies(kBytesMax);
  const std::string first = many_short_values(0, "a");
  const auto known = policies.parsed(first);
  EXPECT_EQ(policies.parsed(first), known);
  for (int i = 1; i < 100; ++i) policies.parsed(many_short_values(i, "a"));
  EXPECT_NE(policies.parsed(first), known);
  EXPECT_EQ(policies.parsed(many_short_values(99, "a")),
            policies.parsed(many_short_values(99, "a")));
}

TEST(RememberedPoliciesTest, WhatIsNoPolicyIsNotRemembered) {
  RememberedPolicies policies(kBytesMax);
  EXPECT_EQ(policies.parsed("{}"), nullptr);
  EXPECT_EQ(policies.bytes(), 0U);
}

}  // namespace
}  // namespace stanchion::service
