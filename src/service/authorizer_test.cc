#include "service/authorizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "policy/policy.h"

namespace stanchion::service {
namespace {

const QueueRef kOrders{"111111111111", "eu-west-1", "orders"};
constexpr Instant kNow = from_millis(1'700'000'000'000);

Caller caller_of(std::string account, std::string user, bool temporary = false) {
  auto ring = std::make_shared<KeyRing>();
  ring->add("AKIA",
            {.key = {.secret = "s",
                     .session_token = temporary ? std::optional<std::string>("t") : std::nullopt},
             .account = account,
             .user = user});
  Caller caller;
  caller.arn = user.empty() ? fmt::format("arn:aws:iam::{}:root", account)
                            : fmt::format("arn:aws:iam::{}:user/{}", account, user);
  caller.account = std::move(account);
  caller.user = std::move(user);
  caller.region = "eu-west-1";
  caller.source_ip = "192.0.2.1";
  caller.verified = true;
  caller.access_key_id = "AKIA";
  caller.keys = std::move(ring);
  return caller;
}

std::optional<Error> attempt(const Caller& caller, const Request& request,
                             const std::string& policy,
                             const StringMap& queue_tags = {{"team", "blue"}}) {
  const std::string arn = kOrders.arn();
  const broker::GuardedQueue queue{arn, policy, queue_tags};
  const StringMap tags = tags_of(request);
  const std::vector<std::string> tag_keys = tag_keys_of(request);
  return authorize_by_policy({caller, action_of(request), kOrders, tags, tag_keys}, &queue, kNow);
}

std::string deny(std::string_view condition) {
  return fmt::format(R"({{"Version":"2012-10-17","Statement":{{"Effect":"Deny","Principal":"*",)"
                     R"("Action":"sqs:*","Resource":"*","Condition":{}}}}})",
                     condition);
}

bool is_denied(const Caller& caller, std::string_view condition,
               const Request& request = PurgeQueue{kOrders}) {
  const std::string policy = deny(condition);
  EXPECT_TRUE(policy::parse_policy(policy)) << policy;
  return attempt(caller, request, policy).has_value();
}

TEST(Authorizer, ADenyHoldsOnEveryKeyThatAwsAlwaysFills) {
  const Caller root = caller_of("111111111111", ""), ann = caller_of("111111111111", "ann");
  for (const Caller* caller : {&root, &ann}) {
    for (const char* condition : {
             R"({"StringEquals":{"aws:RequestedRegion":"eu-west-1"}})",
             R"({"Bool":{"aws:PrincipalIsAWSService":"false"}})",
             R"({"Bool":{"aws:ViaAWSService":"false"}})",
             R"({"StringEquals":{"aws:ResourceAccount":"111111111111"}})",
             R"({"StringEquals":{"aws:PrincipalAccount":"111111111111"}})",
             R"({"Bool":{"aws:SecureTransport":"false"}})",
             R"({"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}})",
             R"({"StringEquals":{"aws:ResourceTag/Team":"blue"}})",
             R"({"DateLessThan":{"aws:CurrentTime":"2023-11-15T00:00:00Z"}})",
         })
      EXPECT_TRUE(is_denied(*caller, condition)) << condition;
    EXPECT_FALSE(is_denied(*caller, R"({"StringEquals":{"aws:RequestedRegion":"us-east-1"}})"));
  }
  EXPECT_TRUE(is_denied(root, R"({"StringEquals":{"aws:PrincipalType":"Account"}})"));
  EXPECT_TRUE(is_denied(ann, R"({"StringEquals":{"aws:PrincipalType":"User"}})"));
  EXPECT_TRUE(is_denied(ann, R"({"StringEquals":{"aws:username":"ann"}})"));
  EXPECT_TRUE(is_denied(root, R"({"Null":{"aws:username":"true"}})"));
  EXPECT_TRUE(is_denied(caller_of("111111111111", "staff/ann"),
                        R"({"StringEquals":{"aws:username":"ann"}})"));
}

TEST(Authorizer, WhoCallsDirectlyIsNoSource) {
  const Caller root = caller_of("111111111111", "");
  EXPECT_FALSE(is_denied(root, R"({"StringEquals":{"aws:SourceAccount":"111111111111"}})"));
  EXPECT_TRUE(is_denied(root, R"({"StringNotEquals":{"aws:SourceAccount":"111111111111"}})"));
  EXPECT_TRUE(is_denied(root, R"({"Null":{"aws:SourceArn":"true"}})"));
}

TEST(Authorizer, OnlyTemporaryKeysAreKnownToHaveNoSecondFactor) {
  constexpr std::string_view kWithout = R"({"Bool":{"aws:MultiFactorAuthPresent":"false"}})";
  EXPECT_TRUE(is_denied(caller_of("111111111111", "", true), kWithout));
  EXPECT_FALSE(is_denied(caller_of("111111111111", "", false), kWithout));
}

TEST(Authorizer, TagsOfTheRequestAreSeen) {
  const Caller root = caller_of("111111111111", "");
  const TagQueue tag{kOrders, {{"Team", "red"}, {"cost", "1"}}};
  EXPECT_TRUE(is_denied(root, R"({"StringEquals":{"aws:RequestTag/team":"red"}})", tag));
  EXPECT_TRUE(is_denied(root, R"({"ForAnyValue:StringEquals":{"aws:TagKeys":"cost"}})", tag));
  EXPECT_TRUE(is_denied(root, R"({"ForAnyValue:StringEquals":{"aws:TagKeys":"cost"}})",
                        UntagQueue{kOrders, {"cost"}}));
  EXPECT_FALSE(is_denied(root, R"({"ForAnyValue:StringEquals":{"aws:TagKeys":"cost"}})"));
}

// Nobody knows which of them AWS would look at.
TEST(Authorizer, ATagInTwoSpellingsLetsNobodyIn) {
  const Caller root = caller_of("111111111111", ""), other = caller_of("222222222222", "");
  const TagQueue both{kOrders, {{"Team", "red"}, {"team", "blue"}}};
  const TagQueue one{kOrders, {{"Team", "red"}, {"teams", "blue"}}};
  const auto allow = [](std::string policy) {
    return policy.replace(policy.find("Deny"), 4, "Allow");
  };
  for (const char* condition : {R"({"StringEquals":{"aws:RequestTag/team":"red"}})",
                                R"({"StringEquals":{"aws:RequestTag/TEAM":"blue"}})",
                                R"({"StringNotEquals":{"aws:RequestTag/Team":"green"}})"}) {
    EXPECT_TRUE(attempt(root, both, deny(condition))) << condition;
    EXPECT_TRUE(attempt(other, both, allow(deny(condition)))) << condition;
  }
  for (const char* condition : {R"({"StringEquals":{"aws:ResourceTag/team":"red"}})",
                                R"({"StringNotEquals":{"aws:ResourceTag/team":"red"}})"}) {
    EXPECT_TRUE(attempt(root, PurgeQueue{kOrders}, deny(condition), both.tags)) << condition;
    EXPECT_FALSE(attempt(root, SetQueueAttributes{kOrders, {}}, deny(condition), both.tags))
        << "nobody else could mend it: " << condition;
    EXPECT_TRUE(attempt(other, PurgeQueue{kOrders}, allow(deny(condition)), both.tags))
        << condition;
  }
  constexpr std::string_view kRed = R"({"StringEquals":{"aws:RequestTag/team":"red"}})";
  constexpr std::string_view kBlue = R"({"StringEquals":{"aws:RequestTag/team":"blue"}})";
  EXPECT_FALSE(attempt(root, one, deny(kBlue)));
  EXPECT_TRUE(attempt(root, one, deny(kRed)));
  EXPECT_FALSE(attempt(other, one, allow(deny(kRed))));
}

TEST(Authorizer, TagsThatAreTooLongAreSeenAsSuchAndNoLonger) {
  for (const std::string character : {"x", "é", "😀"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += character;
    const auto first = [&](std::size_t count) { return text.substr(0, count * character.size()); };
    EXPECT_EQ(tags_of(TagQueue{kOrders, {{text, text}}}), (StringMap{{first(129), first(257)}}));
    for (const Request& request :
         {Request(TagQueue{kOrders, {{text, ""}}}), Request(UntagQueue{kOrders, {text}})})
      EXPECT_EQ(tag_keys_of(request), std::vector{first(129)});
    const StringMap longest{{first(128), first(256)}};
    EXPECT_EQ(tags_of(TagQueue{kOrders, longest}), longest);
    EXPECT_EQ(tag_keys_of(UntagQueue{kOrders, {first(128)}}), std::vector{first(128)});
  }
}

TEST(Authorizer, TheIdOfACallerIsTheSenderIdOfItsMessages) {
  Caller ann = caller_of("111111111111", "ann");
  ann.sender_id = "AKIA";
  EXPECT_TRUE(is_denied(ann, R"({"StringEquals":{"aws:userid":"AKIA"}})"));
  EXPECT_FALSE(is_denied(ann, R"({"StringEquals":{"aws:userid":"ann"}})"));
}

TEST(Authorizer, OnlyTemporaryKeysWereIssuedAndNobodyKnowsWhen) {
  const Caller permanent = caller_of("111111111111", "ann");
  const Caller temporary = caller_of("111111111111", "ann", true);
  for (const char* condition : {R"({"Null":{"aws:TokenIssueTime":"false"}})",
                                R"({"DateLessThan":{"aws:TokenIssueTime":"2020-01-01"}})",
                                R"({"DateGreaterThan":{"aws:TokenIssueTime":"2020-01-01"}})",
                                R"({"NumericLessThan":{"aws:TokenAge":"86400"}})",
                                R"({"NumericGreaterThan":{"aws:TokenAge":"86400"}})"}) {
    EXPECT_TRUE(is_denied(temporary, condition)) << condition;
    EXPECT_FALSE(is_denied(permanent, condition)) << condition;
  }
  EXPECT_FALSE(is_denied(temporary, R"({"Null":{"aws:TokenIssueTime":"true"}})"));
  const Caller other = caller_of("222222222222", "", true);
  for (const char* condition : {R"({"DateLessThan":{"aws:TokenIssueTime":"2020-01-01"}})",
                                R"({"NumericGreaterThan":{"aws:TokenAge":"86400"}})"}) {
    std::string policy = deny(condition);
    policy.replace(policy.find("Deny"), 4, "Allow");
    EXPECT_TRUE(attempt(other, PurgeQueue{kOrders}, policy)) << condition;
  }
}

TEST(Authorizer, AVariableIsWhatTheRequestSays) {
  const Caller ann = caller_of("111111111111", "ann"), root = caller_of("111111111111", "");
  EXPECT_TRUE(is_denied(ann, R"({"StringLike":{"aws:PrincipalArn":"*:user/${aws:username}"}})"));
  EXPECT_FALSE(is_denied(root, R"({"StringLike":{"aws:PrincipalArn":"*${aws:username}"}})"));
}

TEST(Authorizer, TheOwnerMendsAPolicyThatDeniesByAKeyThatIsNotKnown) {
  const std::string policy = deny(R"({"StringEquals":{"aws:Sped":"x"}})");
  const Caller root = caller_of("111111111111", ""), ann = caller_of("111111111111", "ann");
  const SetQueueAttributes set{kOrders, {{"Policy", ""}}};
  EXPECT_TRUE(attempt(caller_of("111111111111", "", true), set, policy))
      << "a session may be one that was revoked";
  EXPECT_TRUE(attempt(root, PurgeQueue{kOrders}, policy));
  EXPECT_TRUE(attempt(ann, set, policy));
  EXPECT_FALSE(attempt(root, set, policy));
  EXPECT_FALSE(attempt(root, GetQueueAttributes{kOrders, {"Policy"}}, policy));
  EXPECT_TRUE(attempt(root, set, deny(R"({"Null":{"aws:SourceVpc":"true"}})")));
}

TEST(Authorizer, AnotherAccountDoesNotMend) {
  const std::string policy = R"({"Statement":[
      {"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"},
      {"Effect":"Deny","Principal":"*","Action":"*","Resource":"*",
       "Condition":{"Null":{"aws:Sped":"true"}}}]})";
  const Caller other = caller_of("222222222222", "");
  EXPECT_TRUE(attempt(other, GetQueueAttributes{kOrders, {"Policy"}}, policy));
}

// More texts than are remembered.
TEST(Authorizer, PoliciesThatAreNotRememberedDecideAllTheSame) {
  const Caller root = caller_of("111111111111", "");
  for (int i = 0; i < 600; ++i) {
    const std::string id = fmt::format("{:08}", i) + std::string(7'000, 'x');
    const std::string policy = fmt::format(
        R"({{"Id":"{}","Statement":{{"Effect":"Deny","Principal":"*","Action":"sqs:PurgeQueue",)"
        R"("Resource":"*"}}}})",
        id);
    ASSERT_TRUE(attempt(root, PurgeQueue{kOrders}, policy));
    ASSERT_FALSE(attempt(root, GetQueueUrl{kOrders}, policy));
  }
}

TEST(Authorizer, APolicyThatCannotBeReadLetsNobodyInButTheOwnerToMendIt) {
  const std::string policy = R"({"Statement":{"Effect":"Allow","NotPrincipal":{},"Action":"*",)"
                             R"("Resource":"*"}})";
  const Caller root = caller_of("111111111111", ""), ann = caller_of("111111111111", "ann");
  const Caller other = caller_of("222222222222", "");
  for (const Caller* caller : {&root, &ann, &other})
    EXPECT_TRUE(attempt(*caller, PurgeQueue{kOrders}, policy));
  const SetQueueAttributes set{kOrders, {{"Policy", ""}}};
  EXPECT_FALSE(attempt(root, set, policy));
  EXPECT_FALSE(attempt(root, GetQueueAttributes{kOrders, {"Policy"}}, policy));
  EXPECT_TRUE(attempt(ann, set, policy));
  EXPECT_TRUE(attempt(other, GetQueueAttributes{kOrders, {"Policy"}}, policy));
}

TEST(Authorizer, WhetherAQueueOfOthersExistsIsNotTold) {
  const Caller other = caller_of("222222222222", "");
  const Request requests[] = {SendMessage{kOrders, "", {}}, PurgeQueue{kOrders},
                              GetQueueUrl{kOrders}, GetQueueAttributes{kOrders, {"All"}}};
  const std::string arn = kOrders.arn(), none;
  const std::string unreadable = R"({"Statement":1})";
  const StringMap tags;
  for (const Request& request : requests) {
    const GuardedCall call{other, action_of(request), kOrders, tags, {}};
    const auto missing = authorize_by_policy(call, nullptr, kNow);
    ASSERT_TRUE(missing);
    for (const std::string& policy : {none, unreadable}) {
      const broker::GuardedQueue queue{arn, policy, tags};
      EXPECT_EQ(authorize_by_policy(call, &queue, kNow), missing) << missing->message;
    }
    EXPECT_EQ(missing->code, std::holds_alternative<GetQueueUrl>(request)
                                 ? ErrorCode::kQueueDoesNotExist
                                 : ErrorCode::kAccessDenied);
  }
}

// As for a queue that does not exist, also if it does.
TEST(Authorizer, TheTaskOfAnotherAccountsQueueIsNotFound) {
  const Caller other = caller_of("222222222222", "");
  const auto error = authorize_by_account(other, Action::kCancelMessageMoveTask, kOrders);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kResourceNotFound);
  EXPECT_EQ(error->message,
            "The resource that you specified for the SourceArn parameter doesn't exist.");
  const Caller owner = caller_of("111111111111", "");
  EXPECT_FALSE(authorize_by_account(owner, Action::kCancelMessageMoveTask, kOrders));
}

TEST(Authorizer, ANewPolicyThatHasNoEffectIsAcceptedWithAWarning) {
  const std::string policy = R"({"Statement":{"Effect":"Deny","Principal":"*","Action":"*",)"
                             R"("Resource":"placeholder"}})";
  for (const Request& request : {Request(SetQueueAttributes{kOrders, {{"Policy", policy}}}),
                                 Request(CreateQueue{kOrders, {{"Policy", policy}}, {}})}) {
    EXPECT_FALSE(check_new_policy(request));
    EXPECT_EQ(warnings_about_new_policy(request).size(), 1u);
  }
  EXPECT_TRUE(warnings_about_new_policy(SetQueueAttributes{kOrders, {{"Policy", ""}}}).empty());
  EXPECT_TRUE(warnings_about_new_policy(PurgeQueue{kOrders}).empty());
}

}  // namespace
}  // namespace stanchion::service
