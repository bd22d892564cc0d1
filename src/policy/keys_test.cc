#include "policy/keys.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion::policy {
namespace {

TEST(PolicyKeys, WhatAwsDocumentsIsKnown) {
  for (const char* key :
       {"aws:PrincipalArn", "aws:userid", "aws:username", "aws:TokenIssueTime", "aws:TokenAge",
        "aws:SourceAccount", "aws:AssumedRoot", "aws:SignInSessionArn", "aws:ChatbotSourceArn",
        "aws:Ec2InstanceSourceVpc", "aws:Ec2InstanceSourcePrivateIPv4", "aws:CalledViaAWSMCP",
        "aws:ViaAWSMCPService", "aws:IsMcpServiceAction", "aws:PrincipalTag/team",
        "aws:ResourceTag/a:b", "lambda:SourceFunctionArn", "ec2:SourceInstanceArn"})
    EXPECT_EQ(kind_of_key(to_lower_ascii(key)), KeyKind::kDocumented) << key;
}

TEST(PolicyKeys, WhatCouldBeMeantForSqsIsUnknown) {
  for (const char* key : {"aws:sourcip", "aws:arn", "aws:", "sqs:speed", "aws:principaltag/"})
    EXPECT_EQ(kind_of_key(key), KeyKind::kUnknown) << key;
}

TEST(PolicyKeys, OtherServicesHaveKeysOfTheirOwn) {
  for (const char* key : {"s3:prefix", "sns:endpoint", "ec2:region", "k", "", "saml:aud"})
    EXPECT_EQ(kind_of_key(key), KeyKind::kForeign) << key;
}

}  // namespace
}  // namespace stanchion::policy
