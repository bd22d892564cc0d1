#include "engine/rules/validation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stanchion::engine {
namespace {

using Text = std::optional<std::string>;

MessageAttribute attribute(std::string name, Text type, Text string_value, Text binary_value = {}) {
  return {std::move(name), std::move(type), std::move(string_value), std::move(binary_value),
          false};
}

OutgoingMessage message_with(std::vector<MessageAttribute> attributes) {
  OutgoingMessage message;
  message.body = "x";
  message.attributes = std::move(attributes);
  return message;
}

// "ok", or the error's text.
std::string check(const OutgoingMessage& message, const QueueAttributes& queue = {}) {
  const auto checked = check_message(message, queue);
  return checked ? "ok" : checked.error().message;
}

std::string check(MessageAttribute a) {
  return check(message_with({std::move(a)}));
}

TEST(MessageAttributes, EveryViolationHasItsText) {
  EXPECT_EQ(check(attribute("x", "String", "v")), "ok");
  EXPECT_EQ(check(attribute("x", "Text", "v")),
            "The type of message (user) attribute 'x' is invalid. You must use only the following "
            "supported type prefixes: Binary, Number, String.");
  EXPECT_EQ(check(attribute("x", "string", "v")),
            "The type of message (user) attribute 'x' is invalid. You must use only the following "
            "supported type prefixes: Binary, Number, String.");
  EXPECT_EQ(check(attribute("x", "String", "")),
            "Message (user) attribute 'x' must contain a non-empty value of type 'String'.");
  EXPECT_EQ(check(attribute("x", "Binary", {}, "")),
            "Message (user) attribute 'x' must contain a non-empty value of type 'Binary'.");
  for (const Text& none : {Text(), Text("")})
    EXPECT_EQ(check(attribute("x", none, "v")),
              "The message (user) attribute 'x' must contain a non-empty message attribute type.");
  EXPECT_EQ(check(attribute("x", "String", {})),
            "The message (user) attribute 'x' must contain a non-empty message attribute value.");
  EXPECT_EQ(check(attribute("x", "Number", "seven")),
            "Can't cast the value of message (user) attribute 'x' to a number.");
  EXPECT_EQ(check(attribute("x", "String", "v", "b")),
            "Message (user) attribute 'x' must have a single value.");
  EXPECT_EQ(check(attribute("x", "Binary", "v")),
            "Message (user) attribute 'x' with type 'Binary' must use field 'Binary'.");
  EXPECT_EQ(check(attribute("x", "String", {}, "b")),
            "Message (user) attribute 'x' with type 'String' must use field 'String'.");
}

TEST(MessageAttributes, NamesAreChecked) {
  for (const char* good :
       {"a", "A-b_c.d", "9", "AWSx", "amazon", "x.AWS.y", "attr.1øßä", "ключ", "键"})
    EXPECT_EQ(check(attribute(good, "String", "v")), "ok") << good;
  for (const char* bad : {"", "a b", "e\u0301", "a/b", "§", "!", "\"", "(", "?", "\xFF"})
    EXPECT_EQ(check(attribute(bad, "String", "v")),
              "Message (user) attributes name can only contain upper and lower score characters, "
              "digits, periods, hyphens and underscores. ");
  for (const char* reserved : {"AWS.x", "aws.x", "Amazon.x", "AMAZON.x"})
    EXPECT_EQ(check(attribute(reserved, "String", "v")),
              "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. These "
              "strings are reserved for internal use.");
  EXPECT_EQ(check(attribute(".x", "String", "v")),
            "Message (user) attribute name must not begin with character '.'.");
  EXPECT_EQ(check(attribute("x.", "String", "v")),
            "Message (user) attribute name must not end with character '.'.");
  EXPECT_EQ(check(attribute("x..y", "String", "v")),
            "Message (user) attribute name must not have successive '.' characters.");
  EXPECT_EQ(check(attribute(std::string(256, 'x'), "String", "v")), "ok");
  std::string long_name;
  for (int i = 0; i < 129; ++i) long_name += "ø";
  for (const std::string& name : {std::string(257, 'x'), long_name})
    EXPECT_EQ(check(attribute(name, "String", "v")),
              "Message (user) attribute name must be shorter than 256 bytes.");
}

TEST(MessageAttributes, TypesMayCarryALabel) {
  for (const char* good : {"String.name", "Number.bigint", "String.", "Number.a.b"})
    EXPECT_EQ(check(attribute("x", good, "1")), "ok") << good;
  EXPECT_EQ(check(attribute("x", "Binary.png", {}, "1")), "ok");
  EXPECT_EQ(check(attribute("x", "String." + std::string(249, 'x'), "1")), "ok");
  EXPECT_EQ(check(attribute("x", "String." + std::string(250, 'x'), "1")),
            "Message (user) attribute type must be shorter than 256 bytes.");
  EXPECT_NE(check(attribute("x", "String.\x01", "1")), "ok");
  EXPECT_NE(check(attribute("x", "String", "\x01")), "ok");
  EXPECT_EQ(check(attribute("x", "Binary", {}, std::string("\0\x01", 2))), "ok");
}

TEST(MessageAttributes, NumbersHave38DigitsAndABoundedMagnitude) {
  for (const char* good : {"0", "-1", "+1", "1.5", ".5", "5.", "1e10", "1E-10", "007", "0.000",
                           "12345678901234567890123456789012345678", "1e126", "1e-128", "9.9e126"})
    EXPECT_EQ(check(attribute("x", "Number", good)), "ok") << good;
  for (const char* bad : {"", " 1", "1 ", "x", "1x", ".", "-", "e5", "1e", "1e+", "0x10", "NaN",
                          "123456789012345678901234567890123456789", "1e127", "1e-129", "1e99999"})
    EXPECT_NE(check(attribute("x", "Number", bad)), "ok") << bad;
}

TEST(MessageAttributes, AtMostTenWithDistinctNames) {
  std::vector<MessageAttribute> attributes;
  for (int i = 0; i < 10; ++i)
    attributes.push_back(attribute(fmt::format("a{}", i), "String", "v"));
  EXPECT_EQ(check(message_with(attributes)), "ok");
  attributes.push_back(attribute("more", "String", "v"));
  EXPECT_EQ(check(message_with(attributes)),
            "Number of message attributes [11] exceeds the allowed maximum [10].");
  EXPECT_NE(check(message_with({attribute("a", "String", "1"), attribute("a", "String", "2")})),
            "ok");
  EXPECT_EQ(check(message_with({attribute("a", "String", "1"), attribute("A", "String", "2")})),
            "ok");
}

TEST(MessageAttributes, ListValuesAreUnsupported) {
  MessageAttribute list = attribute("x", "String", "v");
  list.has_list_value = true;
  const auto checked = check_message(message_with({list}), {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUnsupportedOperation);
  EXPECT_EQ(checked.error().message,
            "Message attribute list values in SendMessage operation are not supported.");
}

TEST(SystemAttributes, OnlyTheTraceHeaderIsTaken) {
  OutgoingMessage message = message_with({});
  message.system_attributes = {attribute("AWSTraceHeader", "String", "Root=1")};
  const auto checked = check_message(message, {});
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->trace_header, "Root=1");
  message.system_attributes = {attribute("Other", "String", "v")};
  EXPECT_EQ(check(message), "Message system attribute name 'Other' is invalid.");
  for (const auto& bad :
       {attribute("AWSTraceHeader", "Number", "1"), attribute("AWSTraceHeader", "String", ""),
        attribute("AWSTraceHeader", {}, "v"), attribute("AWSTraceHeader", "Binary", {}, "v"),
        attribute("AWSTraceHeader", "String", std::string(8'193, 'x'))}) {
    message.system_attributes = {bad};
    EXPECT_NE(check(message), "ok");
  }
}

TEST(MessageSize, CountsBodyNamesTypesAndValuesAndMayEqualTheLimit) {
  QueueAttributes queue;
  queue.message_size_max = 1'024;
  OutgoingMessage message =
      message_with({attribute("name", "String", "value"), attribute("b", "Binary", {}, "12345")});
  message.system_attributes = {attribute("AWSTraceHeader", "String", "does not count")};
  const std::size_t attributes = 4 + 6 + 5 + 1 + 6 + 5;
  message.body = std::string(1'024 - attributes, 'x');
  EXPECT_EQ(size_of(message), 1'024U);
  EXPECT_EQ(check(message, queue), "ok");
  message.body->push_back('x');
  EXPECT_EQ(check(message, queue),
            "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.");
}

TEST(Tokens, Are1To128LettersDigitsAndPunctuation) {
  std::string all = "azAZ09!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  EXPECT_TRUE(check_token("MessageGroupId", all));
  EXPECT_TRUE(check_token("MessageGroupId", std::string(128, 'x')));
  for (const std::string& bad :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("tab\t"),
        std::string("\x7f"), std::string("\xc3\xa9")})
    EXPECT_FALSE(check_token("MessageGroupId", bad)) << bad;
  EXPECT_EQ(check_token("MessageDeduplicationId", " ").error().message,
            "Value   for parameter MessageDeduplicationId is invalid. Reason: "
            "MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to "
            "128 in length.");
}

std::string check_batch(const std::vector<Text>& ids) {
  std::vector<const Text*> pointers;
  for (const Text& id : ids) pointers.push_back(&id);
  const auto ok = check_batch_ids(pointers, "SendMessageBatchRequestEntry");
  return ok ? "ok" : ok.error().message;
}

TEST(BatchIds, EveryViolationHasItsText) {
  EXPECT_EQ(check_batch({"a", "B-9_"}), "ok");
  EXPECT_EQ(check_batch({}),
            "There should be at least one SendMessageBatchRequestEntry in the request.");
  EXPECT_EQ(check_batch(std::vector<Text>(11, "a")),
            "Maximum number of entries per request are 10. You have sent 11.");
  EXPECT_EQ(check_batch({"a", {}}),
            "The request must contain the parameter SendMessageBatchRequestEntry.2.Id.");
  EXPECT_EQ(check_batch({"a", "b", "a"}), "Id a repeated.");
  EXPECT_EQ(check_batch({std::string(80, 'x')}), "ok");
  for (const std::string& bad : {std::string(), std::string("a.b"), std::string(81, 'x')})
    EXPECT_EQ(check_batch({bad}),
              "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
              "It can be at most 80 letters long.");
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Tags, SizesAreCountedInCharacters) {
  EXPECT_TRUE(check_tags({{repeated("\u00e9", 128), repeated("\U0001f600", 256)}}));
  EXPECT_FALSE(check_tags({{repeated("\u00e9", 129), "v"}}));
  EXPECT_FALSE(check_tags({{"k", repeated("\U0001f600", 257)}}));
  EXPECT_FALSE(check_tags({{std::string(1'000, '\x80'), "v"}}));
}

TEST(Tags, KeysAndValuesHaveTheirSizes) {
  EXPECT_TRUE(check_tags({{std::string(128, 'k'), std::string(256, 'v')}}));
  EXPECT_TRUE(check_tags({{"k", ""}}));
  EXPECT_EQ(check_tags({{"", "v"}}).error().message,
            "Tag keys must be between 1 and 128 characters in length.");
  EXPECT_FALSE(check_tags({{std::string(129, 'k'), "v"}}));
  EXPECT_FALSE(check_tags({{"k", std::string(257, 'v')}}));
  EXPECT_FALSE(check_tags({{"aws:k", "v"}}));
  EXPECT_FALSE(check_tags({{"k", "\x01"}}));
}

TEST(SystemAttributeNames, KnownOnesAreTaken) {
  EXPECT_TRUE(check_system_attribute_names(
      {"All", "SenderId", "SentTimestamp", "ApproximateReceiveCount",
       "ApproximateFirstReceiveTimestamp", "SequenceNumber", "MessageDeduplicationId",
       "MessageGroupId", "AWSTraceHeader", "DeadLetterQueueSourceArn"}));
  EXPECT_EQ(check_system_attribute_names({"All", "Foo"}).error().message, "Unknown Attribute Foo.");
}

}  // namespace
}  // namespace stanchion::engine
