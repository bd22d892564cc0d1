// The cost of the codecs: one call decoded and its reply encoded, in both protocols, and one
// signature verified.
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <vector>

#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/sigv4.h"

namespace stanchion::wire {
namespace {

constexpr std::size_t kBodySize = 100;
const DecodeContext kCaller{"000000000000", "us-east-1"};
const ReplyContext kContext{"66916324-67ca-54bb-a410-3f567a7a0571", "http://localhost:9324"};

// The headers that a current SDK sends.
std::vector<HeaderView> json_headers(std::string_view target) {
  return {{"Host", "localhost:9324"},
          {"User-Agent", "Boto3/1.43.67 md/Botocore#1.43.67 ua/2.1 os/linux lang/python#3.12"},
          {"Accept-Encoding", "identity"},
          {"X-Amz-Date", "20260801T120000Z"},
          {"amz-sdk-invocation-id", "5b1bd3ff-24f2-4d49-a0b4-0f1b7d0a9d6e"},
          {"Content-Type", "application/x-amz-json-1.0"},
          {"X-Amz-Target", target},
          {"X-Amzn-Query-Mode", "true"},
          {"Content-Length", "200"}};
}

const std::vector<HeaderView> kFormHeaders{{"Host", "localhost:9324"},
                                           {"Content-Type", "application/x-www-form-urlencoded"}};

void round_trip(benchmark::State& state, const HttpCall& call, const Reply& reply) {
  for (auto _ : state) {
    const Protocol protocol = detect(call);
    const auto request = decode(call, protocol, kCaller);
    if (!request) return state.SkipWithError(request.error().message.c_str());
    benchmark::DoNotOptimize(encode(reply, action_of(*request), *request, protocol, kContext));
  }
}

Reply received(std::size_t count) {
  const std::string body(kBodySize, 'x'), handle(180, 'h');
  ReceiveMessageResult result;
  for (std::size_t i = 0; i < count; ++i) {
    ContentParts parts;
    parts.sent = from_millis(1'545'082'649'183);
    parts.body = body;
    parts.sender = "000000000000";
    result.messages.push_back({Content::make(parts), handle, 1, parts.sent, std::nullopt});
  }
  return result;
}

void SendMessageJson(benchmark::State& state) {
  const std::string body =
      R"({"QueueUrl":"http://localhost:9324/000000000000/orders","MessageBody":")" +
      std::string(kBodySize, 'x') + "\"}";
  const auto headers = json_headers("AmazonSQS.SendMessage");
  round_trip(state, {"POST", "/", headers, body}, SentMessage{});
}
BENCHMARK(SendMessageJson);

void SendMessageQuery(benchmark::State& state) {
  const std::string body =
      "Action=SendMessage&Version=2012-11-05&QueueUrl=http%3A%2F%2Flocalhost%3A9324%2F000000000000"
      "%2Forders&MessageBody=" +
      std::string(kBodySize, 'x');
  round_trip(state, {"POST", "/", kFormHeaders, body}, SentMessage{});
}
BENCHMARK(SendMessageQuery);

void SendMessageBatchOf10Json(benchmark::State& state) {
  std::string body = R"({"QueueUrl":"http://localhost:9324/000000000000/orders","Entries":[)";
  SendMessageBatchResult result;
  for (int i = 0; i < 10; ++i) {
    body += (i == 0 ? "" : ",") + std::string(R"({"Id":")") + std::to_string(i) +
            R"(","MessageBody":")" + std::string(kBodySize, 'x') + "\"}";
    result.successful.push_back({std::to_string(i), {}});
  }
  body += "]}";
  const auto headers = json_headers("AmazonSQS.SendMessageBatch");
  round_trip(state, {"POST", "/", headers, body}, result);
}
BENCHMARK(SendMessageBatchOf10Json);

constexpr std::string_view kReceiveJson =
    R"({"QueueUrl":"http://localhost:9324/000000000000/orders","MaxNumberOfMessages":10,)"
    R"("WaitTimeSeconds":20,"AttributeNames":["All"],"MessageAttributeNames":["All"]})";

void ReceiveMessageOf10Json(benchmark::State& state) {
  const auto headers = json_headers("AmazonSQS.ReceiveMessage");
  round_trip(state, {"POST", "/", headers, kReceiveJson}, received(10));
}
BENCHMARK(ReceiveMessageOf10Json);

void ReceiveMessageOf10Query(benchmark::State& state) {
  constexpr std::string_view kBody =
      "Action=ReceiveMessage&Version=2012-11-05&QueueUrl=http%3A%2F%2Flocalhost%3A9324%2F"
      "000000000000%2Forders&MaxNumberOfMessages=10&WaitTimeSeconds=20&AttributeName.1=All";
  round_trip(state, {"POST", "/", kFormHeaders, kBody}, received(10));
}
BENCHMARK(ReceiveMessageOf10Query);

void VerifySignature(benchmark::State& state) {
  const Instant now = from_millis(1'785'585'600'000);
  std::vector<HeaderView> headers = json_headers("AmazonSQS.ReceiveMessage");
  std::erase_if(headers, [](const HeaderView& h) { return h.first == "X-Amz-Date"; });
  HttpCall call{"POST", "/", headers, kReceiveJson};
  const OwnedHeaders added = sign(call, {"AKIAOURS", "secret", "", "us-east-1", "sqs"}, now);
  headers.insert(headers.end(), added.begin(), added.end());
  call.headers = headers;
  Verifier verifier([](std::string_view) { return AccessKey{"secret", std::nullopt, kNever}; });
  for (auto _ : state) {
    const auto signer = verifier.verify(call, {}, now);
    if (!signer) return state.SkipWithError(signer.error().message.c_str());
  }
}
BENCHMARK(VerifySignature);

}  // namespace
}  // namespace stanchion::wire

BENCHMARK_MAIN();
