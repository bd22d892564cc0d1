#include "service/authenticator.h"

#include <gtest/gtest.h>

namespace stanchion::service {
namespace {

TEST(Regions, AHostNamesItsRegionInTheNewFormAndInTheOld) {
  EXPECT_EQ(region_of_host("sqs.eu-west-1.amazonaws.com"), "eu-west-1");
  EXPECT_EQ(region_of_host("sqs.eu-west-1.localhost:9324"), "eu-west-1");
  EXPECT_EQ(region_of_host("eu-west-1.queue.amazonaws.com"), "eu-west-1");
  EXPECT_EQ(region_of_host("eu-west-1.queue.localhost:9324"), "eu-west-1");
  for (const std::string_view none :
       {"", "localhost", "127.0.0.1:9324", "sqs", "sqs.", "sqs.eu-west-1", "sqs.example.com",
        "queue.amazonaws.com", "a.queue.example.com", "eu-west-1.queue", "sqs.EU-WEST-1.a.com",
        "sqs.eu/west-1.a.com"})
    EXPECT_EQ(region_of_host(none), "") << none;
}

std::string claimed_in_header(std::string_view authorization) {
  const wire::HeaderView headers[] = {{"Authorization", authorization}};
  return claimed_region({"POST", "/", headers, ""});
}

std::string claimed_in_query(std::string_view target) {
  return claimed_region({"GET", target, {}, ""});
}

TEST(Regions, AnUnverifiedSignatureStillTellsWhichRegionIsMeant) {
  EXPECT_EQ(claimed_in_header("AWS4-HMAC-SHA256 Credential=K/20260801/eu-west-1/sqs/aws4_request, "
                              "SignedHeaders=host, Signature=00"),
            "eu-west-1");
  EXPECT_EQ(claimed_in_query("/?Action=ListQueues&X-Amz-Credential=K%2F20260801%2Feu-west-1%2Fsqs"
                             "%2Faws4_request&X-Amz-Date=20260801T000000Z"),
            "eu-west-1");
  EXPECT_EQ(claimed_in_query("/?X-Amz-Credential=K/20260801/eu-west-1/sqs/aws4_request"),
            "eu-west-1");
  for (const std::string_view nonsense : {"", "Bearer x", "Credential=", "Credential=K/1",
                                          "Credential=K/1/ /sqs", "Credential=K/1/a%20b/sqs"})
    EXPECT_EQ(claimed_in_header(nonsense), "") << nonsense;
  for (const std::string_view nonsense :
       {"/", "/?", "/?X-Amz-Credential", "/?X-Amz-Credential=%", "/?X-Amz-Credential=K%2F1%2F%FF"})
    EXPECT_EQ(claimed_in_query(nonsense), "") << nonsense;
}

TEST(Anonymous, WhatThePageGuardRefusesIsRefused) {
  os::SystemClock clock;
  Authenticator authenticator({.pages = PageGuard({.hosts = {"queues.example.com"}})}, 1, clock);
  const net::HttpRequest http;
  const auto may = [&](std::string_view host) {
    const wire::HeaderView headers[] = {{"Host", host}};
    Caller caller;
    const auto error = authenticator.identify({"POST", "/", headers, ""}, http, 0, caller);
    if (error) {
      EXPECT_EQ(error->code, ErrorCode::kAccessDenied);
    }
    return !error;
  };
  EXPECT_TRUE(may("localhost:9324"));
  EXPECT_TRUE(may("queues.example.com"));
  EXPECT_FALSE(may("evil.example:9324"));
}

class RecheckTest : public testing::Test {
 protected:
  static KeyOwner owner() {
    return {.key = {.secret = "s3cret", .session_token = std::nullopt},
            .account = "111111111111",
            .user = "ann"};
  }

  // Accepts a call that is signed with the key, under a ring that has it.
  Caller admit(const KeyOwner& key) {
    set(key);
    const wire::HeaderView host[] = {{"Host", "localhost"}};
    const wire::HttpCall call{"GET", "/?Action=ListQueues", host, ""};
    const auto added = wire::sign(call, {"AKIA", key.key.secret, "", "us-east-1"}, clock.now());
    std::vector<wire::HeaderView> headers(std::begin(host), std::end(host));
    headers.insert(headers.end(), added.begin(), added.end());
    Caller caller;
    EXPECT_EQ(authenticator.identify({call.method, call.target, headers, ""}, {}, 0, caller),
              std::nullopt);
    return caller;
  }

  void set(std::optional<KeyOwner> key) {
    auto ring = std::make_shared<KeyRing>();
    ring->add("OTHER", owner());
    if (key) ring->add("AKIA", *std::move(key));
    authenticator.set_keys(std::move(ring));
  }

  struct NumberClock final : os::Clock {
    Instant now() override { return at; }
    Instant at = from_millis(1'700'000'000'000);
  } clock;
  Authenticator authenticator{{}, 1, clock};
};

TEST_F(RecheckTest, ACallerStaysWelcomeAsLongAsItsKeyIsTheSame) {
  const Caller caller = admit(owner());
  EXPECT_FALSE(authenticator.recheck(caller));
  set(owner());
  EXPECT_FALSE(authenticator.recheck(caller));
}

TEST_F(RecheckTest, AKeyThatIsGoneOrNotTheSameIsNotAKeyAnyMore) {
  const Caller caller = admit(owner());
  const auto is_unknown = [&](std::optional<KeyOwner> key) {
    set(std::move(key));
    const auto error = authenticator.recheck(caller);
    return error && error->code == ErrorCode::kInvalidClientTokenId;
  };
  KeyOwner secret = owner(), account = owner(), user = owner(), token = owner();
  secret.key.secret = "another";
  account.account = "222222222222";
  user.user = "bob";
  token.key.session_token = "t";
  EXPECT_TRUE(is_unknown(std::nullopt));
  for (const KeyOwner& changed : {secret, account, user, token}) EXPECT_TRUE(is_unknown(changed));
}

TEST_F(RecheckTest, AKeyMayExpireMeanwhile) {
  KeyOwner brief = owner();
  brief.key.expires = clock.at + std::chrono::seconds(5);
  const Caller caller = admit(brief);
  EXPECT_FALSE(authenticator.recheck(caller));
  clock.at += std::chrono::seconds(5);
  EXPECT_EQ(authenticator.recheck(caller)->code, ErrorCode::kExpiredToken);
}

using SignInTest = RecheckTest;

TEST_F(SignInTest, NeedsTheSecretOfAKeyWithoutASessionToken) {
  set(owner());
  EXPECT_TRUE(authenticator.sign_in("AKIA", "s3cret"));
  EXPECT_FALSE(authenticator.sign_in("AKIA", "s3cre"));
  EXPECT_FALSE(authenticator.sign_in("AKIB", "s3cret"));
  EXPECT_FALSE(authenticator.sign_in("", ""));
  KeyOwner temporary = owner();
  temporary.key.session_token = "t";
  set(temporary);
  EXPECT_FALSE(authenticator.sign_in("AKIA", "s3cret"));
}

TEST_F(SignInTest, WhyItFailedIsToldToTheLog) {
  KeyOwner token = owner(), late = owner();
  token.key.session_token = "t";
  late.key.expires = clock.at;
  set(owner());
  EXPECT_EQ(authenticator.describe_failure("AKIA"), "a wrong secret for the access key AKIA");
  EXPECT_EQ(authenticator.describe_failure("s3cret"), "an access key that does not exist");
  set(token);
  EXPECT_EQ(authenticator.describe_failure("AKIA"),
            "the access key AKIA, which has a session token");
  set(late);
  EXPECT_EQ(authenticator.describe_failure("AKIA"), "the access key AKIA, which has expired");
}

TEST_F(SignInTest, HoldsAsLongAsTheKeyIsTheSame) {
  set(owner());
  const auto who = authenticator.sign_in("AKIA", "s3cret");
  ASSERT_TRUE(who);
  EXPECT_EQ(who->account, "111111111111");
  EXPECT_EQ(who->fingerprint.find("s3cret"), std::string::npos);
  set(owner());
  EXPECT_TRUE(authenticator.is_still(*who));
  const auto caller = authenticator.caller_of(*who, {});
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->arn, "arn:aws:iam::111111111111:user/ann");
}

TEST_F(SignInTest, EndsWithTheSecretTheAccountAndTheUserOfItsKey) {
  set(owner());
  const auto who = authenticator.sign_in("AKIA", "s3cret");
  ASSERT_TRUE(who);
  KeyOwner secret = owner(), account = owner(), user = owner(), token = owner(), late = owner();
  secret.key.secret = "another";
  account.account = "222222222222";
  user.user = "bob";
  token.key.session_token = "t";
  late.key.expires = clock.at;
  for (const std::optional<KeyOwner>& changed :
       {std::optional<KeyOwner>(), std::optional(secret), std::optional(account),
        std::optional(user), std::optional(token), std::optional(late)}) {
    set(changed);
    EXPECT_FALSE(authenticator.is_still(*who));
    EXPECT_FALSE(authenticator.caller_of(*who, {}));
  }
}

}  // namespace
}  // namespace stanchion::service
