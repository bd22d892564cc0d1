#include "client/retry.h"

#include <gtest/gtest.h>

namespace stanchion::client {
namespace {

using std::chrono::milliseconds;

Error answered(int status, std::string body) {
  return error_of(net::ClientResponse{status, {{"x-amzn-requestid", "id"}}, std::move(body)});
}

TEST(ErrorOf, NamesWhatTheServerSays) {
  const Error error =
      answered(400, R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"})");
  EXPECT_EQ(error.code, "QueueDoesNotExist");
  EXPECT_EQ(error.message, "no");
  EXPECT_EQ(error.http_status, 400);
  EXPECT_EQ(error.request_id, "id");
  EXPECT_EQ(error.fault, Fault::kSender);
  EXPECT_FALSE(error.throttled || error.may_have_happened);
  EXPECT_EQ(error.to_string(), "QueueDoesNotExist (HTTP 400, request id): no");
  EXPECT_EQ(answered(403, R"({"__type":"AccessDenied:http://x#y","Message":"m"})").code,
            "AccessDenied");
}

TEST(ErrorOf, AnswersOfOthersAreShownInPart) {
  const Error error = answered(502, "<html>\n" + std::string(1'000, 'x'));
  EXPECT_EQ(error.code, code::kBadAnswer);
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_LT(error.message.size(), 300u);
  EXPECT_TRUE(error.may_have_happened);
  EXPECT_EQ(error.fault, Fault::kReceiver);
}

TEST(ErrorOf, WhatWasNotSentHasNotHappened) {
  const Error refused = error_of(Failure{"cannot connect", ECONNREFUSED}, false);
  EXPECT_EQ(refused.code, code::kConnectionFailed);
  EXPECT_FALSE(refused.may_have_happened);
  const Error late = error_of(Failure{"no reply in time", ETIMEDOUT}, true);
  EXPECT_EQ(late.code, code::kTimeout);
  EXPECT_TRUE(late.may_have_happened);
  EXPECT_EQ(error_of(Failure{"closed"}, true).code, code::kConnectionLost);
}

TEST(MayRepeat, ThrottlingFaultsOfTheServerAndLostConnectionsAreRepeated) {
  const auto harmless = [](const Error& error) {
    return may_repeat(error, Repetition::kHarmless, {});
  };
  const auto doubles = [](const Error& error) {
    return may_repeat(error, Repetition::kDoubles, {});
  };
  for (const Error& error : {answered(403, R"({"__type":"x#RequestThrottled"})"), answered(429, ""),
                             answered(400, R"({"__type":"ThrottlingException"})"),
                             answered(503, R"({"__type":"x#ServiceUnavailableException"})"),
                             error_of(Failure{"refused"}, false)}) {
    EXPECT_TRUE(harmless(error)) << error.to_string();
    EXPECT_TRUE(doubles(error)) << error.to_string();
  }
  for (const Error& error : {answered(500, R"({"__type":"x#InternalFailure"})"), answered(502, ""),
                             answered(504, ""), error_of(Failure{"lost"}, true)}) {
    EXPECT_TRUE(harmless(error)) << error.to_string();
    EXPECT_FALSE(doubles(error)) << error.to_string();
    EXPECT_TRUE(may_repeat(error, Repetition::kDoubles, {.repeat_ambiguous_sends = true}));
  }
  for (const Error& error : {answered(400, R"({"__type":"x#InvalidParameterValue"})"),
                             answered(403, R"({"__type":"x#AccessDeniedException"})"),
                             answered(404, ""), local_error(code::kNoCredentials, "")})
    EXPECT_FALSE(harmless(error)) << error.to_string();
}

TEST(MayRepeat, CredentialsThatWereRefusedAreKnown) {
  EXPECT_TRUE(refuses_credentials(answered(403, R"({"__type":"x#ExpiredTokenException"})")));
  EXPECT_TRUE(refuses_credentials(answered(403, R"({"__type":"UnrecognizedClientException"})")));
  EXPECT_FALSE(refuses_credentials(answered(403, R"({"__type":"AccessDeniedException"})")));
}

TEST(DelayBeforeNext, DoublesUpToItsMaximumAndIsRandomBelow) {
  const RetryOptions options{.delay_base = milliseconds(50),
                             .throttled_delay_base = milliseconds(500),
                             .delay_max = milliseconds(1'000)};
  const Error fault{.http_status = 503};
  const Error throttled{.throttled = true};
  EXPECT_EQ(delay_before_next(fault, 1, 1.0, options), milliseconds(50));
  EXPECT_EQ(delay_before_next(fault, 2, 1.0, options), milliseconds(100));
  EXPECT_EQ(delay_before_next(fault, 3, 0.5, options), milliseconds(100));
  EXPECT_EQ(delay_before_next(fault, 3, 0.0, options), milliseconds(0));
  EXPECT_EQ(delay_before_next(throttled, 1, 1.0, options), milliseconds(500));
  EXPECT_EQ(delay_before_next(fault, 1'000'000, 1.0, options), milliseconds(1'000));
}

}  // namespace
}  // namespace stanchion::client
