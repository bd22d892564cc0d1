#include "wire/sigv4.h"

#include <gtest/gtest.h>

#include "wire/sigv4_canonical.h"

namespace stanchion::wire {
namespace {

// The key of AWS's published examples.
constexpr std::string_view kExampleKey = "AKIDEXAMPLE";
constexpr std::string_view kExampleSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const Instant kExampleTime = *parse_timestamp("20150830T123600Z");
const SigningIdentity kExample{kExampleKey, kExampleSecret, "", "us-east-1", "service"};

std::string authorization(const OwnedHeaders& headers) {
  return headers.back().second;
}

// A call that owns its headers and can be signed and tampered with.
struct Call {
  explicit Call(std::string the_body = R"({"QueueUrl":"q"})") : body(std::move(the_body)) {
    headers = {{"Host", "localhost:9324"},
               {"Content-Type", "application/x-amz-json-1.0"},
               {"X-Amz-Target", "AmazonSQS.PurgeQueue"}};
  }

  HttpCall view() {
    views.assign(headers.begin(), headers.end());
    return {method, target, views, body};
  }
  void add(const OwnedHeaders& more) { headers.insert(headers.end(), more.begin(), more.end()); }
  void replace(std::string_view name, std::string_view value) {
    for (auto& [key, held] : headers)
      if (key == name) held = value;
  }

  std::string method = "POST";
  std::string target = "/";
  OwnedHeaders headers;
  std::string body;
  std::vector<HeaderView> views;
};

const Instant kNow = *parse_timestamp("20260801T120000Z");
const SigningIdentity kIdentity{"AKIAOURS", "secret", "", "eu-central-1", "sqs"};

Verifier make_verifier(AccessKey key = {"secret", std::nullopt, kNever}) {
  return Verifier(
      [key](std::string_view id) { return id == "AKIAOURS" ? std::optional(key) : std::nullopt; });
}

Error error_of(Call& call, Instant now = kNow, SignatureScope scope = {}) {
  Verifier verifier = make_verifier();
  const auto signer = verifier.verify(call.view(), scope, now);
  EXPECT_FALSE(signer.has_value());
  return signer ? Error{ErrorCode::kInternalFailure, ""} : signer.error();
}

Call signed_call(SigningIdentity identity = kIdentity, Instant at = kNow) {
  Call call;
  call.add(sign(call.view(), identity, at));
  return call;
}

TEST(SigV4, PublishedExamplesComeOutAsPublished) {
  const HeaderView host{"Host", "example.amazonaws.com"};
  const auto signature = [&](std::string_view method, std::string_view target,
                             std::vector<HeaderView> headers, std::string_view body) {
    const std::string line =
        authorization(sign({method, target, headers, body}, kExample, kExampleTime));
    return line.substr(line.rfind('=') + 1);
  };
  EXPECT_EQ(signature("GET", "/", {host}, ""),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(signature("GET", "/?Param2=value2&Param1=value1", {host}, ""),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  EXPECT_EQ(signature("POST", "/", {host}, ""),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  EXPECT_EQ(signature("POST", "/", {host, {"Content-Type", "application/x-www-form-urlencoded"}},
                      "Param1=value1"),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
  EXPECT_EQ(signature("GET", "/",
                      {host, {"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}, ""),
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
  EXPECT_EQ(signature("GET", "/example/..", {host}, ""), signature("GET", "/", {host}, ""));
}

TEST(SigV4, TheExampleOfTheGeneralReferenceVerifies) {
  const std::vector<HeaderView> headers{
      {"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
      {"Host", "iam.amazonaws.com"},
      {"X-Amz-Date", "20150830T123600Z"},
      {"Authorization",
       "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
       "SignedHeaders=content-type;host;x-amz-date, "
       "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"}};
  Verifier verifier([](std::string_view) {
    return AccessKey{std::string(kExampleSecret), std::nullopt, kNever};
  });
  const HttpCall call{"GET", "/?Action=ListUsers&Version=2010-05-08", headers, ""};
  const auto signer = verifier.verify(call, {"us-east-1", "iam"}, kExampleTime);
  ASSERT_TRUE(signer) << signer.error().message;
  EXPECT_EQ(signer->access_key_id, "AKIDEXAMPLE");
  EXPECT_EQ(signer->service, "iam");
}

TEST(SigV4, WhatWeSignVerifiesAndNamesTheSigner) {
  Call call = signed_call();
  Verifier verifier = make_verifier();
  for (int again = 0; again < 2; ++again) {
    const auto signer = verifier.verify(call.view(), {}, kNow);
    ASSERT_TRUE(signer) << signer.error().message;
    EXPECT_EQ(signer->access_key_id, "AKIAOURS");
    EXPECT_EQ(signer->region, "eu-central-1");
    EXPECT_EQ(signer->service, "sqs");
    EXPECT_EQ(signer->session_token, "");
  }
}

TEST(SigV4, AnyChangeOfWhatWasSignedIsNoticed) {
  Call body = signed_call();
  body.body += " ";
  Call target = signed_call();
  target.target = "/?x=1";
  Call action = signed_call();
  action.replace("X-Amz-Target", "AmazonSQS.DeleteQueue");
  Call method = signed_call();
  method.method = "GET";
  for (Call* call : {&body, &target, &action, &method}) {
    const Error error = error_of(*call);
    EXPECT_EQ(error.code, ErrorCode::kSignatureDoesNotMatch);
    EXPECT_TRUE(error.message.starts_with("The request signature we calculated does not match"));
  }
}

TEST(SigV4, ARotatedSecretIsNotServedFromTheCache) {
  std::string secret = "secret";
  Verifier verifier([&](std::string_view) { return AccessKey{secret, std::nullopt, kNever}; });
  Call call = signed_call();
  EXPECT_TRUE(verifier.verify(call.view(), {}, kNow));
  secret = "another";
  EXPECT_FALSE(verifier.verify(call.view(), {}, kNow));
}

TEST(SigV4, ACallWithoutSignatureIsMissingItsToken) {
  Call call;
  EXPECT_FALSE(is_signed(call.view()));
  EXPECT_EQ(error_of(call), (Error{ErrorCode::kMissingAuthenticationToken,
                                   "Request is missing Authentication Token"}));
}

TEST(SigV4, AnIncompleteHeaderIsToldWhatItLacks) {
  Call call;
  call.headers.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=a/b/c/d/e");
  EXPECT_EQ(error_of(call).code, ErrorCode::kIncompleteSignature);
  EXPECT_EQ(error_of(call).message,
            "Authorization header requires 'Signature' parameter. Authorization header requires "
            "'SignedHeaders' parameter. Authorization header requires existence of either a "
            "'X-Amz-Date' or a 'Date' header.");
  call.replace("Authorization", "Bearer token");
  EXPECT_EQ(error_of(call).message, "Unsupported AWS 'algorithm': 'Bearer'.");
  Call credential = signed_call();
  credential.replace("Authorization",
                     "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=1");
  EXPECT_EQ(error_of(credential).code, ErrorCode::kIncompleteSignature);
}

TEST(SigV4, AnUnknownKeyIsAnInvalidToken) {
  Call call = signed_call({"AKIAOTHER", "secret", "", "us-east-1", "sqs"});
  EXPECT_EQ(error_of(call), (Error{ErrorCode::kInvalidClientTokenId,
                                   "The security token included in the request is invalid."}));
}

TEST(SigV4, FifteenMinutesOfSkewAreToleratedAndNotASecondMore) {
  using std::chrono::seconds;
  Call call = signed_call();
  Verifier verifier = make_verifier();
  EXPECT_TRUE(verifier.verify(call.view(), {}, kNow + seconds(900)));
  EXPECT_TRUE(verifier.verify(call.view(), {}, kNow - seconds(900)));
  EXPECT_EQ(error_of(call, kNow + seconds(901)),
            (Error{ErrorCode::kSignatureDoesNotMatch,
                   "Signature expired: 20260801T120000Z is now earlier than 20260801T120001Z "
                   "(20260801T121501Z - 15 min.)"}));
  EXPECT_EQ(error_of(call, kNow - seconds(901)),
            (Error{ErrorCode::kSignatureDoesNotMatch,
                   "Signature not yet current: 20260801T120000Z is still later than "
                   "20260801T115959Z (20260801T114459Z + 15 min.)"}));
}

TEST(SigV4, TheScopeMustNameOurRegionAndService) {
  Call call = signed_call();
  EXPECT_EQ(error_of(call, kNow, {"us-east-1", "sqs"}).message,
            "Credential should be scoped to a valid region, not 'eu-central-1'.");
  EXPECT_EQ(error_of(call, kNow, {"", "sns"}).message,
            "Credential should be scoped to correct service: 'sns'.");
}

TEST(SigV4, SessionTokensMustMatchAndNotBeExpired) {
  SigningIdentity identity = kIdentity;
  identity.session_token = "token";
  Call call = signed_call(identity);
  Verifier with_token = make_verifier({"secret", "token", kNow + std::chrono::seconds(1)});
  const auto signer = with_token.verify(call.view(), {}, kNow);
  ASSERT_TRUE(signer) << signer.error().message;
  EXPECT_EQ(signer->session_token, "token");

  Verifier expired = make_verifier({"secret", "token", kNow});
  EXPECT_EQ(
      expired.verify(call.view(), {}, kNow).error(),
      (Error{ErrorCode::kExpiredToken, "The security token included in the request is expired"}));
  Verifier other = make_verifier({"secret", "other", kNever});
  EXPECT_EQ(other.verify(call.view(), {}, kNow).error().code, ErrorCode::kInvalidClientTokenId);
  EXPECT_EQ(error_of(call).code, ErrorCode::kInvalidClientTokenId);
}

TEST(SigV4, TheClaimedPayloadHashMustBeTrueUnlessUnsigned) {
  Call lying;
  lying.headers.emplace_back("x-amz-content-sha256", std::string(64, '0'));
  lying.add(sign(lying.view(), kIdentity, kNow));
  EXPECT_EQ(error_of(lying).code, ErrorCode::kSignatureDoesNotMatch);

  Call unsigned_payload;
  unsigned_payload.headers.emplace_back("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
  unsigned_payload.add(sign(unsigned_payload.view(), kIdentity, kNow));
  unsigned_payload.body = "anything";
  Verifier verifier = make_verifier();
  EXPECT_TRUE(
      verifier.verify(unsigned_payload.view(), {.region = {}, .unsigned_payload = true}, kNow));
  // Where somebody on the way could replace the payload, it must be signed.
  EXPECT_EQ(verifier.verify(unsigned_payload.view(), {}, kNow).error().code,
            ErrorCode::kInvalidSecurity);
}

TEST(SigV4, WhatAPresignedUrlLetsItsHolderDoIsAllInTheUrl) {
  Call call;
  call.method = "POST";
  call.headers = {{"Host", "localhost"}, {"X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"}};
  call.target = "/000000000000/q?Action=SendMessage&MessageBody=x";
  call.body = "";
  call.target = presign(call.view(), kIdentity, kNow, 60);
  Verifier verifier = make_verifier();
  const SignatureScope secure{.region = {}, .unsigned_payload = true};
  EXPECT_TRUE(verifier.verify(call.view(), secure, kNow));
  EXPECT_TRUE(verifier.verify(call.view(), {}, kNow));
  call.body = "Action=PurgeQueue";
  for (const SignatureScope& scope : {secure, SignatureScope{}})
    EXPECT_EQ(verifier.verify(call.view(), scope, kNow).error().code, ErrorCode::kInvalidSecurity);
  // A payload that was signed with the URL may not be replaced either.
  call.headers = {{"Host", "localhost"}};
  call.target = "/000000000000/q?Action=SendMessage";
  call.body = "MessageBody=x";
  call.target = presign(call.view(), kIdentity, kNow, 60);
  EXPECT_TRUE(verifier.verify(call.view(), {}, kNow));
  call.body = "Action=PurgeQueue";
  EXPECT_EQ(error_of(call).code, ErrorCode::kSignatureDoesNotMatch);
}

TEST(SigV4, TheActionOfAJsonCallMustBeSigned) {
  Call call;
  OwnedHeaders all = std::move(call.headers);
  call.headers = {all[0]};
  const OwnedHeaders added = sign(call.view(), kIdentity, kNow);
  call.headers = all;
  call.add(added);
  EXPECT_EQ(error_of(call).message,
            "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization.");
}

TEST(SigV4, ADateHeaderServesWhereThereIsNoAmzDate) {
  Call call;
  call.headers.emplace_back("Date", "Sat, 01 Aug 2026 12:00:00 GMT");
  const std::string scope = "20260801/us-east-1/sqs/aws4_request";
  const auto view = call.view();
  const std::string canonical = canonical_request(view, "", {"date", "host", "x-amz-target"},
                                                  to_hex(as_text(sha256(call.body))));
  const std::string signature =
      to_hex(as_text(hmac_sha256(as_text(derive_signing_key("secret", scope)),
                                 string_to_sign("20260801T120000Z", scope, canonical))));
  call.headers.emplace_back("Authorization",
                            "AWS4-HMAC-SHA256 Credential=AKIAOURS/" + scope +
                                ",SignedHeaders=date;host;x-amz-target,Signature=" + signature);
  Verifier verifier = make_verifier();
  const auto signer = verifier.verify(call.view(), {}, kNow);
  EXPECT_TRUE(signer) << signer.error().message;
}

TEST(SigV4, APresignedUrlIsGoodUntilItExpires) {
  using std::chrono::seconds;
  Call call("");
  call.method = "GET";
  call.headers.resize(1);
  call.target = "/000000000000/orders?Action=SendMessage&MessageBody=a+b%2Bc";
  call.target = presign(call.view(), kIdentity, kNow, 3600);
  EXPECT_TRUE(is_signed(call.view()));
  Verifier verifier = make_verifier();
  for (const auto age : {seconds(-900), seconds(0), seconds(3600)})
    EXPECT_TRUE(verifier.verify(call.view(), {}, kNow + age)) << age.count();
  EXPECT_EQ(error_of(call, kNow + seconds(3601)).message,
            "Signature expired: 20260801T120000Z is now earlier than 20260801T120001Z "
            "(20260801T130001Z - 3600 sec.)");
  EXPECT_EQ(error_of(call, kNow - seconds(901)).code, ErrorCode::kSignatureDoesNotMatch);
  Call tampered = call;
  tampered.target.replace(tampered.target.find("SendMessage"), 11, "DeleteQueue");
  EXPECT_EQ(error_of(tampered).code, ErrorCode::kSignatureDoesNotMatch);
}

TEST(SigV4, APresignedUrlCannotLiveLongerThanAWeek) {
  Call call("");
  call.headers.resize(1);
  call.target = presign(call.view(), kIdentity, kNow, 604'801);
  EXPECT_EQ(error_of(call).code, ErrorCode::kIncompleteSignature);
}

TEST(SigV4, DatesAreReadStrictly) {
  EXPECT_EQ(format_timestamp(from_millis(784'111'777'000)), "19941106T084937Z");
  EXPECT_EQ(parse_timestamp("19941106T084937Z"), from_millis(784'111'777'000));
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), from_millis(784'111'777'000));
  for (const char* bad : {"", "19941306T084937Z", "19940230T084937Z", "19941106T084937",
                          "19941106T24 937Z", "19941106T250000Z"})
    EXPECT_FALSE(parse_timestamp(bad)) << bad;
}

TEST(SigV4, PathsAreNormalisedAndEncodedOnceMore) {
  EXPECT_EQ(canonical_path("/"), "/");
  EXPECT_EQ(canonical_path(""), "/");
  EXPECT_EQ(canonical_path("/000000000000/name.fifo"), "/000000000000/name.fifo");
  EXPECT_EQ(canonical_path("//a//./b/../c/"), "/a/c/");
  EXPECT_EQ(canonical_path("/a%20b"), "/a%2520b");
  EXPECT_EQ(canonical_query("b=2&a&c=%7E%20x").value(), "a=&b=2&c=~%20x");
}

}  // namespace
}  // namespace stanchion::wire
