#include "net/chunked_body.h"

#include <gtest/gtest.h>

#include <vector>

namespace stanchion::net {
namespace {

using State = ChunkedBody::State;

constexpr std::size_t kBodyMax = 20;
constexpr std::size_t kLineMax = 16;

struct Read {
  State state;
  std::string body;
  std::size_t taken;

  friend bool operator==(const Read&, const Read&) = default;
};

// Reads in pieces of `piece` bytes; bytes not taken are passed again. Each piece has its own
// memory.
Read read(std::string_view input, std::size_t piece) {
  ChunkedBody chunks(kBodyMax, kLineMax);
  Read result{State::kMore, "", 0};
  std::size_t given = 0;
  while (chunks.state() == State::kMore && given < input.size()) {
    given = std::min(given + piece, input.size());
    const std::vector<char> bytes(input.begin() + static_cast<std::ptrdiff_t>(result.taken),
                                  input.begin() + static_cast<std::ptrdiff_t>(given));
    result.taken += chunks.feed({bytes.data(), bytes.size()}, result.body);
  }
  result.state = chunks.state();
  return result;
}

// The result is the same however the bytes are split.
Read read(std::string_view input) {
  const Read whole = read(input, input.size());
  for (std::size_t piece = 1; piece < input.size(); ++piece) {
    const Read pieces = read(input, piece);
    EXPECT_EQ(pieces.state, whole.state) << "in pieces of " << piece;
    if (whole.state == State::kDone) {
      EXPECT_EQ(pieces, whole) << "in pieces of " << piece;
    }
  }
  return whole;
}

TEST(ChunkedBody, ChunksAreJoinedAndWhatFollowsIsLeft) {
  EXPECT_EQ(read("5\r\nhello\r\n1\r\n \r\n005\r\nworld\r\n0\r\n\r\nGET"),
            (Read{State::kDone, "hello world", 33}));
  EXPECT_EQ(read("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n").state, State::kDone);
}

// The reader used before crashed the process on this body when it came in two pieces.
TEST(ChunkedBody, AnEmptyBodyMayComeInPieces) {
  EXPECT_EQ(read("0\r\n\r\n"), (Read{State::kDone, "", 5}));
  EXPECT_EQ(read("0\r\n").state, State::kMore);
  EXPECT_EQ(read("0\r\n\r").state, State::kMore);
}

TEST(ChunkedBody, ExtensionsAndTrailersAreReadOver) {
  EXPECT_EQ(read("1;a=\"b\"\r\nx\r\n0;c\r\nA: b\r\nC:\r\n\r\n"), (Read{State::kDone, "x", 29}));
}

TEST(ChunkedBody, WhatIsNotFramedAsItShouldIsRefused) {
  for (const std::string_view bad :
       {"\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "1\n", "1\rx", ";a\r\n",
        "1\r\nxy", "1\r\nx\n0", "1\r\nx\r0", "0\r\nno colon\r\n\r\n", "0\r\nA: b\n\n",
        "0\r\n A: b\r\n\r\n", "1;a\x01\r\n"})
    EXPECT_EQ(read(bad).state, State::kBad) << bad;
  EXPECT_EQ(read(std::string_view("1\0\r\n", 4)).state, State::kBad);
}

TEST(ChunkedBody, NoLimitIsPassed) {
  EXPECT_EQ(read("15\r\n").state, State::kTooLarge);
  EXPECT_EQ(read("a\r\n0123456789\r\nb\r\n").state, State::kTooLarge);
  EXPECT_EQ(read("ffffffffffffffff\r\n").state, State::kTooLarge);
  EXPECT_EQ(read("10000000000000000\r\n").state, State::kTooLong);  // 17 digits: beyond a line.
  EXPECT_EQ(read("1;" + std::string(kLineMax, 'x')).state, State::kTooLong);
  EXPECT_EQ(read("0\r\n" + std::string(kLineMax + 1, 'x')).state, State::kTooLong);
  EXPECT_EQ(read("0\r\nA: 345678\r\nB: 345678\r\n\r\n").state, State::kTooLong);
}

}  // namespace
}  // namespace stanchion::net
