#include "model/content.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stanchion {
namespace {

AttributeView text(std::string_view name, std::string_view type, std::string_view value) {
  return {name, type, ValueKind::kString, value};
}
AttributeView binary(std::string_view name, std::string_view type, std::string_view value) {
  return {name, type, ValueKind::kBinary, value};
}

std::string hex_md5(std::vector<AttributeView> attributes) {
  return to_hex(as_text(md5_of_attributes(std::move(attributes))));
}

ContentPtr full_content(const std::string& section) {
  ContentParts parts;
  for (std::size_t i = 0; i < parts.id.bytes.size(); ++i)
    parts.id.bytes[i] = static_cast<std::uint8_t>(i + 1);
  parts.sent = from_millis(1'700'000'000'123);
  parts.body = "hello";
  parts.group = "group";
  parts.deduplication_id = "dedup";
  parts.sender = "AIDA";
  parts.trace_header = "Root=1";
  parts.source_arn = "arn:aws:sqs:us-east-1:000000000000:q";
  parts.attribute_section = section;
  return Content::make(parts);
}

TEST(Md5OfAttributes, MatchesWhatClientsCalculate) {
  EXPECT_EQ(hex_md5({text("Hello", "String", "World")}), "7db7fb1ba7f41366a8ea5eb18220b26d");
  EXPECT_EQ(hex_md5({text("UserId", "Number.bigint", "1234567890123456789012")}),
            "797ab158d73dcb5242dedc4412c8e855");
  EXPECT_EQ(hex_md5({text("data2", "Number", "2"), text("data1", "Number", "1")}),
            "b53b5acf24e7fd9567705bd8027b1c76");
  EXPECT_EQ(hex_md5({binary("testname", "Binary", "123")}), "4969dd151b0a6c8b619ebb802f76e035");
  EXPECT_EQ(hex_md5({text("a", "String", "x"),
                     binary("B", "Binary.png", std::string_view("\0\x01\x02", 3))}),
            "cff135f477a4fd1cf7d625833d1e9e8f");
  EXPECT_EQ(hex_md5({text("AWSTraceHeader", "String", "some-trace-id")}),
            "fdce4f2818803f2f73becc09a54792c0");
}

TEST(Content, GivesBackEveryPart) {
  const std::vector<AttributeView> attributes{text("n", "Number", "1"),
                                              binary("b", "Binary.x", std::string_view("\0", 1))};
  const ContentPtr content = full_content(encode_attributes(attributes));
  EXPECT_EQ(content->id().text(), "01020304-0506-0708-090a-0b0c0d0e0f10");
  EXPECT_EQ(to_millis(content->sent()), 1'700'000'000'123);
  EXPECT_EQ(content->body(), "hello");
  EXPECT_EQ(to_hex(as_text(content->body_md5())), "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(content->group(), "group");
  EXPECT_EQ(content->deduplication_id(), "dedup");
  EXPECT_EQ(content->sender(), "AIDA");
  EXPECT_EQ(content->trace_header(), "Root=1");
  EXPECT_EQ(content->source_arn(), "arn:aws:sqs:us-east-1:000000000000:q");
  EXPECT_EQ(content->attributes(), attributes);
  const ContentPtr again = Content::make(content->parts());
  EXPECT_EQ(again->encoded(), content->encoded());
}

TEST(Content, BytesAreAsDocumented) {
  ContentParts parts;
  parts.body = "hi";
  parts.group = "g";
  parts.sent = from_millis(0x0102030405060708);
  parts.id.bytes.fill(0xAA);
  EXPECT_EQ(to_hex(Content::make(parts)->encoded()),
            "01010000"
            "00000000"
            "00000000"
            "00000000"
            "02000000"
            "0807060504030201"
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            "49f68a5c8493ec2c0bf489821c21fc3b"
            "67"
            "6869");
}

TEST(Content, ADeadLetterSaysWhenItWasLastReceived) {
  const ContentPtr sent = full_content("");
  EXPECT_EQ(sent->last_received(), std::nullopt);
  ContentParts parts = sent->parts();
  parts.last_received = from_millis(0x0000018BCFE56800);
  const ContentPtr dead = Content::make(parts);
  EXPECT_EQ(dead->last_received(), from_millis(0x0000018BCFE56800));
  EXPECT_EQ(dead->body(), sent->body());
  // The same bytes with another version, and the time behind them.
  EXPECT_EQ(to_hex(dead->encoded()), "02" + to_hex(sent->encoded().substr(1)) + "0068e5cf8b010000");
  EXPECT_EQ(Content::make(dead->parts())->encoded(), dead->encoded());

  std::string bytes(dead->encoded());
  const auto parsed = Content::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)->last_received(), dead->last_received());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Content::parse(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(Content::parse(bytes + "x"));
  bytes.back() = '\x7f';
  EXPECT_FALSE(Content::parse(bytes)) << "no such year";
}

TEST(Content, ParsesItsOwnBytesAndNothingShorterOrLonger) {
  const std::vector<AttributeView> attributes{text("n", "Number", "1")};
  const ContentPtr content = full_content(encode_attributes(attributes));
  const std::string bytes(content->encoded());
  const auto parsed = Content::parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)->encoded(), bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(Content::parse(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(Content::parse(bytes + "x"));
}

TEST(Content, AlteredBytesAreRefusedOrReadWithinBounds) {
  const std::vector<AttributeView> attributes{text("n", "Number", "1")};
  const std::string bytes(full_content(encode_attributes(attributes))->encoded());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 0x80, 0xFF}) {
      std::string altered = bytes;
      altered[i] = static_cast<char>(altered[i] ^ flip);
      // An exact copy on the heap, so that the sanitizer sees a read past its end.
      const std::vector<char> exact(altered.begin(), altered.end());
      const auto parsed = Content::parse({exact.data(), exact.size()});
      EXPECT_TRUE(i != 0 || !parsed) << "another version is refused";
      if (!parsed) continue;
      const ContentPtr& content = *parsed;
      EXPECT_EQ(content->body().data() + content->body().size(),
                content->encoded().data() + content->encoded().size());
      content->attributes();
    }
  }
}

TEST(Content, SizesThatWrapAroundAreRefused) {
  std::string bytes(full_content("")->encoded());
  for (const std::size_t at : {4, 8, 12, 16})
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = '\xff';
  EXPECT_FALSE(Content::parse(bytes));
}

}  // namespace
}  // namespace stanchion
