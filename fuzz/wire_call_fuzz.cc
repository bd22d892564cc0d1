// Any bytes as a whole call: "METHOD target", headers, an empty line, a body. The call is decoded
// in the protocol that it claims, its signature is verified, and it is signed and verified again.
#include <algorithm>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/sigv4.h"
#include "wire/sigv4_canonical.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::wire;

constexpr Instant kNow = from_millis(1'785'585'600'000);

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Parses `text` into a call, with its headers in `headers`.
HttpCall parse_call(std::string_view text, std::vector<HeaderView>& headers) {
  const std::string_view first = take_line(text);
  const std::size_t space = std::min(first.find(' '), first.size());
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(": "), line.size());
    headers.emplace_back(line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
  }
  return {first.substr(0, space), first.substr(std::min(space + 1, first.size())), headers, text};
}

void decode_and_answer(const HttpCall& call) {
  const ReplyContext context{"id", "http://h"};
  const Protocol protocol = detect(call);
  const auto request = decode(call, protocol, {"000000000000", "us-east-1"});
  if (!request)
    CHECK(is_utf8(encode_error(request.error(), protocol, context).body), "errors are text");
}

void verify(const HttpCall& call) {
  Verifier verifier([](std::string_view) { return AccessKey{"secret", std::nullopt, kNever}; });
  static_cast<void>(verifier.verify(call, {}, kNow));
}

// A signed call verifies, unless it was signed before or has no canonical form.
void sign_and_verify(HttpCall call, std::vector<HeaderView> headers) {
  for (const std::string_view name : {"Authorization", "Date", "X-Amz-Date", "X-Amz-Security-Token",
                                      "X-Amz-Content-Sha256", "Host"})
    std::erase_if(headers,
                  [&](const HeaderView& h) { return equals_ignoring_ascii_case(h.first, name); });
  // Names that cannot stand in a list of names cannot be signed; no HTTP parser lets them through.
  std::erase_if(headers, [](const HeaderView& h) {
    return h.first.empty() || h.first.find_first_of(";, =\t") != std::string_view::npos;
  });
  headers.resize(std::min<std::size_t>(headers.size(), 32));
  headers.emplace_back("Host", "localhost");
  call.headers = headers;
  if (!canonical_query(call.query()) || call.query().find('%') != std::string_view::npos) return;
  const OwnedHeaders added = sign(call, {"AKIA", "secret", "", "us-east-1", "sqs"}, kNow);
  headers.insert(headers.end(), added.begin(), added.end());
  call.headers = headers;
  Verifier verifier([](std::string_view) { return AccessKey{"secret", std::nullopt, kNever}; });
  const auto signer = verifier.verify(call, {}, kNow);
  const bool many_parameters = std::ranges::count(call.query(), '&') > 1'000;
  const bool is_text = is_utf8(call.query());
  CHECK(signer.has_value() || many_parameters || !is_text, signer.error().message);
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      "POST /\nContent-Type: application/x-amz-json-1.0\nX-Amz-Target: AmazonSQS.ListQueues\n\n{}",
      "POST /000000000000/q?Action=SendMessage&x=%20+\nX-Amzn-Trace-Id: Root=1\n"
      "Content-Type: application/x-www-form-urlencoded\n\n"
      "MessageBody=a+b&MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=String"
      "&MessageAttribute.1.Value.BinaryValue=AAE%3D&MessageAttribute.2.Value.StringListValue.1=x",
      "GET /?Action=CreateQueue&QueueName=q&Attribute.Name=A&Attribute.Value=B&Tag.2.Key=k"
      "&Tag.2.Value=v\n\n",
      "GET /?Action=ListQueues&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260801%2F"
      "us-east-1%2Fsqs%2Faws4_request&X-Amz-Date=20260801T120000Z&X-Amz-Expires=60"
      "&X-Amz-SignedHeaders=host&X-Amz-Signature=00\nHost: h\n\n",
      "POST /?ContentType=JSON\nAccept: text/plain;q=1, application/json\n"
      "Content-Type: application/x-www-form-urlencoded\n\n"
      "Action=Nonsense&ContentType=JSON&xContentType=JSONx",
      "POST /a/../b\nHost: h\nX-Amz-Date: 20260801T120000Z\nX-Amz-Security-Token: t\n"
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260801/us-east-1/sqs/aws4_request, "
      "SignedHeaders=host;x-amz-date, Signature=00\n\n",
      "POST /\nHost: h\nDate: Sat, 01 Aug 2026 12:00:00 GMT\nX-Amz-Content-Sha256: "
      "UNSIGNED-PAYLOAD\n"
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260801/us-east-1/sqs/aws4_request,"
      "SignedHeaders=host,Signature=00\n\n",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<stanchion::wire::HeaderView> headers;
  const auto call =
      stanchion::fuzz::parse_call({reinterpret_cast<const char*>(data), size}, headers);
  stanchion::fuzz::decode_and_answer(call);
  stanchion::fuzz::verify(call);
  stanchion::fuzz::sign_and_verify(call, headers);
  return 0;
}
