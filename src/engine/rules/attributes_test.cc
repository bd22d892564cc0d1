#include "engine/rules/attributes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/queue.h"

namespace stanchion::engine {
namespace {

constexpr char kArn[] = "arn:aws:sqs:us-east-1:000000000000:dlq";

Queue queue_with(const QueueAttributes& attributes) {
  static Memory memory;
  const std::string name = attributes.fifo ? "q.fifo" : "q";
  return Queue(QueueId(1), {"000000000000", "us-east-1", name}, attributes, {},
               from_millis(1'700'000'000'000), memory);
}

QueueAttributes standard() {
  return {};
}

QueueAttributes fifo() {
  QueueAttributes attributes;
  attributes.fifo = true;
  return attributes;
}

// The value of the attribute after it is set; the error's text if it is refused.
std::string set(const QueueAttributes& base, const std::string& name, const std::string& value) {
  const auto changed = with_attributes(base, {{name, value}});
  if (!changed)
    return fmt::format("{}: {}", info_of(changed.error().code).query_code, changed.error().message);
  const auto all = read_attributes(queue_with(*changed), {"All"});
  const auto found = all->find(name);
  return found == all->end() ? "absent" : found->second;
}

TEST(QueueAttributes, NumbersAreTakenWithinTheirRangeAndNowhereElse) {
  struct Range {
    const char* name;
    std::int64_t least, most;
  };
  for (const Range& range : {Range{"VisibilityTimeout", 0, 43'200}, Range{"DelaySeconds", 0, 900},
                             Range{"MaximumMessageSize", 1'024, 1'048'576},
                             Range{"MessageRetentionPeriod", 60, 1'209'600},
                             Range{"ReceiveMessageWaitTimeSeconds", 0, 20}}) {
    const std::string wrong =
        fmt::format("InvalidAttributeValue: Invalid value for the parameter {}.", range.name);
    for (const std::int64_t good : {range.least, range.most})
      EXPECT_EQ(set(standard(), range.name, fmt::to_string(good)), fmt::to_string(good));
    EXPECT_EQ(set(standard(), range.name, fmt::to_string(range.most + 1)), wrong);
    if (range.least > 0) {
      EXPECT_EQ(set(standard(), range.name, fmt::to_string(range.least - 1)), wrong);
    }
    for (const char* bad : {"", " 6", "-45", "1.5", "true", "+7", "7 ", "0x10",
                            "99999999999999999999", "9223372036854775808"})
      EXPECT_EQ(set(standard(), range.name, bad), wrong) << range.name << " " << bad;
  }
}

TEST(QueueAttributes, FlagsAreTrueOrFalseInAnyCase) {
  EXPECT_EQ(set(standard(), "SqsManagedSseEnabled", "false"), "false");
  EXPECT_EQ(set(fifo(), "ContentBasedDeduplication", "true"), "true");
  EXPECT_EQ(set(fifo(), "ContentBasedDeduplication", "True"), "true");
  EXPECT_EQ(set(standard(), "SqsManagedSseEnabled", "FALSE"), "false");
  for (const char* bad : {"", "tru", " true", "1", "yes"}) {
    EXPECT_EQ(set(standard(), "SqsManagedSseEnabled", bad),
              "InvalidAttributeValue: Invalid value for the parameter SqsManagedSseEnabled.");
    EXPECT_EQ(set(fifo(), "ContentBasedDeduplication", bad),
              "InvalidAttributeValue: Invalid value for the parameter ContentBasedDeduplication.");
  }
}

TEST(QueueAttributes, FifoOnlyAttributesAreRefusedOnStandardQueues) {
  EXPECT_EQ(set(standard(), "ContentBasedDeduplication", "true"),
            "InvalidAttributeName: Unknown Attribute ContentBasedDeduplication.");
  EXPECT_EQ(set(standard(), "DeduplicationScope", "queue"),
            "InvalidAttributeName: You can specify the DeduplicationScope only when FifoQueue is "
            "set to true.");
  EXPECT_EQ(set(standard(), "FifoThroughputLimit", "perQueue"),
            "InvalidAttributeName: You can specify the FifoThroughputLimit only when FifoQueue is "
            "set to true.");
  EXPECT_EQ(set(fifo(), "DeduplicationScope", "messageGroup"), "messageGroup");
  EXPECT_EQ(set(fifo(), "DeduplicationScope", "group"),
            "InvalidAttributeValue: Invalid value for the parameter DeduplicationScope.");
  EXPECT_EQ(set(fifo(), "FifoThroughputLimit", "perGroup"),
            "InvalidAttributeValue: Invalid value for the parameter FifoThroughputLimit.");
  EXPECT_EQ(set(fifo(), "FifoThroughputLimit", "perMessageGroupId"),
            "InvalidAttributeValue: The perMessageGroupId value is allowed only when the value for "
            "DeduplicationScope is messageGroup");
}

TEST(QueueAttributes, UnknownAndReadOnlyNamesAreRefused) {
  for (const char* name : {"Foo", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "All",
                           "visibilitytimeout", "ApproximateNumberOfMessages", ""})
    EXPECT_EQ(set(standard(), name, "1"),
              fmt::format("InvalidAttributeName: Unknown Attribute {}.", name));
}

TEST(QueueAttributes, EncryptionIsOfOneKindAtATime) {
  EXPECT_EQ(set(standard(), "KmsMasterKeyId", "alias/aws/sqs"), "alias/aws/sqs");
  EXPECT_EQ(set(standard(), "KmsDataKeyReusePeriodSeconds", "59"),
            "InvalidAttributeValue: Invalid value for the parameter KmsDataKeyReusePeriodSeconds.");
  EXPECT_EQ(set(standard(), "KmsDataKeyReusePeriodSeconds", "86401"),
            "InvalidAttributeValue: Invalid value for the parameter KmsDataKeyReusePeriodSeconds.");
  EXPECT_EQ(set(standard(), "KmsDataKeyReusePeriodSeconds", "60"), "absent")
      << "it is shown only with a key";

  const auto with_key = with_attributes(standard(), {{"KmsMasterKeyId", "alias/aws/sqs"}});
  ASSERT_TRUE(with_key);
  EXPECT_FALSE(with_key->managed_sse);
  EXPECT_EQ(set(*with_key, "KmsDataKeyReusePeriodSeconds", "600"), "600");
  EXPECT_EQ(set(*with_key, "KmsMasterKeyId", ""), "absent");
  const auto managed = with_attributes(*with_key, {{"SqsManagedSseEnabled", "true"}});
  ASSERT_TRUE(managed);
  EXPECT_EQ(managed->kms_master_key_id, "") << "enabling one kind drops the other";
  const auto both = with_attributes(
      standard(), {{"KmsMasterKeyId", "alias/aws/sqs"}, {"SqsManagedSseEnabled", "true"}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, ErrorCode::kInvalidAttributeName);
  EXPECT_EQ(both.error().message,
            "You can use one type of server-side encryption (SSE) at one time. You can either "
            "enable KMS SSE or SQS SSE.");
}

TEST(QueueAttributes, PolicyIsAJsonObjectOfALimitedSize) {
  const std::string wrong = "InvalidAttributeValue: Invalid value for the parameter Policy.";
  EXPECT_EQ(set(standard(), "Policy", R"({"Version":"2012-10-17"})"),
            R"({"Version":"2012-10-17"})");
  EXPECT_EQ(set(standard(), "Policy", ""), "absent");
  for (const char* bad : {"x", "[]", "1", "{", R"({"a":)"})
    EXPECT_EQ(set(standard(), "Policy", bad), wrong) << bad;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"a":)";
  EXPECT_EQ(set(standard(), "Policy", deep), wrong);
  const auto sized = [](std::size_t size) {
    return R"({"Id":")" + std::string(size - 9, 'x') + R"("})";
  };
  EXPECT_EQ(set(standard(), "Policy", sized(8'192)), sized(8'192));
  EXPECT_EQ(set(standard(), "Policy", sized(8'193)), wrong);
}

TEST(QueueAttributes, RedrivePolicyNeedsATargetAndACount) {
  const auto policy = [](std::string_view count) {
    return fmt::format(R"({{"deadLetterTargetArn":"{}","maxReceiveCount":{}}})", kArn, count);
  };
  const auto wrong = [](const std::string& text, std::string_view reason) {
    return fmt::format(
        "InvalidParameterValue: Value {} for parameter RedrivePolicy is invalid. Reason: {}", text,
        reason);
  };
  EXPECT_EQ(set(standard(), "RedrivePolicy", policy("1")), policy("1"));
  EXPECT_EQ(set(standard(), "RedrivePolicy", policy("\"1000\"")), policy("1000"));
  EXPECT_EQ(set(standard(), "RedrivePolicy", ""), "absent");
  for (const auto& [count, shown] : std::vector<std::pair<std::string, std::string>>{
           {"0", "0"}, {"4023", "4023"}, {"-1", "-1"}, {"\"x\"", "x"}, {"null", "null"}})
    EXPECT_EQ(set(standard(), "RedrivePolicy", policy(count)),
              wrong(policy(count),
                    fmt::format("Invalid value for maxReceiveCount: {}, valid values are from 1 to "
                                "1000 both inclusive.",
                                shown)));
  const std::string no_count = fmt::format(R"({{"deadLetterTargetArn":"{}"}})", kArn);
  EXPECT_EQ(
      set(standard(), "RedrivePolicy", no_count),
      wrong(no_count, "Redrive policy does not contain mandatory attribute: maxReceiveCount."));
  const std::string no_target = R"({"maxReceiveCount":3})";
  EXPECT_EQ(set(standard(), "RedrivePolicy", no_target),
            wrong(no_target,
                  "Redrive policy does not contain mandatory attribute: deadLetterTargetArn."));
  for (const char* bad : {"x", "[]", "{", "3", R"({"maxReceiveCount":1,"maxReceiveCount":2})"})
    EXPECT_EQ(set(standard(), "RedrivePolicy", bad),
              "InvalidParameterValue: Invalid value for the parameter RedrivePolicy. Reason: "
              "Redrive policy is not a valid JSON map.");
}

TEST(QueueAttributes, RedrivePoliciesHaveASize) {
  // A list of as many values as this takes many times the memory of its text.
  std::string values = "0";
  for (int i = 0; i < 5'000; ++i) values += ",0";
  const std::string text = fmt::format(R"({{"maxReceiveCount":[{}]}})", values);
  EXPECT_EQ(set(standard(), "RedrivePolicy", text),
            "InvalidParameterValue: Invalid value for the parameter RedrivePolicy. Reason: "
            "Redrive policy is not a valid JSON map.");
}

TEST(QueueAttributes, RedriveAllowPolicyNamesItsSourcesOnlyByQueue) {
  const std::string unsupported =
      "InvalidParameterValue: Invalid value for the parameter RedriveAllowPolicy. Reason: Amazon "
      "SQS can't create the redrive allow policy, as it's in an unsupported format.";
  const auto wrong = [](const std::string& text, std::string_view reason) {
    return fmt::format(
        "InvalidParameterValue: Value {} for parameter RedriveAllowPolicy is invalid. Reason: "
        "Amazon SQS can't create the redrive allow policy. {}",
        text, reason);
  };
  const auto by_queue = [](int sources) {
    std::string list;
    for (int i = 0; i < sources; ++i) list += fmt::format("{}\"{}{}\"", i ? "," : "", kArn, i);
    return fmt::format(R"({{"redrivePermission":"byQueue","sourceQueueArns":[{}]}})", list);
  };
  for (const char* good :
       {R"({"redrivePermission":"allowAll"})", R"({"redrivePermission":"denyAll"})"})
    EXPECT_EQ(set(standard(), "RedriveAllowPolicy", good), good);
  EXPECT_EQ(set(standard(), "RedriveAllowPolicy", by_queue(1)), by_queue(1));
  EXPECT_EQ(set(standard(), "RedriveAllowPolicy", by_queue(10)), by_queue(10));
  EXPECT_EQ(set(standard(), "RedriveAllowPolicy", ""), "absent");
  EXPECT_EQ(set(standard(), "RedriveAllowPolicy", by_queue(11)),
            wrong(by_queue(11), "The maximum number of source queue ARNs you can specify is 10."));
  for (const std::string& none : {by_queue(0), std::string(R"({"redrivePermission":"byQueue"})")})
    EXPECT_EQ(set(standard(), "RedriveAllowPolicy", none),
              wrong(none,
                    "When you specify the byQueue permission type, you must also specify one or "
                    "more sourceQueueArns values."));
  const std::string both =
      fmt::format(R"({{"redrivePermission":"allowAll","sourceQueueArns":["{}"]}})", kArn);
  EXPECT_EQ(set(standard(), "RedriveAllowPolicy", both),
            wrong(both,
                  "To specify one or more source queue ARNs, you must set redrivePermission to "
                  "byQueue."));
  for (const char* bad :
       {"x", "[]", "{}", R"({"redrivePermission":"maybe"})", R"({"redrivePermission":1})",
        R"({"redrivePermission":"allowAll","more":1})",
        R"({"redrivePermission":"byQueue","sourceQueueArns":"x"})",
        R"({"redrivePermission":"byQueue","sourceQueueArns":[1]})"})
    EXPECT_EQ(set(standard(), "RedriveAllowPolicy", bad), unsupported) << bad;
}

TEST(QueueAttributes, TargetIsCheckedAgainstTheSource) {
  const QueueRef source{"000000000000", "us-east-1", "q"};
  const RedrivePolicy policy{kArn, 3};
  const auto check = [&](const QueueRef& from, const std::optional<QueueSummary>& target) {
    const auto ok = check_redrive_target(from, false, policy, "{}", target);
    return ok ? std::string("ok") : ok.error().message.substr(ok.error().message.find("Reason"));
  };
  QueueSummary target{{"000000000000", "us-east-1", "dlq"}, false, {}};
  EXPECT_EQ(check(source, target), "ok");
  EXPECT_EQ(check(source, std::nullopt), "Reason: Dead letter target does not exist.");
  target.fifo = true;
  EXPECT_EQ(check(source, target),
            "Reason: Dead-letter queue must be same type of queue as the source..");
  target.fifo = false;
  target.redrive_allow = RedriveAllowPolicy{RedriveAllowPolicy::Permission::kByQueue, {"other"}};
  EXPECT_NE(check(source, target), "ok");
  target.redrive_allow->source_arns.push_back(source.arn());
  EXPECT_EQ(check(source, target), "ok");
  EXPECT_NE(check({"111111111111", "us-east-1", "q"}, target), "ok");
  EXPECT_NE(check({"000000000000", "eu-west-1", "q"}, target), "ok");
}

TEST(QueueAttributes, DifferenceNamesTheFirstThatDiffersOfThoseGiven) {
  const QueueAttributes existing;
  EXPECT_EQ(*first_difference(existing, {}), std::nullopt);
  EXPECT_EQ(*first_difference(existing, {{"VisibilityTimeout", "30"}}), std::nullopt);
  EXPECT_EQ(*first_difference(existing, {{"DelaySeconds", "0"}, {"VisibilityTimeout", "31"}}),
            "VisibilityTimeout");
  EXPECT_FALSE(first_difference(existing, {{"VisibilityTimeout", "x"}}));
}

}  // namespace
}  // namespace stanchion::engine
