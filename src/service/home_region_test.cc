#include "service/home_region.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion::service {
namespace {

std::string home(std::string_view text) {
  return with_home_arns(text, "us-east-1");
}

TEST(HomeRegion, ArnsOfQueuesNameItWhereverTheyStand) {
  EXPECT_EQ(home("arn:aws:sqs:eu-west-1:1:q"), "arn:aws:sqs:us-east-1:1:q");
  EXPECT_EQ(home("arn:aws-cn:sqs:cn-north-1:1:q"), "arn:aws:sqs:us-east-1:1:q");
  EXPECT_EQ(with_home_arns("arn:aws:sqs:eu-west-1:1:q", "cn-north-1"),
            "arn:aws-cn:sqs:cn-north-1:1:q");
  EXPECT_EQ(home(R"({"a":["arn:aws:sqs:eu-west-1:1:q","arn:aws:sqs:eu-west-2:1:arn:"],"n":3})"),
            R"({"a":["arn:aws:sqs:us-east-1:1:q","arn:aws:sqs:us-east-1:1:arn:"],"n":3})");
}

TEST(HomeRegion, WhatIsNoArnOfAQueueInARegionStays) {
  for (const std::string_view text :
       {"", "q", "arn:", "arn:aws:sqs", "arn:aws:sqs:eu-west-1", "arn:aws:sqs::1:q",
        "arn:aws:sqs:*:1:q", "arn:aws:sns:eu-west-1:1:t", "arn:aws:iam::1:root", "arn::sqs:x:1:q",
        "barn:x", "arn:aws:sqs:us-east-1:1:q"})
    EXPECT_EQ(home(text), text);
}

TEST(HomeRegion, EveryArnOfARequestIsBroughtHome) {
  const std::string there = "arn:aws:sqs:eu-west-1:1:q", here = "arn:aws:sqs:us-east-1:1:q";
  for (const char* name : {"RedrivePolicy", "RedriveAllowPolicy", "Policy"}) {
    Request create = CreateQueue{{}, {{name, there}}, {}};
    bring_home(create, "us-east-1");
    EXPECT_EQ(std::get<CreateQueue>(create).attributes.at(name), here);
    Request set = SetQueueAttributes{{}, {{name, there}}};
    bring_home(set, "us-east-1");
    EXPECT_EQ(std::get<SetQueueAttributes>(set).attributes.at(name), here);
  }
  Request start = StartMessageMoveTask{there, there, {}};
  bring_home(start, "us-east-1");
  EXPECT_EQ(std::get<StartMessageMoveTask>(start).source_arn, here);
  EXPECT_EQ(std::get<StartMessageMoveTask>(start).destination_arn, here);
  Request list = ListMessageMoveTasks{there, {}};
  bring_home(list, "us-east-1");
  EXPECT_EQ(std::get<ListMessageMoveTasks>(list).source_arn, here);
}

TEST(HomeRegion, QueuesOfOtherRegionsAreNotThereForMoveTasks) {
  const std::string here = "arn:aws:sqs:us-east-1:1:q", there = "arn:aws:sqs:eu-west-1:1:q";
  const auto wrong = [](const Request& request) {
    const auto error = find_elsewhere(request, "us-east-1");
    return error ? error->message : "";
  };
  EXPECT_EQ(wrong(StartMessageMoveTask{here, here, {}}), "");
  EXPECT_EQ(wrong(StartMessageMoveTask{here, "x", {}}), "");
  EXPECT_EQ(wrong(StartMessageMoveTask{there, here, {}}),
            "The resource that you specified for the SourceArn parameter doesn't exist.");
  EXPECT_EQ(wrong(StartMessageMoveTask{here, there, {}}),
            "The resource that you specified for the DestinationArn parameter doesn't exist.");
  EXPECT_EQ(wrong(ListMessageMoveTasks{there, {}}),
            "The resource that you specified for the SourceArn parameter doesn't exist.");
  const auto cancel = [](const std::string& arn) {
    return CancelMessageMoveTask{to_base64(
        R"({"taskId":"00000000-0000-4000-8000-000000000000","sourceArn":")" + arn + "\"}")};
  };
  EXPECT_EQ(wrong(cancel(here)), "");
  EXPECT_EQ(wrong(cancel(there)),
            "The resource that you specified for the SourceArn parameter doesn't exist.");
}

TEST(HomeRegion, MessagesAreNotTouched) {
  Request send = SendMessage{};
  std::get<SendMessage>(send).message.body = "arn:aws:sqs:eu-west-1:1:q";
  bring_home(send, "us-east-1");
  EXPECT_EQ(std::get<SendMessage>(send).message.body, "arn:aws:sqs:eu-west-1:1:q");
}

}  // namespace
}  // namespace stanchion::service
