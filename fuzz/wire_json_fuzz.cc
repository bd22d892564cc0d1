// Any bytes as the body of a JSON request. The reader must accept exactly what Boost.JSON accepts,
// and every action must decode or refuse it.
#include <boost/json.hpp>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/json_decode.h"
#include "wire/json_reader.h"
#include "wire/limits.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::wire;

void compare_with_boost(std::string_view text) {
  JsonReader reader(text);
  reader.skip_value();
  const bool taken = reader.finish();
  boost::json::parse_options options;
  options.max_depth = kJsonDepthMax;
  boost::json::error_code problem;
  boost::json::parse({text.data(), text.size()}, problem, {}, options);
  // Boost converts numbers to doubles; we only check their grammar here.
  if (problem == boost::json::error::exponent_overflow) return;
  CHECK(taken == !problem, taken ? problem.message() : reader.error());
}

void decode_as_every_action(std::string_view body) {
  const DecodeContext caller{"000000000000", "us-east-1"};
  for (std::size_t i = 0; i < kActionNames.size(); ++i) {
    const auto request = decode_json(static_cast<Action>(i), body, caller);
    if (request) {
      CHECK(request->index() == i, "an action decodes to its own request");
      continue;
    }
    for (const Protocol protocol : {Protocol::kJson, Protocol::kQuery})
      CHECK(is_utf8(encode_error(request.error(), protocol, {"id", "http://h"}).body),
            "errors are text");
  }
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      R"({"QueueUrl":"http://h/000000000000/q","MessageBody":"x\u20ac\ud83d\ude00",)"
      R"("DelaySeconds":5,)"
      R"("MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AAEC",)"
      R"("StringListValues":["x"]}}})",
      R"({"QueueUrl":"q","Entries":[{"Id":"1","MessageBody":"b","ReceiptHandle":"r",)"
      R"("VisibilityTimeout":1.0}]})",
      R"({"QueueName":"q","Attributes":{"a":"b"},"tags":{"k":"v"},"QueueOwnerAWSAccountId":"1"})",
      R"({"AttributeNames":["All"],"MaxNumberOfMessages":10,"x":[null,true,false,-1.5e+3,)"
      R"({"y":[]}]})",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stanchion::fuzz::compare_with_boost(text);
  stanchion::fuzz::decode_as_every_action(text);
  return 0;
}
