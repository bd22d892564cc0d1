#include "wire/encode.h"

#include <gtest/gtest.h>

#include "wire/escape.h"
#include "wire/limits.h"
#include "wire/selection.h"

namespace stanchion::wire {
namespace {

const ReplyContext kContext{"request-id", "https://queues.example"};

std::string json_escaped(std::string_view text) {
  std::string out;
  append_json_escaped(out, text);
  return out;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  append_xml_escaped(out, text);
  return out;
}

ReceivedMessage message_with(const std::vector<AttributeView>& attributes) {
  const std::string section = encode_attributes(attributes);
  ContentParts parts;
  parts.body = "hello";
  parts.attribute_section = section;
  return {Content::make(parts), "handle", 1, from_millis(0), std::nullopt};
}

std::vector<std::string> selected(std::vector<std::string> asked,
                                  const std::vector<std::string_view>& present) {
  ReceiveMessage request;
  request.message_attribute_names = std::move(asked);
  std::vector<AttributeView> attributes;
  for (const auto name : present) attributes.push_back({name, "String", ValueKind::kString, "x"});
  std::vector<std::string> names;
  const ReceivedMessage message = message_with(attributes);
  for (const AttributeView& a : Selection(request).message_attributes(*message.content))
    names.emplace_back(a.name);
  return names;
}

std::string attributes_md5_in_reply(const std::vector<AttributeView>& attributes,
                                    std::vector<std::string> asked) {
  ReceiveMessage request;
  request.message_attribute_names = std::move(asked);
  const Reply reply = ReceiveMessageResult{{message_with(attributes)}, Duration(0)};
  const std::string body =
      encode(reply, Action::kReceiveMessage, request, Protocol::kJson, kContext).body;
  constexpr std::string_view kKey = "\"MD5OfMessageAttributes\":\"";
  const std::size_t at = body.find(kKey);
  return at == std::string::npos ? "" : body.substr(at + kKey.size(), 32);
}

TEST(Escape, JsonKeepsUnicodeAndEscapesControls) {
  EXPECT_EQ(json_escaped("plain \xE2\x82\xAC \x7F"), "plain \xE2\x82\xAC \x7F");
  EXPECT_EQ(json_escaped("\"\\\n\r\t"), "\\\"\\\\\\n\\r\\t");
  EXPECT_EQ(json_escaped(std::string_view("\0\x1f", 2)), "\\u0000\\u001f");
}

TEST(Escape, XmlKeepsCarriageReturnsAndReplacesWhatItCannotHold) {
  EXPECT_EQ(xml_escaped("a&b<c>d\"e'f"), "a&amp;b&lt;c&gt;d&quot;e'f");
  EXPECT_EQ(xml_escaped("x\r\n\ty"), "x&#xD;\n\ty");
  EXPECT_EQ(xml_escaped(std::string_view("\0\x01", 2)), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(xml_escaped("\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBC\x81"),
            "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBC\x81");
}

TEST(Selection, NamesPrefixesAndAll) {
  const std::vector<std::string_view> present{"Dummy1Name", "Dummy2", "Other.x"};
  using Names = std::vector<std::string>;
  EXPECT_EQ(selected({}, present), Names{});
  EXPECT_EQ(selected({"All"}, present), (Names{"Dummy1Name", "Dummy2", "Other.x"}));
  EXPECT_EQ(selected({".*"}, present), (Names{"Dummy1Name", "Dummy2", "Other.x"}));
  EXPECT_EQ(selected({"*"}, present), (Names{"Dummy1Name", "Dummy2", "Other.x"}));
  EXPECT_EQ(selected({"Dummy*"}, present), Names{});
  EXPECT_EQ(selected({"Dummy.*"}, present), (Names{"Dummy1Name", "Dummy2"}));
  EXPECT_EQ(selected({"Dummy1Name", "Other.*"}, present), (Names{"Dummy1Name", "Other.x"}));
  EXPECT_EQ(selected({"Dummy", "dummy2"}, present), Names{});
}

TEST(Selection, TheDigestCoversWhatIsReturned) {
  const AttributeView data1{"data1", "Number", ValueKind::kString, "1"};
  const AttributeView data2{"data2", "Number", ValueKind::kString, "2"};
  const AttributeView hello{"Hello", "String", ValueKind::kString, "World"};
  EXPECT_EQ(attributes_md5_in_reply({data2, hello, data1}, {"data.*"}),
            "b53b5acf24e7fd9567705bd8027b1c76");
  EXPECT_EQ(attributes_md5_in_reply({data2, hello, data1}, {"Hello"}),
            "7db7fb1ba7f41366a8ea5eb18220b26d");
  EXPECT_EQ(attributes_md5_in_reply({hello}, {"absent"}), "");
  EXPECT_EQ(attributes_md5_in_reply({hello}, {}), "");
}

TEST(Selection, DigestsAreThoseThatClientsCompute) {
  const auto digest = [](std::vector<AttributeView> attributes) {
    return attributes_md5_in_reply(attributes, {"All"});
  };
  EXPECT_EQ(digest({{"UserId", "Number.bigint", ValueKind::kString, "1234567890123456789012"}}),
            "797ab158d73dcb5242dedc4412c8e855");
  EXPECT_EQ(digest({{"testname", "Binary", ValueKind::kBinary, "123"}}),
            "4969dd151b0a6c8b619ebb802f76e035");
  EXPECT_EQ(digest({{"B", "Binary.png", ValueKind::kBinary, std::string_view("\0\1\2", 3)},
                    {"a", "String", ValueKind::kString, "x"}}),
            "cff135f477a4fd1cf7d625833d1e9e8f");
}

TEST(Encode, EmptyHalvesOfBatchesAreLeftOut) {
  const Request request(std::in_place_type<DeleteMessageBatch>);
  const auto body = [&](BatchResult result) {
    return encode(result, Action::kDeleteMessageBatch, request, Protocol::kJson, kContext).body;
  };
  EXPECT_EQ(body({{"a"}, {}}), R"({"Successful":[{"Id":"a"}]})");
  EXPECT_EQ(body({{}, {{"a", {ErrorCode::kInternalFailure, "m"}}}}),
            R"({"Failed":[{"Id":"a","Code":"InternalError","Message":"m","SenderFault":false}]})");
}

TEST(Encode, ErrorsAreAlwaysValidText) {
  const Error error{ErrorCode::kInvalidAction, "The action \xFF\x01 is not valid."};
  EXPECT_NE(encode_error(error, Protocol::kJson, kContext).body.find("?\\u0001"),
            std::string::npos);
  EXPECT_NE(encode_error(error, Protocol::kQuery, kContext).body.find("?\xEF\xBF\xBD"),
            std::string::npos);
}

TEST(Encode, ErrorsQuoteOnlySoMuch) {
  std::string quoted;
  while (quoted.size() < 20 * kErrorTextMax) quoted += "<ö";
  // Cut between characters, and within one.
  for (const char* before : {"", "x", "xy"}) {
    const Error error{ErrorCode::kReceiptHandleIsInvalid, before + quoted};
    for (const Protocol protocol : {Protocol::kJson, Protocol::kQuery, Protocol::kQueryJson}) {
      const std::string body = encode_error(error, protocol, kContext).body;
      EXPECT_LT(body.size(), 4 * kErrorTextMax);
      EXPECT_TRUE(is_utf8(body));
      EXPECT_NE(body.find("…"), std::string::npos);
      EXPECT_EQ(body.find('?', 5), body.find("?>"));
    }
  }
  const Error error{ErrorCode::kReceiptHandleIsInvalid, quoted};
  const Request request(std::in_place_type<DeleteMessageBatch>);
  const HttpAnswer answer = encode(BatchResult{{}, {{"id", error}}}, Action::kDeleteMessageBatch,
                                   request, Protocol::kQuery, kContext);
  EXPECT_LT(answer.body.size(), 4 * kErrorTextMax);
}

TEST(Encode, FaultsOfTheServerAreTheReceivers) {
  const Error error{ErrorCode::kServiceUnavailable, "later"};
  const HttpAnswer answer = encode_error(error, Protocol::kJson, kContext);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.query_error, "ServiceUnavailable;Receiver");
}

}  // namespace
}  // namespace stanchion::wire
