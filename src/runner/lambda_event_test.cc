#include "runner/lambda_event.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::runner {
namespace {

const std::set<std::string> kSent{"a", "b"};

std::string outcome(const std::string& body, bool partial = true) {
  const auto failed = failed_messages({.status = 200, .body = body}, partial, kSent);
  if (!failed) return "all: " + failed.error().message;
  std::string ids;
  for (const std::string& id : *failed) ids += id;
  return ids.empty() ? "none" : ids;
}

TEST(LambdaEvent, ARecordHasWhatLambdaGivesAFunction) {
  worker::TaskInformation task;
  task.message_id = "a";
  task.receipt_handle = "r";
  task.body = R"({"kind":"order"})";
  task.queue_arn = "arn:aws:sqs:eu-central-1:000000000000:jobs";
  task.attributes["ApproximateReceiveCount"] = "1";
  task.message_attributes["n"] = client::MessageAttributeValue::number("7");
  const auto record = lambda_record(task);
  EXPECT_EQ(
      boost::json::serialize(record),
      R"({"messageId":"a","receiptHandle":"r","body":"{\"kind\":\"order\"}",)"
      R"("attributes":{"ApproximateReceiveCount":"1"},"messageAttributes":{"n":)"
      R"({"stringValue":"7","stringListValues":[],"binaryListValues":[],"dataType":"Number"}},)"
      R"("md5OfMessageAttributes":")" +
          std::string(record.at("md5OfMessageAttributes").as_string()) +
          R"(","md5OfBody":"838954f6b177c272a5528ce636ed13b5","eventSource":"aws:sqs",)"
          R"("eventSourceARN":"arn:aws:sqs:eu-central-1:000000000000:jobs",)"
          R"("awsRegion":"eu-central-1"})");
  EXPECT_EQ(record_for_filter(record).at_pointer("/body/kind"), "order");
  EXPECT_EQ(lambda_event({"{}", "{}"}), R"({"Records":[{},{}]})");
}

TEST(LambdaEvent, AnAnswerWithoutFailuresIsASuccessOfTheWholeBatch) {
  for (const char* body : {"", "null", "{}", R"({"batchItemFailures":null})",
                           R"({"batchItemFailures":[]})", R"({"statusCode":200})"})
    EXPECT_EQ(outcome(body), "none") << body;
}

TEST(LambdaEvent, TheMessagesThatAreNamedHaveFailed) {
  EXPECT_EQ(outcome(R"({"batchItemFailures":[{"itemIdentifier":"b"}]})"), "b");
  EXPECT_EQ(outcome(R"({"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"a"}]})"),
            "ab");
}

TEST(LambdaEvent, NonsenseIsAFailureOfTheWholeBatch) {
  for (const char* body :
       {"ok", "{", "\"ok\"", "[]", R"({"batchItemFailures":{}})", R"({"batchItemFailures":["a"]})",
        R"({"batchItemFailures":[{"id":"a"}]})", R"({"batchItemFailures":[{"itemIdentifier":""}]})",
        R"({"batchItemFailures":[{"itemIdentifier":null}]})",
        R"({"batchItemFailures":[{"itemIdentifier":"stranger"}]})"})
    EXPECT_TRUE(outcome(body).starts_with("all: the function")) << body << ": " << outcome(body);
}

TEST(LambdaEvent, WithoutPartialResponsesAnyAnswerThatIsNoErrorIsASuccess) {
  EXPECT_EQ(outcome("ok", false), "none");
  EXPECT_EQ(outcome(R"({"batchItemFailures":[{"itemIdentifier":"b"}]})", false), "none");
  EXPECT_TRUE(outcome(R"({"errorMessage":"no","errorType":"Error"})", false).starts_with("all: "));
}

TEST(LambdaEvent, ErrorsOfTheFunctionAndOfItsEndpointFailTheWholeBatch) {
  const auto header = failed_messages(
      {.status = 200, .headers = {{"x-amz-function-error", "Unhandled"}}, .body = "{}"}, true,
      kSent);
  EXPECT_FALSE(header);
  const auto throttled = failed_messages({.status = 429, .body = "later"}, true, kSent);
  ASSERT_FALSE(throttled);
  EXPECT_EQ(throttled.error().message,
            "the function's endpoint answered 429 Too Many Requests: later");
}

}  // namespace
}  // namespace stanchion::runner
