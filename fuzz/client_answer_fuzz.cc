// Any bytes as what the client library reads: the answer to every action, an error's, credentials of
// an endpoint, a profile file. What is taken must be the same when it is written and read again.
#include "base/check.h"
#include "client/credential_chain.h"
#include "client/json.h"
#include "client/profile.h"
#include "client/retry.h"
#include "fuzz/fuzz.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::client;

template <class Request>
void read_result(std::string_view text) {
  const auto result = ResultJson::read<typename Request::Result>(text);
  CHECK(result || !result.error().message.empty(), "a refusal says why");
}

void read_every_result(std::string_view text) {
#define STANCHION_FUZZ_RESULT(name, ...) read_result<name##Request>(text);
  STANCHION_ACTIONS(STANCHION_FUZZ_RESULT)
#undef STANCHION_FUZZ_RESULT
}

// The only type that is both read and written: what was read can be written, and is the same then.
void read_and_write_attributes(std::string_view text) {
  const auto read = ResultJson::read<SendMessageRequest>(text);
  if (!read) return;
  const auto written = RequestJson::write(*read);
  CHECK(written, "text that was read is UTF-8");
  const auto again = ResultJson::read<SendMessageRequest>(*written);
  CHECK(again, "what was written can be read");
  CHECK(RequestJson::write(*again).value_or("") == *written, "a request is written as it was");
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      R"({"QueueUrl":"u","MessageBody":"b","MessageAttributes":{"a":{"DataType":"Binary",)"
      R"("BinaryValue":"AAEC"}},"DelaySeconds":5,"MessageGroupId":"g"})",
      R"({"Messages":[{"MessageId":"m","ReceiptHandle":"r","MD5OfBody":"x","Body":"b",)"
      R"("Attributes":{"SentTimestamp":"1"},"MessageAttributes":{"a":{"DataType":"String",)"
      R"("StringValue":"v"}}}]})",
      R"({"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"x"}],"Failed":[{"Id":"1",)"
      R"("Code":"c","SenderFault":true}]})",
      R"({"Results":[{"Status":"RUNNING","SourceArn":"a","ApproximateNumberOfMessagesMoved":1e2,)"
      R"("StartedTimestamp":-5}]})",
      R"({"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"m"})",
      R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"B","Token":"C",)"
      R"("Expiration":"2036-11-16T09:00:01Z"})",
      "[default]\nregion = r # c\n[services s]\nsqs =\n  endpoint_url = u\n[profile p]\n",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz::read_every_result(text);
  fuzz::read_and_write_attributes(text);
  const client::Error error = client::error_of(net::ClientResponse{500, {}, std::string(text)});
  CHECK(!error.code.empty(), "an error has a code");
  static_cast<void>(client::parse_credentials(text).ok());
  static_cast<void>(client::parse_ini(text).size());
  return 0;
}
