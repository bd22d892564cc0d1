// Calls of CloudWatch in its three protocols, and their answers.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "wire/cbor.h"
#include "wire/cloudwatch_decode.h"
#include "wire/cloudwatch_encode.h"
#include "wire/limits.h"
#include "wire/timestamp.h"

namespace stanchion::wire {
namespace {

using namespace std::string_literals;
using cloudwatch::GetMetricData;
using cloudwatch::GetMetricStatistics;

using Protocol3 = CloudwatchProtocol;

Answer<cloudwatch::Request> decode_body(Protocol3 protocol, const std::string& action,
                                        const std::string& body) {
  const std::string path = std::string(kCloudwatchPath) + action;
  const std::string target = std::string(kCloudwatchTarget) + action;
  const std::string url = "/?Action=" + action;
  const std::vector<HeaderView> headers{{"X-Amz-Target", target}};
  if (protocol == Protocol3::kJson)
    return decode_cloudwatch({"POST", "/", headers, body}, protocol);
  return decode_cloudwatch({"POST", protocol == Protocol3::kCbor ? path : url, {}, body}, protocol);
}

void expect_backlog(const Answer<cloudwatch::Request>& decoded) {
  ASSERT_TRUE(decoded) << decoded.error().message;
  const auto& request = std::get<GetMetricData>(*decoded);
  ASSERT_EQ(request.queries.size(), 2U);
  const auto& first = request.queries[0];
  EXPECT_EQ(first.id, "m1");
  EXPECT_EQ(first.return_data, false);
  ASSERT_TRUE(first.metric_stat && first.metric_stat->metric);
  EXPECT_EQ(first.metric_stat->metric->space, "AWS/SQS");
  EXPECT_EQ(first.metric_stat->metric->dimensions.at(0).value, "jobs");
  EXPECT_EQ(first.metric_stat->period, 60);
  EXPECT_EQ(request.queries[1].expression, "m1 / 4");
  EXPECT_FALSE(request.queries[1].metric_stat);
  EXPECT_EQ(request.start, from_millis(1'767'225'600'000));
  EXPECT_EQ(request.end, from_millis(1'767'229'200'500));
}

TEST(Cloudwatch, ThreeProtocolsSayTheSame) {
  expect_backlog(decode_body(
      Protocol3::kJson, "GetMetricData",
      R"({"MetricDataQueries":[{"Id":"m1","MetricStat":{"Metric":{"Namespace":"AWS/SQS",)"
      R"("MetricName":"n","Dimensions":[{"Name":"QueueName","Value":"jobs"}]},"Period":60.0,)"
      R"("Stat":"Sum"},"ReturnData":false,"New":[1]},{"Id":"e","Expression":"m1 / 4"}],)"
      R"("StartTime":1767225600,"EndTime":1767229200.5,"LabelOptions":{"Timezone":"+0000"}})"));
  expect_backlog(decode_body(
      Protocol3::kQuery, "GetMetricData",
      "MetricDataQueries.member.1.Id=m1&MetricDataQueries.member.1.MetricStat.Metric.Namespace="
      "AWS%2FSQS&MetricDataQueries.member.1.MetricStat.Metric.Dimensions.member.1.Value=jobs&"
      "MetricDataQueries.member.1.MetricStat.Period=60&MetricDataQueries.member.1.ReturnData=false&"
      "MetricDataQueries.member.2.Expression=m1+%2F+4&StartTime=2026-01-01T00%3A00%3A00Z&"
      "EndTime=2026-01-01T01%3A00%3A00.500Z"));
  std::string body;
  CborWriter writer(body);
  writer.open_map();
  writer.key("MetricDataQueries");
  writer.array(2);
  writer.open_map();
  writer.key("Id");
  writer.text("m1");
  writer.key("ReturnData");
  writer.boolean(false);
  writer.key("MetricStat");
  writer.open_map();
  writer.key("Metric");
  writer.open_map();
  writer.key("Namespace");
  writer.text("AWS/SQS");
  writer.key("Dimensions");
  writer.array(1);
  writer.open_map();
  writer.key("Value");
  writer.text("jobs");
  writer.close_map();
  writer.close_map();
  writer.key("Period");
  writer.real(60);
  writer.close_map();
  writer.close_map();
  writer.open_map();
  writer.key("Expression");
  writer.text("m1 / 4");
  writer.close_map();
  writer.key("StartTime");
  writer.timestamp(from_millis(1'767'225'600'000));
  writer.key("EndTime");
  writer.timestamp(from_millis(1'767'229'200'500));
  writer.close_map();
  expect_backlog(decode_body(Protocol3::kCbor, "GetMetricData", body));
}

TEST(Cloudwatch, WhatIsMeantForItIsRecognised) {
  const auto detect = [](std::string_view url, std::vector<HeaderView> headers,
                         std::string_view body) {
    const HttpCall call{"POST", url, headers, body};
    return detect_cloudwatch(
        url, [&](std::string_view name) { return call.header(name); }, body);
  };
  EXPECT_EQ(detect("/service/GraniteServiceVersion20100801/operation/ListMetrics", {}, ""),
            Protocol3::kCbor);
  EXPECT_EQ(detect("/", {{"X-Amz-Target", "GraniteServiceVersion20100801.ListMetrics"}}, "{}"),
            Protocol3::kJson);
  EXPECT_EQ(detect("/", {}, "Action=ListMetrics&Version=2010-08-01"), Protocol3::kQuery);
  EXPECT_EQ(detect("/?Action=ListMetrics&Version=2010-08-01", {}, ""), Protocol3::kQuery);
  EXPECT_EQ(detect("/",
                   {{"Authorization",
                     "AWS4-HMAC-SHA256 Credential=K/20260101/us-east-1/"
                     "monitoring/aws4_request, SignedHeaders=host"}},
                   "Action=ListMetrics"),
            Protocol3::kQuery);
  EXPECT_EQ(detect("/", {{"X-Amz-Target", "AmazonSQS.SendMessage"}}, "Version=2010-08-01"),
            std::nullopt);
  EXPECT_EQ(
      detect("/", {}, "Action=SendMessage&Version=2012-11-05&MessageBody=Version%3D2010-08-01"),
      std::nullopt);
  EXPECT_EQ(detect("/", {}, "Action=SendMessage&MyVersion=2010-08-01"), std::nullopt);
}

TEST(Cloudwatch, WrongInputIsRefused) {
  const auto code = [](Protocol3 protocol, const std::string& action, const std::string& body) {
    const auto decoded = decode_body(protocol, action, body);
    return decoded ? "" : std::string(info_of(decoded.error().code).query_code);
  };
  EXPECT_EQ(code(Protocol3::kJson, "PutMetricData", "{}"), "InvalidAction");
  EXPECT_EQ(code(Protocol3::kJson, "ListMetrics", "{"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kJson, "ListMetrics", "[]"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kJson, "ListMetrics", R"({"Namespace":1})"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kJson, "GetMetricData", R"({"StartTime":"x"})"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kJson, "GetMetricData", R"({"StartTime":-1})"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kJson, "GetMetricData", R"({"MaxDatapoints":1.5})"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kQuery, "GetMetricStatistics", "Period=x"), "InvalidParameterValue");
  EXPECT_EQ(code(Protocol3::kQuery, "GetMetricStatistics", "StartTime=x"), "InvalidParameterValue");
  EXPECT_EQ(code(Protocol3::kCbor, "ListMetrics", "\xA1"), "MalformedInput");
  EXPECT_EQ(code(Protocol3::kCbor, "ListMetrics", ""), "");
}

TEST(Cloudwatch, JsonOfManyValuesIsRefusedBeforeItTakesMemory) {
  const auto list_of = [](std::size_t values) {
    std::string body = R"({"New":[")";
    body += R"(,[{\\\",[{"], "Other":[)";
    for (std::size_t i = 1; i < values; ++i) body += "0,";
    return body + "0]}";
  };
  EXPECT_TRUE(decode_body(Protocol3::kJson, "ListMetrics", list_of(kCloudwatchValuesMax - 5)));
  const auto refused = decode_body(Protocol3::kJson, "ListMetrics", list_of(kCloudwatchValuesMax));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "There are more than 50000 values.");
}

TEST(Cbor, EveryFormOfAValueIsRead) {
  const auto read = [](const std::string& bytes) {
    const auto value = decode_cbor(bytes);
    return value ? boost::json::serialize(*value) : "refused";
  };
  EXPECT_EQ(read("\x18\x64"), "100");
  EXPECT_EQ(read("\x3A\x00\x00\x00\x09"s), "-10");
  EXPECT_EQ(read("\x1B\x00\x00\x00\x01\x00\x00\x00\x00"s), "4294967296");
  EXPECT_EQ(read("\xF9\x3E\x00"s), "1.5E0");
  EXPECT_EQ(read("\xFA\x47\xC3\x50\x00"s), "1E5");
  EXPECT_EQ(read("\xC1\x01"), "1") << "a tag stands for what it tags";
  EXPECT_EQ(read("\x7F\x61\x61\x62\x62\x63\xFF"), "\"abc\"");
  EXPECT_EQ(read("\x9F\x01\x02\xFF"), "[1,2]");
  EXPECT_EQ(read("\xBF\x61\x61\xF5\x61\x62\xF6\xFF"), R"({"a":true,"b":null})");
  EXPECT_EQ(read("\xF7"), "null");
}

TEST(Cbor, WhatIsNotCborIsRefused) {
  for (const std::string& bytes :
       {""s, "\x18"s, "\x61"s, "\x9F\x01"s, "\xA1\x01\x01"s, "\x01\x01"s, "\x1C"s, "\xFF"s,
        "\xF8\x20"s, "\xF9\x7C\x00"s, "\x61\xFF"s, "\xA2\x61\x61\x01\x61\x61\x02"s, "\x1F"s,
        "\x7F\x41\x61\xFF"s, "\x5B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s,
        "\x9B\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s, std::string(100, '\x81') + "\x01",
        std::string(200, '\xC1') + "\x01"})
    EXPECT_FALSE(decode_cbor(bytes)) << bytes.size();
  std::string many = "\x9F";
  many += std::string(60'000, '\x01') + "\xFF";
  EXPECT_FALSE(decode_cbor(many)) << "too many values";
}

TEST(Cloudwatch, AnswersInThreeProtocols) {
  cloudwatch::GetMetricDataResult result;
  result.results.push_back({"m1", "a <b>", {from_millis(1'767'225'600'000)}, {2.5}, true});
  result.results.push_back({"m2", "empty", {}, {}, false});
  result.next_token = "token";
  const auto body = [&](Protocol3 protocol) {
    return encode_cloudwatch(result, "GetMetricData", protocol, "id").body;
  };
  EXPECT_EQ(body(Protocol3::kJson),
            R"({"MetricDataResults":[{"Id":"m1","Label":"a <b>","Timestamps":[1767225600],)"
            R"("Values":[2.5],"StatusCode":"Complete"},{"Id":"m2","Label":"empty",)"
            R"("Timestamps":[],"Values":[],"StatusCode":"PartialData"}],"Messages":[],)"
            R"("NextToken":"token"})");
  EXPECT_EQ(body(Protocol3::kQuery),
            "<GetMetricDataResponse xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">"
            "<GetMetricDataResult><MetricDataResults><member><Id>m1</Id><Label>a &lt;b&gt;</Label>"
            "<Timestamps><member>2026-01-01T00:00:00Z</member></Timestamps><Values><member>2.5"
            "</member></Values><StatusCode>Complete</StatusCode></member><member><Id>m2</Id>"
            "<Label>empty</Label><Timestamps></Timestamps><Values></Values><StatusCode>PartialData"
            "</StatusCode></member></MetricDataResults><Messages></Messages><NextToken>token"
            "</NextToken></GetMetricDataResult><ResponseMetadata><RequestId>id</RequestId>"
            "</ResponseMetadata></GetMetricDataResponse>");
  const auto tree = decode_cbor(body(Protocol3::kCbor));
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(boost::json::serialize(*tree),
            R"({"MetricDataResults":[{"Id":"m1","Label":"a <b>","Timestamps":[1767225600],)"
            R"("Values":[2.5E0],"StatusCode":"Complete"},{"Id":"m2","Label":"empty",)"
            R"("Timestamps":[],"Values":[],"StatusCode":"PartialData"}],"Messages":[],)"
            R"("NextToken":"token"})");
}

TEST(Cloudwatch, ErrorsInThreeProtocols) {
  const Error error{ErrorCode::kInvalidNextToken, "no <such> token \xFF"};
  const auto json = encode_cloudwatch_error(error, Protocol3::kJson, "id");
  EXPECT_EQ(json.status, 400);
  EXPECT_EQ(json.query_error, "InvalidNextToken;Sender");
  EXPECT_EQ(
      json.body,
      R"({"__type":"com.amazonaws.cloudwatch#InvalidNextToken","message":"no <such> token ?"})");
  const auto xml = encode_cloudwatch_error(error, Protocol3::kQuery, "id");
  EXPECT_TRUE(xml.body.contains("<Code>InvalidNextToken</Code><Message>no &lt;such&gt; token ?"));
  EXPECT_TRUE(decode_cbor(encode_cloudwatch_error(error, Protocol3::kCbor, "id").body));
}

TEST(Timestamp, IsReadInEveryForm) {
  const Instant noon = from_millis(1'767'268'800'000);
  for (const std::string_view text :
       {"2026-01-01T12:00:00Z", "2026-01-01T12:00Z", "2026-01-01T12:00:00", "1767268800",
        "2026-01-01T13:00:00+01:00", "2026-01-01T07:00:00-0500", "2026-01-01 12:00:00.000Z",
        "1.7672688e9"})
    EXPECT_EQ(parse_date_time(text), noon) << text;
  EXPECT_EQ(parse_date_time("2026-01-01"), noon - std::chrono::hours(12));
  EXPECT_EQ(format_date_time(noon), "2026-01-01T12:00:00Z");
  for (const std::string_view text :
       {"", "x", "2026-13-01", "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z", "1969-12-31",
        "2026-01-01T12:00:00Zx", "-1", "1e300", "2026-01-01T12:00:00.Z"})
    EXPECT_EQ(parse_date_time(text), std::nullopt) << text;
}

}  // namespace
}  // namespace stanchion::wire
