// Any bytes as a claimed signature: the Authorization header, dates and tokens, one per line, and
// the query of a presigned URL on the last. None of them is ever accepted: nobody can sign without
// knowing the secret. And a signed call is no longer accepted when a byte is changed.
#include <algorithm>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "wire/sigv4.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::wire;

constexpr Instant kNow = from_millis(1'785'585'600'000);  // 2026-08-01T12:00:00Z.
constexpr std::array<std::string_view, 5> kHeaders{"Authorization", "X-Amz-Date", "Date",
                                                   "X-Amz-Security-Token", "X-Amz-Content-Sha256"};

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

bool is_believed(const HttpCall& call) {
  Verifier verifier([](std::string_view id) -> std::optional<AccessKey> {
    if (id != "AKIA") return std::nullopt;
    return AccessKey{"a secret that no input holds", std::nullopt, kNever};
  });
  return verifier.verify(call, {}, kNow).has_value();
}

void claim(std::string_view text) {
  std::vector<HeaderView> headers{{"Host", "h"}};
  for (const std::string_view name : kHeaders)
    if (const std::string_view line = take_line(text); !line.empty())
      headers.emplace_back(name, line);
  const std::string target = "/?" + std::string(text);
  CHECK(!is_believed({"POST", target, headers, "body"}), "a forged signature is not believed");
}

// Signs a call and changes one byte of one of the headers that the signature added.
void change_a_byte(std::string_view text) {
  if (text.size() < 3) return;
  const HeaderView host{"Host", "h"};
  HttpCall call{"POST", "/", {&host, 1}, text};
  OwnedHeaders added =
      sign(call, {"AKIA", "a secret that no input holds", "", "us-east-1", "sqs"}, kNow);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::string& value = added[byte(0) % added.size()].second;
  const std::size_t at = (byte(1) + 256u * (byte(2) % 4)) % value.size();
  std::vector<HeaderView> headers{host};
  headers.insert(headers.end(), added.begin(), added.end());
  call.headers = headers;
  CHECK(is_believed(call), "what was signed is believed");
  // White space around the parts of the header has no meaning, and names of headers are
  // case-insensitive: only significant bytes are changed.
  if (value[at] == ' ' || value[at] == ',') return;
  const char before = value[at];
  value[at] = before == '0' ? '1' : '0';
  std::copy(added.begin(), added.end(), headers.begin() + 1);
  CHECK(!is_believed(call), "what was changed is not believed");
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string scope = "AKIA/20260801/us-east-1/sqs/aws4_request";
  const std::string zeros(64, '0');
  return {
      "AWS4-HMAC-SHA256 Credential=" + scope + ", SignedHeaders=host;x-amz-date, Signature=" +
          zeros + "\n20260801T120000Z\n\ntoken\nUNSIGNED-PAYLOAD\n",
      "AWS4-HMAC-SHA256 Credential=" + scope + ",SignedHeaders=host,Signature=" + zeros +
          "\n\nSat, 01 Aug 2026 12:00:00 GMT\n\n\nAction=ListQueues",
      "\n\n\n\n\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2F20260801%2Fus-east-1%"
      "2Fsqs"
      "%2Faws4_request&X-Amz-Date=20260801T120000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host"
      "&X-Amz-Signature=" +
          zeros,
      "AWS4-HMAC-SHA256 Credential=a/b/c/d/e/f, SignedHeaders=;;, Signature=\n20260230T250000Z\n",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  stanchion::fuzz::claim(text);
  stanchion::fuzz::change_a_byte(text);
  return 0;
}
