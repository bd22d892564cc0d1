#include "net/request_parser.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace stanchion::net {
namespace {

constexpr ParserLimits kLimits = {
    .header_bytes_max = 4096, .header_count_max = 20, .body_bytes_max = 10'000};

struct Outcome {
  int status = 0;  // 0: complete, -1: wants more.
  std::string method = {}, target = {}, headers = {}, body = {};
  std::size_t used = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// Feeds `input` in pieces of the sizes that `next_size` gives, as a connection does.
template <class NextSize>
Outcome parse(std::string_view input, NextSize next_size) {
  RequestParser parser(kLimits);
  HttpRequest request;
  parser.start(request);
  Outcome outcome;
  std::size_t visible = 0;
  while (!parser.complete() && !parser.failed() && visible < input.size()) {
    visible = std::min(input.size(), visible + next_size());
    std::size_t taken = 0;
    do {
      // A copy of exactly these bytes, so that a sanitizer sees a read beyond them.
      const std::string piece(input.substr(outcome.used, visible - outcome.used));
      taken = parser.feed(piece);
      outcome.used += taken;
    } while (taken > 0 && outcome.used < visible && !parser.complete() && !parser.failed());
  }
  outcome.status = parser.failed() ? parser.failure().status : parser.complete() ? 0 : -1;
  if (outcome.status != 0) return {.status = outcome.status};
  outcome.method = request.method;
  outcome.target = request.target;
  for (const HttpHeader& header : request.headers) {
    outcome.headers += std::string(header.name) + "=" + std::string(header.value) + ";";
  }
  outcome.body = request.body;
  return outcome;
}

Outcome parse_whole(std::string_view input) {
  return parse(input, [&] { return input.size(); });
}

const std::string kPost =
    "POST /q?x=1 HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nContent-Length: 5\r\n\r\nhello";
const std::string kChunked =
    "PUT /c HTTP/1.1\r\nhost: h\r\ntransfer-encoding: Chunked\r\n\r\n"
    "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: u\r\n\r\n";

TEST(RequestParser, TakesOneRequestAndLeavesTheNext) {
  const Outcome outcome = parse_whole(kPost + kPost);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.method, "POST");
  EXPECT_EQ(outcome.target, "/q?x=1");
  EXPECT_EQ(outcome.headers, "Host=h;X-Empty=;Content-Length=5;");
  EXPECT_EQ(outcome.body, "hello");
  EXPECT_EQ(outcome.used, kPost.size());
  const Outcome chunked = parse_whole(kChunked + "rest");
  EXPECT_EQ(chunked.body, "abc0123456789");
  EXPECT_EQ(chunked.headers, "host=h;transfer-encoding=Chunked;");
  EXPECT_EQ(chunked.used, kChunked.size());
}

TEST(RequestParser, AnyCutOfTheInputGivesTheSameRequest) {
  for (const std::string& input : {kPost, kChunked}) {
    const Outcome whole = parse_whole(input);
    ASSERT_EQ(whole.status, 0);
    for (std::size_t size = 1; size < input.size(); ++size) {
      EXPECT_EQ(parse(input, [&] { return size; }), whole) << size;
    }
  }
}

TEST(RequestParser, AnUnfinishedRequestWantsMore) {
  for (const std::string& input : {kPost, kChunked}) {
    for (std::size_t size = 0; size < input.size(); ++size) {
      EXPECT_EQ(parse_whole(input.substr(0, size)).status, -1) << size;
    }
  }
}

// Damaged requests, split at random: the split never changes whether a complete request is seen,
// and nothing is read beyond the given bytes.
TEST(RequestParser, DamageIsTakenOrRefusedAndNeverCrashes) {
  std::minstd_rand random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string input = round % 2 == 0 ? kPost : kChunked;
    for (unsigned changes = random() % 4 + 1; changes > 0; --changes) {
      const std::size_t at = random() % input.size();
      switch (random() % 3) {
        case 0:
          input[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          input.erase(at, random() % 4 + 1);
          break;
        default:
          input.insert(at, 1, "\r\n :;,0"[random() % 7]);
          break;
      }
      if (input.empty()) input = "x";
    }
    const Outcome whole = parse_whole(input);
    const Outcome pieces = parse(input, [&] { return random() % 9 + 1; });
    if (whole.status == 0 || pieces.status == 0) {
      EXPECT_EQ(whole, pieces) << input;
    }
  }
}

TEST(RequestParser, AnAbsoluteTargetIsReadAsTheOneThatItNames) {
  const auto target = [](std::string_view given) {
    return parse_whole("GET " + std::string(given) + " HTTP/1.1\r\nHost: h\r\n\r\n").target;
  };
  EXPECT_EQ(target("/a?b"), "/a?b");
  EXPECT_EQ(target("http://host:1/a?b=http://c/d"), "/a?b=http://c/d");
  EXPECT_EQ(target("HTTPS://host/"), "/");
  EXPECT_EQ(target("http://host?b"), "?b");
  EXPECT_EQ(target("http://host"), "");
  EXPECT_EQ(target("http:/a"), "http:/a");
  EXPECT_EQ(target("*"), "*");
}

TEST(RequestParser, WhatIsNotHttpIsRefusedAtItsFirstByte) {
  EXPECT_EQ(parse_whole("\x16").status, 400);  // TLS.
  EXPECT_EQ(parse_whole(std::string(1, '\0')).status, 400);
  EXPECT_EQ(parse_whole("{").status, 400);
  EXPECT_EQ(parse_whole("P").status, -1);
}

}  // namespace
}  // namespace stanchion::net
