#include "policy/policy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/limits.h"

namespace stanchion::policy {
namespace {

constexpr std::string_view kQueue = "arn:aws:sqs:us-east-1:000000000000:orders";
constexpr std::string_view kUser = "arn:aws:iam::111111111111:user/ann";

PolicyRequest request_of_user(std::string_view action = "SendMessage") {
  return {"111111111111", kUser, "", action, kQueue, {}};
}

std::string policy_with(std::string_view statement) {
  return fmt::format(R"({{"Version":"2012-10-17","Statement":{}}})", statement);
}

// An Allow of everything to everyone, in which these elements replace or join the usual ones.
std::string allow_with_condition(std::string_view condition) {
  return policy_with(fmt::format(
      R"({{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*","Condition":{}}})",
      condition));
}

Verdict verdict(std::string_view text, const PolicyRequest& request) {
  const auto policy = parse_policy(text);
  EXPECT_TRUE(policy) << policy.error().message << "\n" << text;
  return policy ? evaluate(*policy, request) : Verdict::kNoMatch;
}

bool condition_holds(std::string_view condition, PolicyContext context) {
  PolicyRequest request = request_of_user();
  request.context = std::move(context);
  return verdict(allow_with_condition(condition), request) == Verdict::kAllow;
}

bool principal_matches(std::string_view principal, const PolicyRequest& request) {
  return verdict(
             policy_with(fmt::format(
                 R"({{"Effect":"Allow","Principal":{},"Action":"*","Resource":"*"}})", principal)),
             request) == Verdict::kAllow;
}

TEST(Policy, PrincipalsAreEveryoneAccountsUsersRolesAndServices) {
  const PolicyRequest user = request_of_user();
  const PolicyRequest anonymous{"", "", "", "SendMessage", kQueue, {}};
  const PolicyRequest topic{"", "", "sns.amazonaws.com", "SendMessage", kQueue, {}};
  const PolicyRequest session{
      "111111111111", "arn:aws:sts::111111111111:assumed-role/R/me", "", "SendMessage", kQueue, {}};
  EXPECT_TRUE(principal_matches(R"("*")", anonymous));
  EXPECT_TRUE(principal_matches(R"({"AWS":"*"})", user));
  EXPECT_TRUE(principal_matches(R"({"AWS":"111111111111"})", user));
  EXPECT_TRUE(
      principal_matches(R"({"AWS":["222222222222","arn:aws:iam::111111111111:root"]})", user));
  EXPECT_TRUE(principal_matches(R"({"AWS":"arn:aws:iam::111111111111:user/ann"})", user));
  EXPECT_FALSE(principal_matches(R"({"AWS":"arn:aws:iam::111111111111:user/bob"})", user));
  EXPECT_FALSE(principal_matches(R"({"AWS":"222222222222"})", user));
  EXPECT_TRUE(principal_matches(R"({"AWS":"1111-1111-1111"})", user));
  EXPECT_FALSE(principal_matches(R"({"AWS":"2222-2222-2222"})", user));
  EXPECT_FALSE(principal_matches(R"({"AWS":"111111111111"})", anonymous));
  EXPECT_TRUE(principal_matches(R"({"AWS":"arn:aws:iam::111111111111:role/R"})", session));
  EXPECT_TRUE(principal_matches(R"({"Service":"sns.amazonaws.com"})", topic));
  EXPECT_FALSE(principal_matches(R"({"Service":"events.amazonaws.com"})", topic));
  EXPECT_FALSE(principal_matches(R"({"Service":"sns.amazonaws.com"})", user));
  EXPECT_FALSE(principal_matches(R"({"Federated":"cognito"})", user));
}

TEST(Policy, ActionsAreCaselessAndMayHaveWildcards) {
  const auto allows = [](std::string_view element, std::string_view action) {
    return verdict(policy_with(fmt::format(
                       R"({{"Effect":"Allow","Principal":"*",{},"Resource":"*"}})", element)),
                   request_of_user(action)) == Verdict::kAllow;
  };
  EXPECT_TRUE(allows(R"("Action":"SQS:SendMessage")", "SendMessage"));
  EXPECT_TRUE(allows(R"("Action":"sqs:sendmessage")", "SendMessage"));
  EXPECT_TRUE(allows(R"("Action":["sqs:Get*","sqs:Send?essage"])", "SendMessage"));
  EXPECT_FALSE(allows(R"("Action":["sqs:Get*"])", "SendMessage"));
  EXPECT_TRUE(allows(R"("NotAction":"sqs:Delete*")", "SendMessage"));
  EXPECT_FALSE(allows(R"("NotAction":"sqs:Delete*")", "DeleteMessage"));
}

TEST(Policy, ResourcesAreMatchedAgainstTheQueuesArn) {
  const auto allows = [](std::string_view element) {
    return verdict(policy_with(fmt::format(
                       R"({{"Effect":"Allow","Principal":"*","Action":"*",{}}})", element)),
                   request_of_user()) == Verdict::kAllow;
  };
  EXPECT_TRUE(allows(R"("Resource":"arn:aws:sqs:us-east-1:000000000000:orders")"));
  EXPECT_TRUE(allows(R"("Resource":"arn:aws:sqs:*:000000000000:ord*")"));
  EXPECT_FALSE(allows(R"("Resource":"arn:aws:sqs:us-east-1:000000000000:Orders")"));
  EXPECT_FALSE(allows(R"("NotResource":"arn:aws:sqs:*")"));
}

// Recorded on AWS: a placeholder that was never replaced is taken, and matches nothing.
TEST(Policy, AResourceThatIsNoArnIsAcceptedAndMatchesNothing) {
  for (const char* text :
       {"orders", "", "placeholder", "${QueueArn}", "<the queue>", "ARN:aws:*"}) {
    const auto with = [&](std::string_view element) {
      return policy_with(fmt::format(
          R"({{"Effect":"Deny","Principal":"*","Action":"sqs:*","{}":"{}"}})", element, text));
    };
    EXPECT_EQ(verdict(with("Resource"), request_of_user()), Verdict::kNoMatch) << text;
    EXPECT_EQ(verdict(with("NotResource"), request_of_user()), Verdict::kDeny) << text;
  }
  EXPECT_FALSE(condition_holds(R"({"ArnEquals":{"aws:PrincipalArn":"placeholder"}})",
                               {{"aws:principalarn", {std::string(kUser)}}}));
}

TEST(Policy, AnyMatchingDenyWinsOverEveryAllow) {
  constexpr std::string_view kText = R"([
    {"Sid":"a","Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"},
    {"Sid":"b","Effect":"Deny","Principal":{"AWS":"111111111111"},
     "Action":"sqs:PurgeQueue","Resource":"*"}])";
  EXPECT_EQ(verdict(policy_with(kText), request_of_user("SendMessage")), Verdict::kAllow);
  EXPECT_EQ(verdict(policy_with(kText), request_of_user("PurgeQueue")), Verdict::kDeny);
}

TEST(Policy, NotPrincipalSparesWhoIsNamedWithTheAccount) {
  const auto spares = [](std::string_view who, const PolicyRequest& request) {
    return verdict(
               policy_with(fmt::format(
                   R"({{"Effect":"Deny","NotPrincipal":{{"AWS":{}}},"Action":"*","Resource":"*"}})",
                   who)),
               request) == Verdict::kNoMatch;
  };
  const PolicyRequest user = request_of_user();
  PolicyRequest root = user, other = user;
  root.arn = "arn:aws:iam::111111111111:root";
  other.account = "222222222222";
  EXPECT_TRUE(spares(R"("111111111111")", root));
  EXPECT_FALSE(spares(R"("111111111111")", user));
  EXPECT_FALSE(spares(R"("111111111111")", other));
  EXPECT_TRUE(spares(R"(["111111111111","arn:aws:iam::111111111111:user/ann"])", user));
  EXPECT_FALSE(spares(R"(["111111111111","arn:aws:iam::111111111111:user/bob"])", user));
  EXPECT_FALSE(spares(R"("arn:aws:iam::111111111111:user/ann")", user))
      << "its account is not named, so that it is denied with it";
}

TEST(Policy, PartitionsDoNotMakeTwoUsersOfOne) {
  EXPECT_TRUE(
      principal_matches(R"({"AWS":"arn:aws-cn:iam::111111111111:user/ann"})", request_of_user()));
}

// Each of these denies nobody, or allows somebody, where its author believes otherwise.
TEST(Policy, WhatLooksStricterThanItIsIsRefused) {
  const auto refused = [](std::string_view effect, std::string_view who, std::string_view rest) {
    const std::string text =
        policy_with(fmt::format(R"({{"Effect":"{}",{},{}}})", effect, who, rest));
    const auto policy = parse_policy(text);
    if (!policy) {
      EXPECT_EQ(policy.error().code, ErrorCode::kInvalidAttributeValue);
    }
    return !policy;
  };
  constexpr std::string_view kAll = R"("Action":"sqs:*","Resource":"*")";
  constexpr std::string_view kEverybody = R"("Principal":"*")";
  for (const char* who : {R"("NotPrincipal":{})", R"("Principal":{})", R"("NotPrincipal":"*")",
                          R"("NotPrincipal":{"AWS":"*"})", R"("NotPrincipal":{"AWS":["1","*"]})",
                          R"("Principal":{"AWS":"arn:aws:iam::111111111111:user/*"})",
                          R"("Principal":{"AWS":"arn:aws:iam::111111111111:user/${aws:username}"})",
                          R"("Principal":{"AWS":"arn:aws:iam::111111111111:group/men"})",
                          R"("Principal":{"AWS":"arn:aws:iam::111111111111:user/"})",
                          R"("Principal":{"AWS":"arn:aws:iam::*:root"})",
                          R"("Principal":{"AWS":"arn:aws:sqs:us-east-1:111111111111:user/ann"})",
                          R"("Principal":{"CanonicalUser":"79a59df900b949e55d96a1e698fbaced"})"}) {
    EXPECT_TRUE(refused("Deny", who, kAll)) << who;
    EXPECT_TRUE(refused("Allow", who, kAll)) << who;
  }
  EXPECT_TRUE(refused("Allow", R"("NotPrincipal":{"AWS":"111111111111"})", kAll));
  for (const char* rest :
       {R"("Action":"sqs:*","Resource":"arn:aws:sqs:*:${aws:PrincipalAccount}:q")",
        R"("Action":"sqs:*","Resource":"arn:aws:sqs:*:*:${aws:username")",
        R"("Action":"sqs:*","Resource":"arn:aws:sqs:*:*:${aws:username, nobody}")",
        R"("Action":"sqs:*","Resource":"*${aws:username}")",
        R"("Action":"sqs:${x}","Resource":"*")",
        R"("Action":"sqs:*","Resource":"*","Condition":{"StringEquals":{"aws:username":"${"}})",
        R"("Action":"sqs:*","Resource":"*","Condition":{"StringLike":{"aws:username":"*${}"}})",
        R"("Action":"sqs:*","Resource":"*","Condition":{"Bool":
           {"aws:SecureTransport":"${aws:username}"}})",
        R"("Action":"sqs:*","Resource":"*","Condition":{"IpAddress":
           {"aws:SourceIp":"${aws:SourceIp}"}})",
        R"("Action":"sqs:*","Resource":"*","Condition":{"StringEquals":
           {"aws:username":"ann","aws:UserName":"bob"}})"})
    EXPECT_TRUE(refused("Deny", kEverybody, rest)) << rest;
  EXPECT_FALSE(refused("Deny", kEverybody, kAll));
}

TEST(Policy, InTheEarlierVersionAVariableIsMereText) {
  constexpr std::string_view kStatement = R"({"Statement":{"Effect":"Allow","Principal":"*",
      "Action":"*","Resource":"*","Condition":{"StringEquals":{"aws:UserAgent":"${x}"}}}})";
  PolicyRequest request = request_of_user();
  request.context = {{"aws:useragent", {"${x}"}}};
  EXPECT_EQ(verdict(kStatement, request), Verdict::kAllow);
}

TEST(Policy, VariablesStandInResources) {
  const auto decides = [](std::string_view effect, std::string_view element,
                          PolicyContext context) {
    PolicyRequest request = request_of_user();
    request.context = std::move(context);
    return verdict(policy_with(fmt::format(R"({{"Effect":"{}","Principal":"*","Action":"*",{}}})",
                                           effect, element)),
                   request);
  };
  constexpr std::string_view kOwn = R"("Resource":"arn:aws:sqs:*:*:${aws:username}")";
  constexpr std::string_view kOthers = R"("NotResource":"arn:aws:sqs:*:*:${aws:username}")";
  const PolicyContext orders{{"aws:username", {"orders"}}}, ann{{"aws:username", {"ann"}}};
  const PolicyContext star{{"aws:username", {"*"}}};
  EXPECT_EQ(decides("Allow", kOwn, orders), Verdict::kAllow);
  EXPECT_EQ(decides("Deny", kOwn, orders), Verdict::kDeny);
  for (const PolicyContext& other : {ann, star, PolicyContext()}) {
    EXPECT_EQ(decides("Allow", kOwn, other), Verdict::kNoMatch);
    EXPECT_EQ(decides("Deny", kOwn, other), Verdict::kNoMatch);
    EXPECT_EQ(decides("Deny", kOthers, other), Verdict::kDeny);
  }
  EXPECT_EQ(decides("Deny", kOthers, orders), Verdict::kNoMatch);
  EXPECT_EQ(decides("Allow", R"("Resource":"arn:aws:sqs:*:*:${aws:username, 'orders'}")", {}),
            Verdict::kAllow);
}

// The caller chooses its headers and tags, and must not become a queue by them.
TEST(Policy, AResourceThatIsNoArnDoesNotBecomeOneByAVariable) {
  PolicyRequest request = request_of_user();
  request.context = {{"aws:useragent", {std::string(kQueue)}}};
  EXPECT_EQ(verdict(policy_with(R"({"Effect":"Allow","Principal":"*","Action":"*",
                                    "Resource":"${aws:UserAgent}"})"),
                    request),
            Verdict::kNoMatch);
}

TEST(Policy, VariablesStandInConditionsOnTextsAndArns) {
  const PolicyContext context{{"aws:username", {"ann"}},
                              {"aws:resourcetag/owner", {"Ann"}},
                              {"aws:useragent", {"a*n"}},
                              {"aws:principalarn", {std::string(kUser)}}};
  for (const char* condition :
       {R"({"StringEquals":{"aws:username":"${aws:username}"}})",
        R"({"StringEquals":{"aws:username":["bob","${none}","${none, 'ann'}"]}})",
        R"({"StringEqualsIgnoreCase":{"aws:ResourceTag/owner":"${aws:username}"}})",
        R"({"StringNotEquals":{"aws:ResourceTag/owner":"${aws:username}"}})",
        R"({"StringLike":{"aws:PrincipalArn":"*/${aws:username}"}})",
        R"({"StringNotLike":{"aws:username":"${aws:UserAgent}"}})",
        R"({"ArnEquals":{"aws:PrincipalArn":"arn:aws:iam::*:user/${aws:username}"}})",
        R"({"ArnLike":{"aws:PrincipalArn":"${aws:PrincipalArn}"}})",
        R"({"ArnNotLike":{"aws:PrincipalArn":"arn:aws:iam::*:user/${aws:UserAgent}"}})"})
    EXPECT_TRUE(condition_holds(condition, context)) << condition;
  for (const char* condition :
       {R"({"StringEquals":{"aws:username":"${aws:ResourceTag/owner}"}})",
        R"({"StringLike":{"aws:username":"${aws:UserAgent}"}})",
        R"({"StringNotEquals":{"aws:username":["bob","${aws:username}"]}})",
        R"({"ArnLike":{"aws:PrincipalArn":"arn:aws:iam::*:user/${aws:ResourceTag/owner}"}})"})
    EXPECT_FALSE(condition_holds(condition, context)) << condition;
}

// As AWS documents it: nothing equals it, and so a negated operator holds.
TEST(Policy, AVariableWithoutAValueEqualsNothing) {
  const PolicyContext context{{"aws:username", {"ann"}}, {"aws:tagkeys", {"a", "b"}}};
  for (const char* op :
       {"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnLike", "StringEqualsIfExists",
        "ForAnyValue:StringLike", "ForAllValues:StringLike"}) {
    for (const char* value : {"${aws:PrincipalTag/x}", "*${aws:TagKeys}*", "${unheard:of}"})
      EXPECT_FALSE(
          condition_holds(fmt::format(R"({{"{}":{{"aws:username":"{}"}}}})", op, value), context))
          << op << value;
  }
  for (const char* op :
       {"StringNotEquals", "StringNotEqualsIgnoreCase", "StringNotLike", "ArnNotLike",
        "StringNotEqualsIfExists", "ForAnyValue:StringNotLike", "ForAllValues:StringNotLike"})
    EXPECT_TRUE(condition_holds(
        fmt::format(R"({{"{}":{{"aws:username":"${{aws:PrincipalTag/x}}"}}}})", op), context))
        << op;
}

struct OperatorOnNothing {
  const char* name;
  const char* value;
  bool holds;  // On AWS, of a key that the request does not have.
};

constexpr OperatorOnNothing kOperatorsOnNothing[] = {
    {"StringEquals", "x", false},
    {"StringNotEquals", "x", true},
    {"StringEqualsIgnoreCase", "x", false},
    {"StringNotEqualsIgnoreCase", "x", true},
    {"StringLike", "*", false},
    {"StringNotLike", "*", true},
    {"StringEqualsIfExists", "x", true},
    {"StringNotEqualsIfExists", "x", true},
    {"ArnEquals", "*", false},
    {"ArnNotEquals", "*", true},
    {"ArnLike", "*", false},
    {"ArnNotLike", "*", true},
    {"ArnLikeIfExists", "*", true},
    {"BinaryEquals", "eA==", false},
    {"BinaryEqualsIfExists", "eA==", true},
    {"Bool", "false", false},
    {"BoolIfExists", "true", true},
    {"IpAddress", "0.0.0.0/0", false},
    {"NotIpAddress", "0.0.0.0/0", true},
    {"NotIpAddressIfExists", "0.0.0.0/0", true},
    {"NumericEquals", "0", false},
    {"NumericNotEquals", "0", true},
    {"NumericLessThan", "9e9", false},
    {"NumericGreaterThanEqualsIfExists", "9e9", true},
    {"DateLessThan", "2099-01-01", false},
    {"DateNotEquals", "2099-01-01", true},
    {"Null", "true", true},
    {"Null", "false", false},
    {"ForAllValues:StringEquals", "x", true},
    {"ForAllValues:StringNotEquals", "x", true},
    {"ForAnyValue:StringEquals", "x", false},
    {"ForAnyValue:StringNotEquals", "x", false},
    {"ForAnyValue:StringEqualsIfExists", "x", true},
};

Verdict verdict_on(std::string_view effect, std::string_view key, const OperatorOnNothing& op,
                   bool may_mend = false) {
  PolicyRequest request = request_of_user();
  request.may_mend = may_mend;
  return verdict(policy_with(fmt::format(R"({{"Effect":"{}","Principal":"*","Action":"sqs:*",)"
                                         R"("Resource":"*","Condition":{{"{}":{{"{}":"{}"}}}}}})",
                                         effect, op.name, key, op.value)),
                 request);
}

TEST(Policy, AKeyThatTheRequestDoesNotHaveIsDecidedByTheOperator) {
  for (const char* key : {"aws:SourceVpc", "aws:PrincipalTag/x", "lambda:SourceFunctionArn",
                          "s3:prefix", "saml:aud", "speed"}) {
    for (const OperatorOnNothing& op : kOperatorsOnNothing) {
      EXPECT_EQ(verdict_on("Allow", key, op), op.holds ? Verdict::kAllow : Verdict::kNoMatch)
          << key << op.name;
      EXPECT_EQ(verdict_on("Deny", key, op), op.holds ? Verdict::kDeny : Verdict::kNoMatch)
          << key << op.name;
    }
  }
}

// It may be misspelt, or newer than this release: nobody knows what AWS would find.
TEST(Policy, AKeyThatIsNotKnownLetsNobodyIn) {
  for (const char* key : {"aws:SourcIp", "aws:", "aws:PrincipalTag/", "sqs:Speed"}) {
    for (const OperatorOnNothing& op : kOperatorsOnNothing) {
      EXPECT_EQ(verdict_on("Allow", key, op), Verdict::kNoMatch) << key << op.name;
      EXPECT_EQ(verdict_on("Deny", key, op), Verdict::kDeny) << key << op.name;
      EXPECT_EQ(verdict_on("Allow", key, op, true), Verdict::kNoMatch) << key << op.name;
      EXPECT_EQ(verdict_on("Deny", key, op, true), Verdict::kNoMatch) << key << op.name;
    }
  }
}

// As a key that is not known does: what it would become on AWS nobody can say.
TEST(Policy, AVariableOfAKeyThatIsNotKnownLetsNobodyIn) {
  const auto decides = [](std::string_view effect, std::string_view rest, bool may_mend = false) {
    PolicyRequest request = request_of_user();
    request.context = {{"aws:username", {"ann"}}};
    request.may_mend = may_mend;
    return verdict(policy_with(fmt::format(R"({{"Effect":"{}","Principal":"*","Action":"*",{}}})",
                                           effect, rest)),
                   request);
  };
  for (const char* rest :
       {R"("Resource":"arn:aws:sqs:*:*:${aws:usrname}")",
        R"("Resource":["*","arn:aws:sqs:*:*:${aws:usrname, 'orders'}"])",
        R"("NotResource":"arn:aws:sqs:*:*:${sqs:Speed}")",
        R"("Resource":"*","Condition":{"StringEquals":{"aws:username":"${aws:usrname}"}})",
        R"("Resource":"*","Condition":{"StringNotEquals":{"aws:username":"${aws:usrname}"}})",
        R"("Resource":"*","Condition":{"StringLike":{"aws:username":["ann","${aws:x, 'ann'}"]}})",
        R"("Resource":"*","Condition":{"ArnNotLikeIfExists":{"aws:SourceArn":"${aws:x}"}})"}) {
    EXPECT_EQ(decides("Allow", rest), Verdict::kNoMatch) << rest;
    EXPECT_EQ(decides("Deny", rest), Verdict::kDeny) << rest;
    EXPECT_EQ(decides("Deny", rest, true), Verdict::kNoMatch) << rest;
  }
}

TEST(Policy, AValueThatIsNotKnownLetsNobodyIn) {
  const auto decides = [](std::string_view effect, std::string_view rest, bool may_mend = false) {
    PolicyRequest request = request_of_user();
    request.context = {{"aws:username", {"ann"}}, {"aws:tokenage", {"5"}}};
    request.unknown = {"aws:tokenage"};
    request.may_mend = may_mend;
    return verdict(policy_with(fmt::format(R"({{"Effect":"{}","Principal":"*","Action":"*",{}}})",
                                           effect, rest)),
                   request);
  };
  for (const char* rest :
       {R"("Resource":"*","Condition":{"NumericLessThan":{"aws:TokenAge":"9"}})",
        R"("Resource":"*","Condition":{"NumericGreaterThanIfExists":{"aws:TokenAge":"9"}})",
        R"("Resource":"*","Condition":{"StringNotEquals":{"aws:username":"${aws:TokenAge}"}})",
        R"("Resource":"*","Condition":{"StringEquals":{"aws:username":"${aws:TokenAge, 'ann'}"}})",
        R"("NotResource":"arn:aws:sqs:*:*:${aws:TokenAge}")"}) {
    EXPECT_EQ(decides("Allow", rest), Verdict::kNoMatch) << rest;
    EXPECT_EQ(decides("Allow", rest, true), Verdict::kNoMatch) << rest;
    EXPECT_EQ(decides("Deny", rest), Verdict::kDeny) << rest;
    EXPECT_EQ(decides("Deny", rest, true), Verdict::kNoMatch) << "it could not be mended: " << rest;
  }
  constexpr std::string_view kIsThere =
      R"("Resource":"*","Condition":{"Null":{"aws:TokenAge":"false"}})";
  constexpr std::string_view kIsNot =
      R"("Resource":"*","Condition":{"Null":{"aws:TokenAge":"true"}})";
  EXPECT_EQ(decides("Allow", kIsThere), Verdict::kAllow);
  EXPECT_EQ(decides("Deny", kIsNot), Verdict::kNoMatch);
}

// The caller chooses its headers, and the owner of the queue what they are compared with.
TEST(Policy, WhatWouldTakeTooLongLetsNobodyIn) {
  std::string values = R"("?*b?*c")";
  while (values.size() < 7'000) values += R"(,"?*b?*c")";
  const auto decides = [&](std::string_view effect, std::string_view op, std::size_t size) {
    PolicyRequest request = request_of_user();
    request.context = {{"aws:useragent", {std::string(size, 'a')}}};
    return verdict(
        policy_with(fmt::format(R"({{"Effect":"{}","Principal":"*","Action":"*","Resource":"*",)"
                                R"("Condition":{{"{}":{{"aws:UserAgent":[{}]}}}}}})",
                                effect, op, values)),
        request);
  };
  EXPECT_EQ(decides("Allow", "StringNotLike", 1'000), Verdict::kAllow);
  EXPECT_EQ(decides("Deny", "StringLike", 1'000), Verdict::kNoMatch);
  EXPECT_EQ(decides("Allow", "StringNotLike", 16'000), Verdict::kNoMatch);
  EXPECT_EQ(decides("Deny", "StringLike", 16'000), Verdict::kDeny);
}

TEST(Policy, AKeyThatIsNotKnownCannotMakeAnotherConditionHold) {
  constexpr std::string_view kDeny = R"({"Effect":"Deny","Principal":"*","Action":"*",
      "Resource":"*","Condition":{"StringEquals":{"aws:Sped":"x","aws:username":"ann"}}})";
  PolicyRequest request = request_of_user();
  request.context = {{"aws:username", {"ann"}}};
  EXPECT_EQ(verdict(policy_with(kDeny), request), Verdict::kDeny);
  request.context = {{"aws:username", {"bob"}}};
  EXPECT_EQ(verdict(policy_with(kDeny), request), Verdict::kNoMatch);
}

TEST(Policy, AMemberThatIsThereTwiceIsRefused) {
  for (const char* text :
       {R"({"Statement":{"Effect":"Deny","Effect":"Allow","Principal":"*","Action":"*",)"
        R"("Resource":"*"}})",
        R"({"Statement":{"Effect":"Deny","Eff\u0065ct":"Allow","Principal":"*","Action":"*",)"
        R"("Resource":"*"}})",
        R"({"Statement":[],"Statement":{"Effect":"Allow","Principal":"*","Action":"*",)"
        R"("Resource":"*"}})",
        R"({"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*",)"
        R"("Condition":{"Bool":{"aws:SecureTransport":"true"},"Bool":{}}}]})"}) {
    const auto policy = parse_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().message,
              "Invalid value for the parameter Policy. Reason: An object in it has the same member "
              "twice.");
  }
}

TEST(Policy, StringConditionsCompareWithAnyOfTheirValues) {
  const PolicyContext context{{"aws:useragent", {"Boto3/1.2"}}};
  EXPECT_TRUE(condition_holds(R"({"StringEquals":{"aws:UserAgent":["x","Boto3/1.2"]}})", context));
  EXPECT_FALSE(condition_holds(R"({"StringEquals":{"aws:UserAgent":"boto3/1.2"}})", context));
  EXPECT_TRUE(
      condition_holds(R"({"StringEqualsIgnoreCase":{"aws:UserAgent":"boto3/1.2"}})", context));
  EXPECT_TRUE(condition_holds(R"({"StringLike":{"aws:UserAgent":"Boto?/*"}})", context));
  EXPECT_FALSE(
      condition_holds(R"({"StringNotEquals":{"aws:UserAgent":["x","Boto3/1.2"]}})", context));
  EXPECT_TRUE(condition_holds(R"({"StringNotLike":{"aws:UserAgent":"curl*"}})", context));
  EXPECT_FALSE(condition_holds(
      R"({"StringLike":{"aws:UserAgent":"Boto*"},"StringEquals":{"aws:SourceAccount":"1"}})",
      context));
}

TEST(Policy, ArnConditionsKeepWildcardsBetweenColons) {
  const PolicyContext context{{"aws:sourcearn", {"arn:aws:sns:us-east-1:000000000000:topic"}}};
  EXPECT_TRUE(
      condition_holds(R"({"ArnEquals":{"aws:SourceArn":"arn:aws:sns:*:*:topic"}})", context));
  EXPECT_TRUE(condition_holds(R"({"ArnLike":{"aws:SourceArn":"arn:*:sns:us-*:000000000000:t*"}})",
                              context));
  EXPECT_FALSE(condition_holds(R"({"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:topic"}})", context));
  EXPECT_FALSE(
      condition_holds(R"({"ArnNotEquals":{"aws:SourceArn":"arn:aws:sns:*:*:topic"}})", context));
}

TEST(Policy, AddressesMatchRangesOfTheirOwnKind) {
  const PolicyContext v4{{"aws:sourceip", {"10.1.2.3"}}};
  const PolicyContext v6{{"aws:sourceip", {"2001:db8::1"}}};
  EXPECT_TRUE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}})", v4));
  EXPECT_TRUE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"10.1.2.3"}})", v4));
  EXPECT_FALSE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"10.1.2.4/31"}})", v4));
  EXPECT_FALSE(condition_holds(R"({"NotIpAddress":{"aws:SourceIp":["10.0.0.0/8","::/0"]}})", v4));
  EXPECT_TRUE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"2001:db8::/32"}})", v6));
  EXPECT_FALSE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}})", v6));
  const PolicyContext mapped{{"aws:sourceip", {"::ffff:10.1.2.3"}}};
  EXPECT_TRUE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"10.0.0.0/8"}})", mapped));
  EXPECT_TRUE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"::ffff:10.0.0.0/104"}})", v4));
  EXPECT_FALSE(condition_holds(R"({"IpAddress":{"aws:SourceIp":"::ffff:10.1.2.4/127"}})", v4));
}

TEST(Policy, NumbersDatesAndBooleansCompareAsWhatTheyAre) {
  const PolicyContext context{{"aws:currenttime", {"2026-08-01T12:00:00Z"}},
                              {"aws:epochtime", {"1785585600"}},
                              {"aws:securetransport", {"false"}},
                              {"aws:multifactorauthage", {"90"}}};
  EXPECT_TRUE(condition_holds(R"({"NumericLessThan":{"aws:MultiFactorAuthAge":"100"}})", context));
  EXPECT_TRUE(
      condition_holds(R"({"NumericGreaterThanEquals":{"aws:MultiFactorAuthAge":90}})", context));
  EXPECT_FALSE(
      condition_holds(R"({"NumericNotEquals":{"aws:MultiFactorAuthAge":"90.0"}})", context));
  EXPECT_TRUE(condition_holds(R"({"DateGreaterThan":{"aws:CurrentTime":"2026-08-01"}})", context));
  EXPECT_TRUE(condition_holds(
      R"({"DateLessThanEquals":{"aws:CurrentTime":"2026-08-01T12:00:00.000Z"}})", context));
  EXPECT_FALSE(
      condition_holds(R"({"DateLessThan":{"aws:CurrentTime":"2026-08-01T12:00:00Z"}})", context));
  EXPECT_TRUE(
      condition_holds(R"({"DateEquals":{"aws:EpochTime":"2026-08-01T12:00:00Z"}})", context));
  EXPECT_TRUE(condition_holds(R"({"Bool":{"aws:SecureTransport":"false"}})", context));
  EXPECT_FALSE(condition_holds(R"({"Bool":{"aws:SecureTransport":true}})", context));
  EXPECT_TRUE(condition_holds(R"({"BinaryEquals":{"aws:SecureTransport":"ZmFsc2U="}})", context));
  EXPECT_FALSE(condition_holds(R"({"BinaryEquals":{"aws:SecureTransport":"dHJ1ZQ=="}})", context));
}

TEST(Policy, DatesAreWrittenInAnyOfTheFormsOfTheW3c) {
  const auto is_date = [](std::string_view text) {
    return parse_policy(allow_with_condition(
                            fmt::format(R"({{"DateEquals":{{"aws:CurrentTime":"{}"}}}})", text)))
        .has_value();
  };
  const PolicyContext context{{"aws:currenttime", {"2026-08-01T12:00:00Z"}}};
  for (const char* same :
       {"2026-08-01T12:00Z", "2026-08-01T14:00+02:00", "2026-08-01T05:30:00-06:30",
        "2026-08-01T12:00:00.000Z", "2026-08-01T14:00:00.0+02:00", "1785585600"})
    EXPECT_TRUE(condition_holds(fmt::format(R"({{"DateEquals":{{"aws:CurrentTime":"{}"}}}})", same),
                                context))
        << same;
  EXPECT_TRUE(condition_holds(R"({"DateGreaterThan":{"aws:CurrentTime":"2026-08"}})", context));
  EXPECT_FALSE(condition_holds(R"({"DateLessThan":{"aws:CurrentTime":"2026-08"}})", context));
  for (const char* text :
       {"", "2026-", "2026-8", "2026-13", "2026-02-30", "2026-08T12:00Z", "2026-08-01T",
        "2026-08-01T12:00", "2026-08-01T12Z", "2026-08-01T24:00Z", "2026-08-01T12:60Z",
        "2026-08-01T12:00:61Z", "2026-08-01T12:00:00.Z", "2026-08-01T12:00:00.5e9Z",
        "2026-08-01T12:00+2", "2026-08-01T12:00+24:00", "2026-08-01T12:00+02:00Z", "${x}"})
    EXPECT_FALSE(is_date(text)) << text;
}

TEST(Policy, AnAbsentKeyFailsAllButNegatedAndIfExists) {
  EXPECT_FALSE(condition_holds(R"({"StringEquals":{"aws:SourceArn":"x"}})", {}));
  EXPECT_TRUE(condition_holds(R"({"StringNotEquals":{"aws:SourceArn":"x"}})", {}));
  EXPECT_TRUE(condition_holds(R"({"StringEqualsIfExists":{"aws:SourceArn":"x"}})", {}));
  EXPECT_TRUE(condition_holds(R"({"Null":{"aws:SourceArn":"true"}})", {}));
  EXPECT_FALSE(condition_holds(R"({"Null":{"aws:SourceArn":"false"}})", {}));
  EXPECT_TRUE(condition_holds(R"({"Null":{"aws:SourceArn":false}})", {{"aws:sourcearn", {"y"}}}));
  EXPECT_FALSE(condition_holds(R"({"StringEqualsIfExists":{"aws:SourceArn":"x"}})",
                               {{"aws:sourcearn", {"y"}}}));
}

TEST(Policy, QuantifiersLookAtEveryValueOfTheRequest) {
  const PolicyContext tags{{"aws:tagkeys", {"team", "cost"}}};
  EXPECT_TRUE(condition_holds(R"({"ForAnyValue:StringEquals":{"aws:TagKeys":"team"}})", tags));
  EXPECT_FALSE(condition_holds(R"({"ForAllValues:StringEquals":{"aws:TagKeys":"team"}})", tags));
  EXPECT_TRUE(condition_holds(
      R"({"ForAllValues:StringEquals":{"aws:TagKeys":["team","cost","x"]}})", tags));
  EXPECT_TRUE(condition_holds(R"({"ForAllValues:StringEquals":{"aws:TagKeys":"team"}})", {}));
  EXPECT_FALSE(condition_holds(R"({"ForAnyValue:StringEquals":{"aws:TagKeys":"team"}})", {}));
  EXPECT_FALSE(condition_holds(R"({"ForAnyValue:StringNotEquals":{"aws:TagKeys":"team"}})", {}));
}

TEST(Policy, WhatIsNotAPolicyIsRefused) {
  for (const char* text :
       {"", "[]", "{", R"({"Statement":[]})", R"({"Version":"2012-10-17"})",
        R"({"Version":"2020-01-01","Statement":[]})",
        R"({"Statement":{"Effect":"Allow","Principal":"*","Action":"sqs:*"}})",
        R"({"Statement":{"Effect":"Maybe","Principal":"*","Action":"sqs:*","Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Principal":"me","Action":"sqs:*","Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Principal":{"AWS":"me"},"Action":"*","Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Principal":"*","Action":[],"Resource":"*"}})",
        R"({"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*","X":1}})",
        R"({"Statement":{"Effect":"Deny","Principal":"*","NotPrincipal":"*","Action":"*",)"
        R"("Resource":"*"}})",
        R"({"Statement":[1]})"}) {
    const auto policy = parse_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().code, ErrorCode::kInvalidAttributeValue) << text;
    EXPECT_TRUE(policy.error().message.starts_with("Invalid value for the parameter Policy."));
  }
  for (const char* condition :
       {"1", R"({"StringSame":{"k":"v"}})", R"({"StringEquals":"v"})",
        R"({"StringEquals":{"k":[]}})", R"({"StringEquals":{"k":{}}})",
        R"({"IpAddress":{"k":"10.0.0.0/33"}})", R"({"NumericEquals":{"k":"ten"}})",
        R"({"DateEquals":{"k":"2026-13-01"}})", R"({"Bool":{"k":"yes"}})",
        R"({"NullIfExists":{"k":"true"}})", R"({"BinaryEquals":{"k":"no base64"}})"})
    EXPECT_FALSE(parse_policy(allow_with_condition(condition))) << condition;
}

TEST(Policy, TooMuchOfAnythingIsOverTheLimit) {
  constexpr std::string_view kOne =
      R"({"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"})";
  const auto statements = [&](std::size_t count) {
    std::string list(kOne);
    for (std::size_t i = 1; i < count; ++i) list += fmt::format(",{}", kOne);
    return policy_with(fmt::format("[{}]", list));
  };
  EXPECT_TRUE(parse_policy(statements(20)));
  EXPECT_EQ(parse_policy(statements(21)).error(),
            (Error{ErrorCode::kOverLimit, "21 Statements were found, maximum allowed is 20."}));
  const std::string actions = policy_with(
      R"({"Effect":"Allow","Principal":"*","Resource":"*",
          "Action":["sqs:a","sqs:b","sqs:c","sqs:d","sqs:e","sqs:f","sqs:g","sqs:h"]})");
  EXPECT_EQ(parse_policy(actions).error(),
            (Error{ErrorCode::kOverLimit, "8 Actions were found, maximum allowed is 7."}));
  EXPECT_FALSE(parse_policy(std::string(limits::kPolicySizeMax + 1, ' ')));
}

TEST(Policy, BatchesNeedThePermissionOfTheirAction) {
  EXPECT_EQ(permission_of(Action::kSendMessageBatch), "SendMessage");
  EXPECT_EQ(permission_of(Action::kDeleteMessageBatch), "DeleteMessage");
  EXPECT_EQ(permission_of(Action::kChangeMessageVisibilityBatch), "ChangeMessageVisibility");
  EXPECT_EQ(permission_of(Action::kPurgeQueue), "PurgeQueue");
  EXPECT_TRUE(is_owner_only(Action::kDeleteQueue));
  EXPECT_FALSE(is_owner_only(Action::kPurgeQueue));
}

}  // namespace
}  // namespace stanchion::policy
