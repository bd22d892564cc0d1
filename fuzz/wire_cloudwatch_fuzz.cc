// Any bytes as a call of CloudWatch, in each of its three protocols: it must be decoded or refused,
// and a CBOR value that was read must be the same when it is written and read again.
#include <boost/json.hpp>

#include "base/check.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "wire/cbor.h"
#include "wire/cloudwatch_decode.h"
#include "wire/cloudwatch_encode.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::wire;
using namespace std::literals;
namespace json = boost::json;

void write(CborWriter& writer, const json::value& value) {
  if (const auto* object = value.if_object()) {
    writer.open_map();
    for (const auto& [key, member] : *object) {
      writer.key({key.data(), key.size()});
      write(writer, member);
    }
    writer.close_map();
  } else if (const auto* array = value.if_array()) {
    writer.array(array->size());
    for (const json::value& element : *array) write(writer, element);
  } else if (const auto* text = value.if_string()) {
    writer.text({text->data(), text->size()});
  } else if (const auto* flag = value.if_bool()) {
    writer.boolean(*flag);
  } else {
    writer.real(value.is_number() ? value.to_number<double>() : 0.5);
  }
}

// Numbers and nulls are written as doubles, so the second time must give what the first did.
void write_again(std::string_view bytes) {
  const auto read = decode_cbor(bytes);
  if (!read) return;
  std::string once;
  CborWriter first(once);
  write(first, *read);
  const auto again = decode_cbor(once);
  CHECK(again, "what was written can be read");
  std::string twice;
  CborWriter second(twice);
  write(second, *again);
  CHECK(once == twice, "and means the same");
}

void decode_as_every_action(std::string_view body) {
  for (const std::string_view action : {"GetMetricData", "GetMetricStatistics", "ListMetrics"}) {
    const std::string path = std::string(kCloudwatchPath) + std::string(action);
    const std::string target = std::string(kCloudwatchTarget) + std::string(action);
    const std::string url = "/?Action=" + std::string(action);
    const HeaderView headers[]{{"X-Amz-Target", target}};
    const HttpCall calls[]{
        {"POST", url, {}, body}, {"POST", "/", headers, body}, {"POST", path, {}, body}};
    for (const auto protocol :
         {CloudwatchProtocol::kQuery, CloudwatchProtocol::kJson, CloudwatchProtocol::kCbor}) {
      const auto request = decode_cloudwatch(calls[static_cast<int>(protocol)], protocol);
      if (request) continue;
      const HttpAnswer answer = encode_cloudwatch_error(request.error(), protocol, "id");
      CHECK(protocol == CloudwatchProtocol::kCbor ? decode_cbor(answer.body).has_value()
                                                  : is_utf8(answer.body),
            "errors are readable");
    }
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      "Namespace=AWS%2FSQS&MetricName=NumberOfMessagesSent&Dimensions.member.1.Name=QueueName&"
      "Dimensions.member.1.Value=q&StartTime=2026-01-01T00:00:00Z&EndTime=2026-01-01T01:00:00Z&"
      "Period=60&Statistics.member.1=Sum",
      R"({"MetricDataQueries":[{"Id":"m1","MetricStat":{"Metric":{"Namespace":"AWS/SQS",)"
      R"("MetricName":"NumberOfMessagesSent","Dimensions":[{"Name":"QueueName","Value":"q"}]},)"
      R"("Period":60,"Stat":"Sum"},"ReturnData":false}],"StartTime":1767225600,"EndTime":1.8e9})",
      "\xA3\x69Namespace\x67"
      "AWS/SQS\x69StartTime\xC1\x1A\x69\x00\x00\x00\x66Period\xF9\x53\x80"s,
      "\xBF\x6AStatistics\x9F\x63Sum\x7F\x61M\x62in\xFF\xFF\x64Unit\xF6\xFF"s,
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  stanchion::fuzz::write_again(bytes);
  stanchion::fuzz::decode_as_every_action(bytes);
  return 0;
}
