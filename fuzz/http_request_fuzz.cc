// Any bytes as what a connection sends: requests one after the other, whole and in pieces. However
// the bytes are split, they mean the same, and no limit is exceeded.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "net/request_parser.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::net;

constexpr ParserLimits kLimits{
    .header_bytes_max = 512, .header_count_max = 8, .body_bytes_max = 256};
constexpr std::size_t kRequestsMax = 64;

// What the parser made of one request.
struct Outcome {
  std::string method, target, body;
  std::vector<std::pair<std::string, std::string>> headers;
  bool keep_alive = false, expects_continue = false;
  int failure = 0;
  bool complete = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void check_limits(const HttpRequest& request) {
  CHECK(request.head.size() <= kLimits.header_bytes_max, "the head is within its limit");
  CHECK(request.headers.size() <= kLimits.header_count_max, "headers are within their number");
  CHECK(request.body.size() <= kLimits.body_bytes_max, "the body is within its limit");
  for (const HttpHeader& header : request.headers) {
    CHECK(!header.name.empty(), "a header has a name");
    CHECK(header.value.find_first_of("\r\n") == std::string_view::npos, "a value is one line");
  }
}

Outcome outcome_of(const RequestParser& parser, const HttpRequest& request) {
  check_limits(request);
  Outcome outcome;
  outcome.failure = parser.failure().status;
  // For an incomplete request, how far the parser came depends on the pieces.
  if (!parser.complete()) return outcome;
  outcome.complete = true;
  outcome.method = request.method;
  outcome.target = request.target;
  outcome.body = request.body;
  outcome.keep_alive = parser.keep_alive();
  outcome.expects_continue = parser.expects_continue();
  for (const HttpHeader& header : request.headers)
    outcome.headers.emplace_back(header.name, header.value);
  return outcome;
}

// Reads as a connection does: pieces of `piece` bytes; bytes not taken are passed again. Each piece
// has its own memory, so that a read past its end is found.
std::vector<Outcome> read_all(std::string_view input, std::size_t piece) {
  std::vector<Outcome> outcomes;
  RequestParser parser(kLimits);
  auto request = std::make_unique<HttpRequest>();
  parser.start(*request);
  std::string held;
  while (!input.empty()) {
    const std::size_t size = std::min(piece, input.size());
    held.append(input.substr(0, size));
    input.remove_prefix(size);
    while (!held.empty()) {
      const std::vector<char> exact(held.begin(), held.end());
      const std::size_t taken = parser.feed({exact.data(), exact.size()});
      CHECK(taken <= held.size(), "no more is taken than there is");
      held.erase(0, taken);
      if (parser.failed() || parser.complete()) {
        outcomes.push_back(outcome_of(parser, *request));
        if (parser.failed() || outcomes.size() == kRequestsMax) return outcomes;
        request = std::make_unique<HttpRequest>();
        parser.start(*request);
      } else if (taken == 0) {
        break;
      }
    }
  }
  return outcomes;
}

}  // namespace

std::vector<std::string> seeds() {
  return {
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
      "GET /?Action=ListQueues HTTP/1.1\r\nHost: h\r\n\r\n",
      "POST /1/q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nA: \t b \r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
      "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n",
  };
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto whole = stanchion::fuzz::read_all(input, std::max<std::size_t>(size, 1));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{61}}) {
    const auto pieces = stanchion::fuzz::read_all(input, piece);
    CHECK(pieces == whole, "bytes mean the same however they are cut");
  }
  return 0;
}
