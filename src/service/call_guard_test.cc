#include "service/call_guard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/authorizer.h"

namespace stanchion::service {
namespace {

const QueueRef kOrders{"111111111111", "eu-west-1", "orders"};

struct FixedClock final : os::Clock {
  Instant now() override { return from_millis(1'700'000'000'000); }
};

std::shared_ptr<KeyRing> ring_of(std::string secret = "s") {
  auto ring = std::make_shared<KeyRing>();
  ring->add(
      "ROOT",
      {.key = {.secret = secret, .session_token = {}}, .account = "111111111111", .user = {}});
  ring->add("ANN", {.key = {.secret = secret, .session_token = "t"},
                    .account = "111111111111",
                    .user = "staff/ann"});
  ring->add(
      "OTHER",
      {.key = {.secret = secret, .session_token = {}}, .account = "222222222222", .user = {}});
  return ring;
}

// A front node and the node that serves the queue, each with its own ring.
class CallGuardTest : public testing::Test {
 protected:
  CallGuardTest() {
    front.set_keys(ring_of());
    owner.set_keys(ring_of());
  }

  std::shared_ptr<const Caller> caller_of(const std::string& key) {
    auto caller = std::make_shared<Caller>();
    const KeyOwner& found = *front.keys()->find(key);
    caller->account = found.account;
    caller->user = found.user;
    caller->arn = fmt::format("arn:aws:iam::{}:{}", found.account,
                              found.user.empty() ? "root" : "user/" + found.user);
    caller->sender_id = "AIDA";
    caller->region = "eu-west-1";
    caller->verified = true;
    caller->access_key_id = key;
    caller->keys = front.keys();
    caller->source_ip = "192.0.2.1";
    caller->secure = true;
    caller->user_agent = "aws-cli";
    caller->referer = "https://example.com/";
    return caller;
  }

  static CallGuard::Call call_of(std::shared_ptr<const Caller> caller, const Request& request,
                                 std::optional<Error> refusal = std::nullopt) {
    return {.caller = std::move(caller),
            .action = action_of(request),
            .queue = kOrders,
            .tags = tags_of(request),
            .tag_keys = tag_keys_of(request),
            .refusal = std::move(refusal)};
  }

  std::string packed(const std::string& key, const Request& request) {
    return CallGuard(front, clock, call_of(caller_of(key), request)).pack();
  }

  FixedClock clock;
  Authenticator front{{}, 1, clock};
  Authenticator owner{{}, 1, clock};
};

std::string policy(std::string_view effect, std::string_view condition) {
  return fmt::format(R"({{"Version":"2012-10-17","Statement":{{"Effect":"{}","Principal":"*",)"
                     R"("Action":"sqs:*","Resource":"*","Condition":{}}}}})",
                     effect, condition);
}

TEST_F(CallGuardTest, AnotherNodeDecidesTheSame) {
  const std::vector<Request> requests{SendMessage{kOrders, "AIDA", {}}, PurgeQueue{kOrders},
                                      TagQueue{kOrders, {{"Team", "blue"}, {"Stage", "test"}}},
                                      UntagQueue{kOrders, {"Team"}}, GetQueueUrl{kOrders}};
  const std::string conditions[] = {
      R"({"StringEquals":{"aws:PrincipalAccount":"111111111111"}})",
      R"({"StringEquals":{"aws:PrincipalAccount":"222222222222"}})",
      R"({"StringEquals":{"aws:PrincipalArn":"arn:aws:iam::111111111111:user/staff/ann"}})",
      R"({"StringEquals":{"aws:username":"ann"}})",
      R"({"StringEquals":{"aws:PrincipalType":"User"}})",
      R"({"StringEquals":{"aws:RequestedRegion":"eu-west-1"}})",
      R"({"Bool":{"aws:SecureTransport":"true"}})",
      R"({"Bool":{"aws:MultiFactorAuthPresent":"false"}})",
      R"({"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}})",
      R"({"StringEquals":{"aws:UserAgent":"aws-cli"}})",
      R"({"StringEquals":{"aws:Referer":"https://example.com/"}})",
      R"({"StringEquals":{"aws:RequestTag/Team":"blue"}})",
      R"({"ForAnyValue:StringEquals":{"aws:TagKeys":["Team"]}})",
      R"({"DateLessThan":{"aws:CurrentTime":"2023-11-15T00:00:00Z"}})",
  };
  const std::string arn = kOrders.arn();
  const StringMap tags{{"team", "blue"}};
  int allowed = 0, refused = 0;
  for (const std::string key : {"ROOT", "ANN", "OTHER"})
    for (const Request& request : requests)
      for (const std::string_view effect : {"Allow", "Deny"})
        for (const std::string& condition : conditions)
          for (const bool prepared : {false, true}) {
            const auto refusal =
                prepared ? std::optional(Error{ErrorCode::kInvalidAttributeValue, "bad policy"})
                         : std::nullopt;
            CallGuard here(front, clock, call_of(caller_of(key), request, refusal));
            const broker::Guard there = CallGuard::unpack(owner, clock, here.pack());
            const std::string text = policy(effect, condition);
            const broker::GuardedQueue queue{arn, text, tags};
            const auto decided = here.check(&queue);
            EXPECT_EQ(there->check(&queue), decided) << key << ' ' << text;
            EXPECT_EQ(there->check(&queue), here.check(&queue)) << "again";
            EXPECT_EQ(there->check(nullptr), here.check(nullptr)) << key << ' ' << text;
            ++(decided ? refused : allowed);
          }
  EXPECT_GT(allowed, 50);
  EXPECT_GT(refused, 50);
}

TEST_F(CallGuardTest, ARefusalWithoutACallerIsPackedToo) {
  const Error error{ErrorCode::kInvalidAttributeValue, "bad policy"};
  CallGuard here(front, clock, call_of(nullptr, SetQueueAttributes{kOrders, {}}, error));
  const broker::Guard there = CallGuard::unpack(owner, clock, here.pack());
  const std::string arn = kOrders.arn(), no_policy;
  const StringMap no_tags;
  EXPECT_EQ(there->check(nullptr), std::nullopt);
  const broker::GuardedQueue queue{arn, no_policy, no_tags};
  EXPECT_EQ(there->check(&queue), error);
}

TEST_F(CallGuardTest, ANodeThatDoesNotKnowTheKeyRefuses) {
  const std::string bytes = packed("ANN", PurgeQueue{kOrders});
  const auto refused_by = [&](std::shared_ptr<const KeyRing> ring) {
    owner.set_keys(std::move(ring));
    const auto error = CallGuard::unpack(owner, clock, bytes)->check(nullptr);
    return error && error->code == ErrorCode::kServiceUnavailable &&
           error->message.contains("access key ANN");
  };
  EXPECT_FALSE(refused_by(ring_of("another secret"))) << "which is being rotated";
  EXPECT_TRUE(refused_by(std::make_shared<KeyRing>()));
  auto given_away = std::make_shared<KeyRing>();
  given_away->add("ANN", {.key = {.secret = "s", .session_token = {}},
                          .account = "222222222222",
                          .user = "staff/ann"});
  EXPECT_TRUE(refused_by(given_away));
}

TEST_F(CallGuardTest, AKeyThatIsRemovedWhileTheRequestWaitsIsRefused) {
  const broker::Guard there = CallGuard::unpack(owner, clock, packed("ROOT", PurgeQueue{kOrders}));
  EXPECT_EQ(there->check(nullptr), std::nullopt);
  owner.set_keys(std::make_shared<KeyRing>());
  ASSERT_TRUE(there->check(nullptr));
}

TEST_F(CallGuardTest, BytesThatAreNotWholeRefuse) {
  const std::string bytes = packed("ROOT", TagQueue{kOrders, {{"Team", "blue"}}});
  EXPECT_EQ(CallGuard::unpack(owner, clock, bytes)->check(nullptr), std::nullopt);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const broker::Guard guard = CallGuard::unpack(owner, clock, bytes.substr(0, size));
    ASSERT_TRUE(guard->check(nullptr)) << size;
    EXPECT_TRUE(CallGuard::unpack(owner, clock, guard->pack())->check(nullptr)) << size;
  }
  EXPECT_TRUE(CallGuard::unpack(owner, clock, bytes + "more")->check(nullptr));
}

}  // namespace
}  // namespace stanchion::service
