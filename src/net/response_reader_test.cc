#include "net/response_reader.h"

#include <gtest/gtest.h>

namespace stanchion::net {
namespace {

using State = ResponseReader::State;

constexpr std::string_view kPlain =
    "HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 5\r\n\r\nhello";

TEST(ResponseReader, AResponseInOnePieceIsNotCopied) {
  ResponseReader reader;
  ASSERT_EQ(reader.feed(kPlain), State::kDone);
  EXPECT_EQ(reader.status(), 200);
  EXPECT_EQ(reader.body(), "hello");
  EXPECT_EQ(reader.body().data(), kPlain.data() + kPlain.size() - 5);
  EXPECT_TRUE(reader.keep_alive());
}

TEST(ResponseReader, AResponseMayComeByteByByteAndTheNextOneAfterIt) {
  ResponseReader reader;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i + 1 < kPlain.size(); ++i)
      ASSERT_EQ(reader.feed(kPlain.substr(i, 1)), State::kMore) << i;
    ASSERT_EQ(reader.feed(kPlain.substr(kPlain.size() - 1)), State::kDone);
    EXPECT_EQ(reader.body(), "hello");
    reader.reset();
  }
}

TEST(ResponseReader, ChunksAreJoinedHoweverTheyArrive) {
  const std::string_view bytes =
      "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
  ResponseReader whole;
  ASSERT_EQ(whole.feed(bytes), State::kDone);
  EXPECT_EQ(whole.body(), "abcde");
  ResponseReader pieces;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i)
    ASSERT_EQ(pieces.feed(bytes.substr(i, 1)), State::kMore);
  ASSERT_EQ(pieces.feed(bytes.substr(bytes.size() - 1)), State::kDone);
  EXPECT_EQ(pieces.body(), "abcde");
  EXPECT_EQ(pieces.status(), 400);
  EXPECT_FALSE(pieces.keep_alive());
}

TEST(ResponseReader, AResponseWithoutALengthEndsWithTheConnection) {
  ResponseReader reader;
  ASSERT_EQ(reader.feed("HTTP/1.0 200 OK\r\n\r\nso far"), State::kMore);
  EXPECT_TRUE(reader.begun());
  ASSERT_EQ(reader.feed(" and on"), State::kMore);
  ASSERT_EQ(reader.end(), State::kDone);
  EXPECT_EQ(reader.body(), "so far and on");
  EXPECT_FALSE(reader.keep_alive());
}

TEST(ResponseReader, ACutResponseAndOtherBytesAreRefused) {
  for (const std::string_view bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"}) {
    ResponseReader reader;
    EXPECT_EQ(reader.feed(bytes), State::kFailed) << bytes;
  }
  ResponseReader cut;
  ASSERT_EQ(cut.feed(kPlain.substr(0, kPlain.size() - 1)), State::kMore);
  EXPECT_EQ(cut.end(), State::kFailed);
  ResponseReader endless;
  EXPECT_EQ(endless.feed("HTTP/1.1 200 " + std::string(ResponseLimits{}.head_bytes, 'x')),
            State::kFailed);
}

}  // namespace
}  // namespace stanchion::net
