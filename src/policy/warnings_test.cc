#include "policy/warnings.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion::policy {
namespace {

using Warnings = std::vector<std::string>;

constexpr std::string_view kQueue = "arn:aws:sqs:us-east-1:000000000000:orders";

Warnings warnings(std::string_view statement) {
  const auto policy = parse_policy("{\"Statement\":" + std::string(statement) + "}");
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? warnings_about(*policy, kQueue) : Warnings{"refused"};
}

TEST(PolicyWarnings, APolicyThatTakesEffectHasNone) {
  EXPECT_EQ(
      warnings(R"([{"Effect":"Allow","Principal":"*","Action":["sqs:Send*","SQS:DeleteMessage"],
      "Resource":["arn:aws:sqs:eu-west-1:000000000000:orders","arn:aws:sqs:*:*:orders"],
      "Condition":{"ArnLike":{"aws:SourceArn":["arn:aws:sns:us-east-1:000000000000:t","*"]}}},
      {"Effect":"Deny","NotPrincipal":{"AWS":["111111111111","arn:aws:iam::111111111111:user/ann"]},
       "NotAction":"sqs:ReceiveMessage","Resource":"*"}])"),
      Warnings{});
}

TEST(PolicyWarnings, AStatementForNoQueueOrAnotherOneNeverApplies) {
  EXPECT_EQ(warnings(R"([{"Effect":"Allow","Principal":"*","Action":"*","Resource":"placeholder"},
      {"Sid":"mine","Effect":"Deny","Principal":"*","Action":"*",
       "NotResource":"arn:aws:sqs:us-east-1:000000000000:bills"}])"),
            (Warnings{"statement 1: placeholder is not this queue, "
                      "arn:aws:sqs:us-east-1:000000000000:orders, so that the statement never "
                      "applies",
                      "statement mine: arn:aws:sqs:us-east-1:000000000000:bills is not this queue, "
                      "arn:aws:sqs:us-east-1:000000000000:orders, so that the statement always "
                      "applies"}));
}

TEST(PolicyWarnings, WhatIsMisspeltIsNamed) {
  EXPECT_EQ(warnings(R"({"Effect":"Allow","Principal":"*","Action":["sqs:Sendmesage","sqs:*"],
      "Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"my-topic"}}})"),
            (Warnings{"statement 1: sqs:sendmesage is no permission of SQS",
                      "statement 1: my-topic, with which aws:sourcearn is compared, is no ARN"}));
}

Warnings about_condition(std::string_view effect, std::string_view condition) {
  return warnings(R"({"Effect":")" + std::string(effect) +
                  R"(","Principal":"*","Action":"*","Resource":"*","Condition":)" +
                  std::string(condition) + "}");
}

TEST(PolicyWarnings, AKeyOfAnotherServiceIsNamedWithWhatFollows) {
  for (const char* effect : {"Allow", "Deny"}) {
    EXPECT_EQ(
        about_condition(effect, R"({"StringEquals":{"s3:Prefix":"x"}})"),
        Warnings{"statement 1: s3:prefix never has a value for a queue, so that the statement "
                 "never applies"});
    EXPECT_EQ(
        about_condition(effect, R"({"StringNotEquals":{"s3:Prefix":"x"}})"),
        Warnings{"statement 1: s3:prefix never has a value for a queue, so that the condition "
                 "on it always holds"});
  }
}

TEST(PolicyWarnings, AKeyThatIsNotKnownIsNamedWithWhatFollows) {
  for (const char* condition : {R"({"StringEquals":{"aws:Sped":"x"}})",
                                R"({"StringNotEqualsIfExists":{"aws:Sped":"x"}})"}) {
    EXPECT_EQ(about_condition("Allow", condition),
              Warnings{"statement 1: aws:sped is no key that is known here, so that the statement "
                       "allows nothing"});
    EXPECT_EQ(about_condition("Deny", condition),
              Warnings{"statement 1: aws:sped is no key that is known here, so that the statement "
                       "denies whatever its value is"});
  }
  EXPECT_EQ(about_condition("Deny", R"({"StringEquals":{"aws:SourceVpc":"x","aws:userid":"y"}})"),
            Warnings{});
}

TEST(PolicyWarnings, AVariableThatNeverHasAValueIsNamed) {
  const auto policy = parse_policy(
      R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"*",
          "Resource":["arn:aws:sqs:*:*:${aws:username}","arn:aws:sqs:*:*:${aws:usrname}"],
          "Condition":{"ArnLike":{"aws:SourceArn":"${s3:prefix, 'x'}${aws:PrincipalTag/x}"},
                       "StringEquals":{"aws:username":"${s3:prefix}"}}}})");
  ASSERT_TRUE(policy);
  EXPECT_EQ(warnings_about(*policy, kQueue),
            (Warnings{"statement 1: aws:usrname is no key that is known here, so that the "
                      "statement allows nothing",
                      "statement 1: s3:prefix never has a value for a queue, so that nothing "
                      "matches ${s3:prefix}"}));
}

TEST(PolicyWarnings, AVariableThatMakesAPartHoldIsNamedWithWhatFollows) {
  const auto about = [](std::string_view rest) {
    const auto policy = parse_policy(
        R"({"Version":"2012-10-17","Statement":{"Effect":"Deny","Principal":"*","Action":"*",)" +
        std::string(rest) + "}}");
    EXPECT_TRUE(policy) << rest;
    return policy ? warnings_about(*policy, kQueue) : Warnings{"refused"};
  };
  EXPECT_EQ(about(R"("NotResource":"arn:aws:sqs:*:*:${s3:x}${s3:x}")"),
            Warnings{"statement 1: s3:x never has a value for a queue, so that nothing matches "
                     "arn:aws:sqs:*:*:${s3:x}${s3:x}, and the statement applies"});
  EXPECT_EQ(about(R"("Resource":"*","Condition":{"StringNotLike":{"aws:username":"${s3:x}"}})"),
            Warnings{"statement 1: s3:x never has a value for a queue, so that nothing matches "
                     "${s3:x}, and the condition on aws:username always holds"});
  EXPECT_EQ(
      about(R"("Resource":"*","Condition":{"StringNotLike":{"aws:username":["x","${s3:x}"]}})"),
      Warnings{"statement 1: s3:x never has a value for a queue, so that nothing matches ${s3:x}"});
  EXPECT_EQ(
      about(R"("Resource":"*","Condition":{"StringEquals":{"aws:username":"${aws:x, 'y'}"}})"),
      Warnings{"statement 1: aws:x is no key that is known here, so that the statement "
               "denies whatever its value is"});
}

TEST(PolicyWarnings, OnlyAFewAreExamples) {
  EXPECT_EQ(summary_of({}), "");
  EXPECT_EQ(summary_of({"a", "b", "c"}), "a; b; c");
  EXPECT_EQ(summary_of({"a", "b", "c", "d", "e"}), "a; b; c; and 2 more");
}

TEST(PolicyWarnings, AResourceWithAVariableMayBeAnotherQueueAllTheSame) {
  const auto policy = parse_policy(
      R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*","Action":"*",
          "Resource":"arn:aws:sqs:*:*:bills-${aws:username}"}})");
  ASSERT_TRUE(policy);
  EXPECT_EQ(warnings_about(*policy, kQueue).size(), 1u);
}

TEST(PolicyWarnings, AUserIsNotSparedWithoutItsAccount) {
  EXPECT_EQ(warnings(R"({"Effect":"Deny","Action":"*","Resource":"*",
      "NotPrincipal":{"AWS":["222222222222","arn:aws:iam::111111111111:user/ann"]}})"),
            (Warnings{"statement 1: NotPrincipal names iam::111111111111:user/ann without its "
                      "account, so that it does not spare it"}));
}

TEST(PolicyWarnings, AreNoLongerThanALine) {
  const std::string resource(5'000, 'x');
  const Warnings one =
      warnings(R"({"Effect":"Allow","Principal":"*","Action":"*","Resource":")" + resource + "\"}");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_LT(one[0].size(), 400u);
}

TEST(PolicyWarnings, AreNotCutInTheMiddleOfACharacter) {
  for (const std::string character : {"é", "€", "😀"}) {
    for (std::size_t before = 0; before < character.size(); ++before) {
      std::string resource(before, 'x');
      while (resource.size() < 1'000) resource += character;
      const Warnings one = warnings(
          R"({"Effect":"Allow","Principal":"*","Action":"*","Resource":")" + resource + "\"}");
      ASSERT_EQ(one.size(), 1u);
      EXPECT_TRUE(is_utf8(one[0])) << one[0];
      EXPECT_NE(one[0].find(character + "…"), std::string::npos) << one[0];
    }
  }
}

}  // namespace
}  // namespace stanchion::policy
