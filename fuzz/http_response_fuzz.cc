// Any bytes as a server's answer, whole and in pieces: however they are split they mean the same,
// and no limit is exceeded.
#include <string>
#include <string_view>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "net/response_reader.h"

namespace stanchion::fuzz {
namespace {

using net::ResponseReader;
using State = ResponseReader::State;

constexpr net::ResponseLimits kLimits{.head_bytes = 512, .body_bytes = 1024};

struct Outcome {
  State state = State::kMore;
  int status = 0;
  std::string body = {};
  std::string headers = {};

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Each piece has its own memory, so that a read past its end is found.
Outcome read_all(std::string_view input, std::size_t piece) {
  ResponseReader reader(kLimits);
  State state = State::kMore;
  std::string part;
  while (state == State::kMore && !input.empty()) {
    part.assign(input.substr(0, piece));
    part.shrink_to_fit();
    input.remove_prefix(part.size());
    state = reader.feed(part);
  }
  if (state == State::kMore) state = reader.end();
  if (state != State::kDone) return {.state = state};
  CHECK(reader.body().size() <= kLimits.body_bytes, "the body is within its limit");
  CHECK(reader.header_lines().size() <= kLimits.head_bytes + 2, "the head is within its limit");
  CHECK(reader.status() >= 200 && reader.status() <= 999, "an interim answer is none");
  return {state, reader.status(), std::string(reader.body()), std::string(reader.header_lines())};
}

}  // namespace

std::vector<std::string> seeds() {
  return {"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\n\r\nhello",
          "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n"
          "2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
          "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nuntil the end",
          "HTTP/1.1 204 No Content\r\n\r\n"};
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion::fuzz;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Outcome whole = read_all(input, size + 1);
  for (const std::size_t piece : {1, 2, 7, 100})
    CHECK(read_all(input, piece) == whole, "it does not matter how an answer is cut");
  return 0;
}
