#include "wire/decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "wire/limits.h"
#include "wire/query_parameters.h"

namespace stanchion::wire {
namespace {

const DecodeContext kCaller{"000000000000", "eu-west-1"};

Answer<Request> decode_call(const HttpCall& call) {
  return decode(call, detect(call), kCaller);
}

Answer<Request> decode_json_body(std::string_view action, std::string_view body,
                                 std::vector<HeaderView> more = {}) {
  const std::string target = fmt::format("AmazonSQS.{}", action);
  std::vector<HeaderView> headers{{"content-type", "application/x-amz-json-1.0"},
                                  {"x-amz-target", target}};
  headers.insert(headers.end(), more.begin(), more.end());
  return decode_call({"POST", "/", headers, body});
}

Answer<Request> decode_form(std::string_view body, std::string_view target = "/") {
  const std::vector<HeaderView> headers{{"Content-Type", "application/x-www-form-urlencoded"}};
  return decode_call({"POST", target, headers, body});
}

template <class T>
T json_as(std::string_view body) {
  const auto action = static_cast<Action>(Request(std::in_place_type<T>).index());
  auto decoded = decode_json_body(name_of(action), body);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message) << "\n" << body;
  return decoded ? std::get<T>(*std::move(decoded)) : T{};
}

template <class T>
T form_as(std::string_view body, std::string_view target = "/") {
  auto decoded = decode_form(body, target);
  EXPECT_TRUE(decoded) << (decoded ? "" : decoded.error().message) << "\n" << body;
  return decoded ? std::get<T>(*std::move(decoded)) : T{};
}

std::string json_body_of(std::string_view literal) {
  const std::string body = fmt::format(R"({{"QueueUrl":"q","MessageBody":{}}})", literal);
  return json_as<SendMessage>(body).message.body.value_or("(none)");
}

std::string json_refusal(std::string_view body, std::string_view action = "SendMessage") {
  const auto decoded = decode_json_body(action, body);
  EXPECT_FALSE(decoded) << body;
  if (decoded) return {};
  EXPECT_EQ(decoded.error().code, ErrorCode::kMalformedInput) << body;
  return decoded.error().message;
}

TEST(Detect, TheContentTypeTellsTheProtocol) {
  const auto protocol_of = [](std::string_view type) {
    const std::vector<HeaderView> headers{{"CONTENT-TYPE", type}};
    return detect({"POST", "/", headers, ""});
  };
  EXPECT_EQ(protocol_of("application/x-amz-json-1.0"), Protocol::kJson);
  EXPECT_EQ(protocol_of("Application/X-AMZ-JSON-1.0; charset=utf-8"), Protocol::kJson);
  EXPECT_EQ(protocol_of("application/x-www-form-urlencoded"), Protocol::kQuery);
  EXPECT_EQ(protocol_of(""), Protocol::kQuery);
  EXPECT_EQ(detect({"GET", "/", {}, ""}), Protocol::kQuery);
}

TEST(JsonDecode, EscapesBecomeTheCharactersTheyStandFor) {
  EXPECT_EQ(json_body_of(R"("a\"\\\/\b\f\n\r\t")"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(json_body_of(R"("\u0041\u00e9\u20AC")"), "A\xC3\xA9\xE2\x82\xAC");
  EXPECT_EQ(json_body_of(R"("\ud83d\ude00!")"), "\xF0\x9F\x98\x80!");
  EXPECT_EQ(json_body_of(R"("x\u0000y")"), std::string("x\0y", 3));
  EXPECT_EQ(json_body_of("\"\xF0\x9F\x98\x80 plain\""), "\xF0\x9F\x98\x80 plain");
  EXPECT_EQ(json_body_of("\"\x7F\""), "\x7F");
  EXPECT_EQ(json_body_of(R"("")"), "");
}

TEST(JsonDecode, StringsOfEveryLengthEndWhereTheyEnd) {
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string plain(size, 'x');
    EXPECT_EQ(json_body_of(fmt::format("\"{}\"", plain)), plain);
    EXPECT_EQ(json_body_of(fmt::format("\"{}\\n{}\"", plain, plain)), plain + "\n" + plain);
    EXPECT_FALSE(decode_json_body("SendMessage", fmt::format("{{\"MessageBody\":\"{}", plain)));
  }
}

TEST(JsonDecode, MalformedTextIsRefused) {
  for (const std::string_view body : {"[",
                                      "[]",
                                      "1",
                                      "\"x\"",
                                      "nul",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":1",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{\"a\" 1}",
                                      "{a:1}",
                                      "{\"a\":01}",
                                      "{\"a\":-}",
                                      "{\"a\":1.}",
                                      "{\"a\":1e}",
                                      "{\"a\":tru}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":[1 2]}",
                                      "{\"a\":[}",
                                      "{\"a\":]}",
                                      "{} x",
                                      "{}{}",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12\"}",
                                      "{\"a\":\"\\u12G4\"}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":\"\\ud83d\"}",
                                      "{\"a\":\"\\ude00\"}",
                                      "{\"a\":\"\\ud83d\\u0041\"}",
                                      "{\"a\":\"\\ud83dx\"}",
                                      "{\"a\":\"\xFF\"}",
                                      "{\"a\":\"\xC0\x80\"}",
                                      "{\"a\":\"\xED\xA0\x80\"}",
                                      "{\"a\":\"\xF4\x90\x80\x80\"}",
                                      "{\"a\":\"\xE2\x82\"}",
                                      "{\"\xFF\":1}"})
    EXPECT_NE(json_refusal(body), "") << body;
}

TEST(JsonDecode, NestingHasALimit) {
  const auto nested = [](std::size_t depth) {
    return fmt::format(R"({{"QueueUrl":"q","x":{}{}}})", std::string(depth, '['),
                       std::string(depth, ']'));
  };
  EXPECT_TRUE(decode_json_body("SendMessage", nested(kJsonDepthMax - 1)));
  EXPECT_NE(json_refusal(nested(kJsonDepthMax)).find("nested too deeply"), std::string::npos);
  EXPECT_NE(json_refusal(nested(100'000)).find("nested too deeply"), std::string::npos);
}

TEST(JsonDecode, UnknownMembersAreIgnoredAndNullIsAbsence) {
  const auto send = json_as<SendMessage>(
      R"( { "Future" : {"a":[1,{"b":null}],"c":"d\"e"}, "QueueUrl":"q", "MessageBody":null,
            "DelaySeconds":null, "MessageAttributes":{"a":null}, "other":-1.5e+3 } )");
  EXPECT_EQ(send.queue.name, "q");
  EXPECT_FALSE(send.message.body);
  EXPECT_FALSE(send.message.delay_seconds);
  EXPECT_TRUE(send.message.attributes.empty());
}

TEST(JsonDecode, WrongTypesAreNamedAsAwsNamesThem) {
  EXPECT_EQ(json_refusal(R"({"DelaySeconds":"5"})"),
            "STRING_VALUE can not be converted to an Integer");
  EXPECT_EQ(json_refusal(R"({"DelaySeconds":true})"),
            "TRUE_VALUE can not be converted to an Integer");
  EXPECT_EQ(json_refusal(R"({"DelaySeconds":{}})"),
            "Start of structure or map found where not expected.");
  EXPECT_EQ(json_refusal(R"({"MessageBody":[]})"), "Start of list found where not expected");
  EXPECT_EQ(json_refusal(R"({"MessageBody":5})"), "NUMBER_VALUE can not be converted to a String");
  EXPECT_EQ(json_refusal(R"({"MessageAttributes":[]})"), "Start of list found where not expected");
  EXPECT_EQ(json_refusal(R"({"MessageAttributes":"x"})"),
            "STRING_VALUE can not be converted to a Map");
  EXPECT_EQ(json_refusal(R"({"Entries":"x"})", "SendMessageBatch"),
            "STRING_VALUE can not be converted to a List");
  EXPECT_EQ(json_refusal(R"({"Entries":["x"]})", "SendMessageBatch"),
            "STRING_VALUE can not be converted to a Structure");
  EXPECT_EQ(json_refusal(R"({"Attributes":{"VisibilityTimeout":30}})", "SetQueueAttributes"),
            "NUMBER_VALUE can not be converted to a String");
}

TEST(JsonDecode, WholeNumbersMayBeWrittenInAnyWay) {
  const auto delay = [](std::string_view number) {
    return json_as<SendMessage>(fmt::format(R"({{"QueueUrl":"q","DelaySeconds":{}}})", number))
        .message.delay_seconds;
  };
  EXPECT_EQ(delay("0"), 0);
  EXPECT_EQ(delay("-1"), -1);
  EXPECT_EQ(delay("5.0"), 5);
  EXPECT_EQ(delay("1e2"), 100);
  EXPECT_EQ(delay("9223372036854775807"), INT64_MAX);
  for (const char* number : {"0.5", "9223372036854775808", "1e300", "1e999"})
    EXPECT_EQ(json_refusal(fmt::format(R"({{"DelaySeconds":{}}})", number)),
              "NUMBER_VALUE can not be converted to an Integer");
}

TEST(JsonDecode, AMemberGivenTwiceIsRefused) {
  EXPECT_EQ(json_refusal(R"({"MessageBody":"a","MessageBody":"b"})"),
            "The member MessageBody is given more than once");
  EXPECT_EQ(json_refusal(R"({"MessageAttributes":{"a":{},"a":{}}})"),
            "The member a is given more than once");
  EXPECT_EQ(json_refusal(R"({"Attributes":{"a":"1","a":"2"}})", "SetQueueAttributes"),
            "The member a is given more than once");
}

TEST(JsonDecode, BinaryValuesAreBase64) {
  const auto send = json_as<SendMessage>(
      R"({"QueueUrl":"q","MessageAttributes":{"b":{"DataType":"Binary","BinaryValue":"AAH/"}}})");
  EXPECT_EQ(send.message.attributes.at(0).binary_value, std::string("\x00\x01\xFF", 3));
  EXPECT_EQ(json_refusal(R"({"MessageAttributes":{"b":{"BinaryValue":"AA=A"}}})"),
            "BinaryValue is not valid Base64");
}

TEST(JsonDecode, ListValuesAreNoticedUnlessEmpty) {
  const auto has_list = [](std::string_view list) {
    const auto send = json_as<SendMessage>(fmt::format(
        R"({{"QueueUrl":"q","MessageAttributes":{{"b":{{"StringListValues":{}}}}}}})", list));
    return send.message.attributes.at(0).has_list_value;
  };
  EXPECT_TRUE(has_list(R"(["x"])"));
  EXPECT_FALSE(has_list("[]"));
}

TEST(JsonDecode, ListsHaveALimit) {
  std::string entries = "{}";
  for (std::size_t i = 1; i < kElementsMax; ++i) entries += ",{}";
  const std::string most = fmt::format(R"({{"QueueUrl":"q","Entries":[{}]}})", entries);
  EXPECT_EQ(json_as<SendMessageBatch>(most).entries.size(), kElementsMax);
  const std::string more = fmt::format(R"({{"QueueUrl":"q","Entries":[{},{{}}]}})", entries);
  EXPECT_EQ(json_refusal(more, "SendMessageBatch"), "A list or map has more than 1000 elements");
}

TEST(JsonDecode, ListsWithinListsHaveALimitTogether) {
  const auto batch = [](std::size_t entries, std::size_t attributes) {
    std::string map = R"("0":{})";
    for (std::size_t i = 1; i < attributes; ++i) map += fmt::format(R"(,"{}":{{}})", i);
    const std::string entry = fmt::format(R"({{"MessageAttributes":{{{}}}}})", map);
    std::string list = entry;
    for (std::size_t i = 1; i < entries; ++i) list += "," + entry;
    return fmt::format(R"({{"QueueUrl":"q","Entries":[{}]}})", list);
  };
  // Ten times what SQS accepts is for the engine to refuse, which names what is wrong.
  EXPECT_EQ(json_as<SendMessageBatch>(batch(10, 100)).entries.size(), 10U);
  EXPECT_EQ(json_refusal(batch(20, 100), "SendMessageBatch"),
            "The lists and maps have more than 2000 elements together");
}

TEST(JsonDecode, AnEmptyBodyIsAnEmptyObject) {
  EXPECT_TRUE(decode_json_body("ListQueues", ""));
  const auto send = decode_json_body("SendMessage", "");
  EXPECT_EQ(send.error(), (Error{ErrorCode::kMissingParameter,
                                 "The request must contain the parameter QueueUrl."}));
}

TEST(JsonDecode, ABrokenTextIsReportedBeforeAnythingItSays) {
  EXPECT_NE(json_refusal(R"({"QueueUrl":"http://x/y","a":)"), "");
}

TEST(JsonDecode, ThePathDoesNotMatter) {
  const std::vector<HeaderView> headers{{"Content-Type", "application/x-amz-json-1.0"},
                                        {"X-Amz-Target", "AmazonSQS.PurgeQueue"}};
  const HttpCall call{"POST", "/111111111111/other", headers, R"({"QueueUrl":"q"})"};
  EXPECT_EQ(detect(call), Protocol::kJson);
  const auto decoded = decode_call(call);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(std::get<PurgeQueue>(*decoded).queue.name, "q");
}

TEST(QueueUrl, TheLastTwoSegmentsCountWhateverTheHost) {
  const auto parsed = [](std::string_view url) {
    const auto queue = parse_queue_url(url, kCaller);
    return queue ? fmt::format("{}/{}/{}", queue->account, queue->region, queue->name)
                 : queue.error().message;
  };
  EXPECT_EQ(parsed("http://localhost:9324/111111111111/q"), "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("https://sqs.us-east-1.amazonaws.com/111111111111/q.fifo"),
            "111111111111/eu-west-1/q.fifo");
  EXPECT_EQ(parsed("http://proxy/some/prefix/111111111111/q"), "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("/111111111111/q"), "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("http://h/111111111111/q?x=/a/b"), "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("q"), "000000000000/eu-west-1/q");
  // Older hosts and paths, of AWS and of other SQS servers.
  EXPECT_EQ(parsed("https://queue.amazonaws.com/111111111111/q"), "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("http://us-east-1.queue.localhost:9324/111111111111/q"),
            "111111111111/eu-west-1/q");
  EXPECT_EQ(parsed("http://localhost:9324/queue/q"), "000000000000/eu-west-1/q");
  EXPECT_EQ(parsed("/queue/q"), "000000000000/eu-west-1/q");
  EXPECT_EQ(parsed("http://localhost/queue/us-east-1/111111111111/q"), "111111111111/eu-west-1/q");
  for (const std::string_view bad :
       {"http://host/q", "http://host/111111111111/", "http://111111111111/q", "http://host/12/q",
        "http://host//q", "a/b"})
    EXPECT_EQ(parsed(bad), fmt::format("The address {} is not valid for this endpoint.", bad));
}

TEST(GetQueueUrlDecode, TheOwnerMayBeSomebodyElseAndTheNameMustBeGiven) {
  EXPECT_EQ(
      json_as<GetQueueUrl>(R"({"QueueOwnerAWSAccountId":"111111111111","QueueName":"q"})").queue,
      (QueueRef{"111111111111", "eu-west-1", "q"}));
  EXPECT_EQ(json_as<GetQueueUrl>(R"({"QueueName":"q"})").queue,
            (QueueRef{"000000000000", "eu-west-1", "q"}));
  for (const char* body : {"{}", R"({"QueueName":""})"})
    EXPECT_EQ(
        decode_json_body("GetQueueUrl", body).error(),
        (Error{ErrorCode::kInvalidParameterValue,
               "Value for parameter QueueName is invalid. Reason: Must specify a queue name."}));
}

TEST(QueryDecode, FormsAreDecodedWithPlusAsSpace) {
  const auto send = form_as<SendMessage>(
      "Action=SendMessage&QueueUrl=q&MessageBody=a+b%2Bc%26%3D%0D%0A%E2%82%AC%00");
  EXPECT_EQ(send.message.body, std::string("a b+c&=\r\n\xE2\x82\xAC\0", 13));
}

TEST(QueryDecode, BadEncodingsAreRefused) {
  for (const char* body :
       {"Action=SendMessage&a=%", "Action=SendMessage&a=%4", "Action=SendMessage&a=%zz",
        "Action=SendMessage&a=%FF", "Action=SendMessage&%FF=a"}) {
    const auto decoded = decode_form(body);
    ASSERT_FALSE(decoded) << body;
    EXPECT_EQ(decoded.error().code, ErrorCode::kMalformedInput) << body;
  }
}

TEST(QueryDecode, UrlAndBodyAreMergedAndTheBodyWins) {
  const auto send = form_as<SendMessage>("MessageBody=body&DelaySeconds=1&DelaySeconds=2",
                                         "/111111111111/q?Action=SendMessage&MessageBody=url");
  EXPECT_EQ(send.queue, (QueueRef{"111111111111", "eu-west-1", "q"}));
  EXPECT_EQ(send.message.body, "body");
  EXPECT_EQ(send.message.delay_seconds, 2);
}

TEST(QueryDecode, AnExplicitQueueUrlWinsOverThePath) {
  EXPECT_EQ(form_as<PurgeQueue>("Action=PurgeQueue&QueueUrl=q", "/111111111111/other").queue.name,
            "q");
  EXPECT_EQ(form_as<PurgeQueue>("Action=PurgeQueue", "/111111111111/a%2Dqueue").queue.name,
            "a-queue");
  const auto bad = decode_form("Action=PurgeQueue", "/just-one");
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidAddress);
}

TEST(QueueUrl, WithoutAnyQueueInItNoneExists) {
  for (const char* url : {"http://no-such-place", "http://no-such-place/", "", "/", "//",
                          "http://h?x", "https://h:1//#f"}) {
    const auto queue = parse_queue_url(url, kCaller);
    ASSERT_FALSE(queue) << url;
    EXPECT_EQ(queue.error(),
              (Error{ErrorCode::kQueueDoesNotExist, "The specified queue does not exist."}))
        << url;
  }
  for (const char* url : {"http://h/q", "http://h/12345/q", "/a/b", "http://h/000000000000/"})
    EXPECT_EQ(parse_queue_url(url, kCaller).error().code, ErrorCode::kInvalidAddress) << url;
}

TEST(Protocol, QueryIsAnsweredInJsonIfThatIsAskedFor) {
  const auto detected = [](std::string_view accept, std::string_view target = "/",
                           std::string_view body = "", std::string_view type = "") {
    const HeaderView headers[] = {{"Accept", accept}, {"Content-Type", type}};
    return detect({"POST", target, headers, body});
  };
  for (const char* accept :
       {"application/json", "Application/JSON", " application/json ;q=0.9", "application/json, */*",
        "text/plain, application/json", "application/json, text/xml"})
    EXPECT_EQ(detected(accept), Protocol::kQueryJson) << accept;
  for (const char* accept : {"", "*/*", "text/xml", "application/xml, application/json", "json",
                             "application/jsonx", "application/x-amz-json-1.0", ",;,"})
    EXPECT_EQ(detected(accept), Protocol::kQuery) << accept;
  EXPECT_EQ(detected("", "/?Action=ListQueues&ContentType=JSON"), Protocol::kQueryJson);
  EXPECT_EQ(detected("", "/?ContentType=JSON&Action=ListQueues"), Protocol::kQueryJson);
  EXPECT_EQ(detected("", "/", "Action=ListQueues&ContentType=JSON"), Protocol::kQueryJson);
  EXPECT_EQ(detected("", "/", "MyContentType=JSON&ContentType=JSONx"), Protocol::kQuery);
  EXPECT_EQ(detected("", "/", "MyContentType=JSON&ContentType=JSON"), Protocol::kQueryJson);
  EXPECT_EQ(detected("", "/", "ContentType=JSON", "text/plain"), Protocol::kQuery);
  EXPECT_EQ(detected("application/json", "/", "{}", "application/x-amz-json-1.0"), Protocol::kJson);
}

TEST(QueryDecode, ListsTolerateGapsOrderAndBareElements) {
  EXPECT_EQ(form_as<UntagQueue>("Action=UntagQueue&QueueUrl=q&TagKey.10=c&TagKey.2=b&TagKey.1=a")
                .tag_keys,
            (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(form_as<UntagQueue>("Action=UntagQueue&QueueUrl=q&TagKey=a").tag_keys,
            (std::vector<std::string>{"a"}));
  const auto set = form_as<SetQueueAttributes>(
      "Action=SetQueueAttributes&QueueUrl=q&Attribute.Name=X&Attribute.Value=Y"
      "&Attribute.7.Value=B&Attribute.7.Name=A");
  EXPECT_EQ(set.attributes, (StringMap{{"A", "B"}, {"X", "Y"}}));
}

TEST(QueryDecode, BothNamesOfSystemAttributesAreJoined) {
  EXPECT_EQ(form_as<ReceiveMessage>("Action=ReceiveMessage&QueueUrl=q&AttributeName.1=SenderId"
                                    "&MessageSystemAttributeName.1=SentTimestamp")
                .attribute_names,
            (std::vector<std::string>{"SenderId", "SentTimestamp"}));
}

TEST(QueryDecode, HalfAnEntryOfAMapIsMissingTheOther) {
  EXPECT_EQ(
      decode_form("Action=TagQueue&QueueUrl=q&Tag.3.Key=a").error(),
      (Error{ErrorCode::kMissingParameter, "The request must contain the parameter Tag.3.Value."}));
  EXPECT_EQ(
      decode_form("Action=SendMessage&QueueUrl=q&MessageAttribute.1.Value.DataType=String").error(),
      (Error{ErrorCode::kMissingParameter,
             "The request must contain the parameter MessageAttribute.1.Name."}));
}

TEST(QueryDecode, AttributesOfEntriesStandBelowThem) {
  const auto batch = form_as<SendMessageBatch>(
      "Action=SendMessageBatch&QueueUrl=q&SendMessageBatchRequestEntry.1.Id=a"
      "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=n"
      "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=Binary"
      "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryValue=AAE%3D"
      "&SendMessageBatchRequestEntry.1.MessageAttribute.2.Name=l"
      "&SendMessageBatchRequestEntry.1.MessageAttribute.2.Value.StringListValue.1=x");
  ASSERT_EQ(batch.entries.size(), 1U);
  const auto& attributes = batch.entries[0].message.attributes;
  ASSERT_EQ(attributes.size(), 2U);
  EXPECT_EQ(attributes[0].binary_value, std::string("\0\1", 2));
  EXPECT_TRUE(attributes[1].has_list_value);
}

TEST(QueryDecode, AnAttributeNamedTwiceIsRefused) {
  const auto decoded = decode_form(
      "Action=SendMessage&QueueUrl=q&MessageAttribute.1.Name=n&MessageAttribute.2.Name=n");
  EXPECT_EQ(decoded.error().code, ErrorCode::kInvalidParameterValue);
}

TEST(QueryDecode, NumbersAreWholeNumbersOrRefused) {
  EXPECT_EQ(
      form_as<SendMessage>("Action=SendMessage&QueueUrl=q&DelaySeconds=-5").message.delay_seconds,
      -5);
  for (const char* bad : {"", "5s", "+5", "1.5", "99999999999999999999", "%205"})
    EXPECT_FALSE(decode_form(fmt::format("Action=SendMessage&QueueUrl=q&DelaySeconds={}", bad)));
}

TEST(QueryDecode, ParametersHaveALimit) {
  std::string body = "Action=ListQueues";
  for (std::size_t i = 1; i < kQueryParametersMax; ++i) body += "&a=1";
  EXPECT_TRUE(decode_form(body));
  EXPECT_EQ(decode_form(body + "&a=1").error().code, ErrorCode::kMalformedInput);
  std::string keys = "Action=UntagQueue&QueueUrl=q";
  for (std::size_t i = 0; i <= kElementsMax; ++i) keys += fmt::format("&TagKey.{}=k", i + 1);
  EXPECT_EQ(decode_form(keys).error().code, ErrorCode::kMalformedInput);
}

TEST(QueryDecode, IndexesAreWrittenWithoutLeadingZeros) {
  // "TagKey.01" would be a second way to write an element that already exists.
  EXPECT_EQ(form_as<UntagQueue>("Action=UntagQueue&QueueUrl=q&TagKey.1=a&TagKey.01=b").tag_keys,
            (std::vector<std::string>{"a"}));
}

TEST(TraceHeader, BecomesASystemAttributeUnlessGiven) {
  const HeaderView trace{"X-Amzn-Trace-Id", "Root=1"};
  const auto trace_of = [&](std::string_view body) {
    const auto decoded = decode_json_body("SendMessage", body, {trace});
    const auto& list = std::get<SendMessage>(*decoded).message.system_attributes;
    return list.size() == 1 ? list[0].string_value.value_or("") : "";
  };
  EXPECT_EQ(trace_of(R"({"QueueUrl":"q"})"), "Root=1");
  EXPECT_EQ(trace_of(R"({"QueueUrl":"q","MessageSystemAttributes":
                         {"AWSTraceHeader":{"DataType":"String","StringValue":"mine"}}})"),
            "mine");
  const auto batch =
      decode_json_body("SendMessageBatch", R"({"QueueUrl":"q","Entries":[{},{}]})", {trace});
  for (const auto& entry : std::get<SendMessageBatch>(*batch).entries)
    EXPECT_EQ(entry.message.system_attributes.size(), 1U);
}

TEST(TraceHeader, WhatAMessageCannotCarryIsDropped) {
  const auto decoded =
      decode_json_body("SendMessage", R"({"QueueUrl":"q"})", {{"X-Amzn-Trace-Id", "\x01"}});
  EXPECT_TRUE(std::get<SendMessage>(*decoded).message.system_attributes.empty());
}

TEST(Decode, UnknownActionsAreInvalid) {
  EXPECT_EQ(decode_json_body("Fly", "{}").error(),
            (Error{ErrorCode::kInvalidAction, "The action Fly is not valid for this endpoint."}));
  EXPECT_EQ(decode_form("Action=Fly").error(),
            (Error{ErrorCode::kInvalidAction, "The action Fly is not valid for this endpoint."}));
  EXPECT_EQ(decode_call({"GET", "/", {}, ""}).error(), (Error{ErrorCode::kInvalidAction, ""}));
}

}  // namespace
}  // namespace stanchion::wire
