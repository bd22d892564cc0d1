#include "journal/format.h"

#include <gtest/gtest.h>

namespace stanchion::journal {
namespace {

SegmentHeader example_header() {
  return {.shard = ShardIndex(2), .shard_count = 4, .first = Position(77), .salt = Salt(99)};
}

TEST(SegmentFormat, HeaderComesBack) {
  const std::string bytes = encode_segment_header(example_header());
  EXPECT_EQ(bytes.size(), kSegmentHeaderSize);
  EXPECT_EQ(decode_segment_header(bytes), example_header());
}

TEST(SegmentFormat, AnyFlippedBitOfAHeaderIsNoticed) {
  const std::string good = encode_segment_header(example_header());
  FrameBuilder frame;
  frame.add("record");
  const std::string good_frame(frame.stamp(Position(1), Salt(7)));
  for (std::size_t bit = 0; bit < kSegmentHeaderSize * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_segment_header(bad)) << bit;
  }
  for (std::size_t bit = 0; bit < kFrameHeaderSize * 8; ++bit) {
    std::string bad = good_frame;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_frame_header(bad, Salt(7))) << bit;
  }
}

TEST(SegmentFormat, FrameIsBoundToTheSaltOfItsSegment) {
  FrameBuilder frame;
  frame.add("one");
  frame.add("");
  const std::string bytes(frame.stamp(Position(5), Salt(1)));
  EXPECT_EQ(bytes.size(), frame_size(frame.payload_size()));
  const auto header = decode_frame_header(bytes, Salt(1));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->first, Position(5));
  EXPECT_EQ(header->next(), Position(7));
  const std::string_view payload =
      std::string_view(bytes).substr(kFrameHeaderSize, header->payload_size);
  EXPECT_TRUE(payload_matches(*header, payload, Salt(1)));
  EXPECT_FALSE(payload_matches(*header, payload, Salt(2)));
  EXPECT_FALSE(decode_frame_header(bytes, Salt(2)));
}

TEST(SegmentFormat, StampedBuilderTakesMoreRecordsAndIsStampedAgain) {
  FrameBuilder once;
  once.add("a");
  once.add("b");
  FrameBuilder twice;
  twice.add("a");
  twice.stamp(Position(1), Salt(1));
  twice.add("b");
  EXPECT_EQ(twice.stamp(Position(3), Salt(4)), once.stamp(Position(3), Salt(4)));
  twice.clear();
  EXPECT_TRUE(twice.empty());
}

TEST(SegmentFormat, NamesSortLikePositions) {
  EXPECT_EQ(segment_name(Position(42)), "00000000000000000042.segment");
  EXPECT_LT(segment_name(Position(9)), segment_name(Position(10)));
  EXPECT_EQ(parse_segment_name(segment_name(Position(~0ULL))), Position(~0ULL));
  for (const char* bad :
       {"", "42.segment", "0000000000000000004x.segment", "next", "00000000000000000000.segment",
        "99999999999999999999.segment", "00000000000000000042.segment2"})
    EXPECT_FALSE(parse_segment_name(bad)) << bad;
}

TEST(SegmentHeader, Version2HasTheIdOfItsDirectory) {
  const SegmentHeader header{.version = 2,
                             .shard = ShardIndex(1),
                             .shard_count = 2,
                             .directory = 0x11223344,
                             .first = Position(7),
                             .salt = Salt(9)};
  const std::string bytes = encode_segment_header(header);
  EXPECT_EQ(bytes.substr(8, 16),
            std::string_view("\x02\0\0\0\x01\0\0\0\x02\0\0\0\x44\x33\x22\x11", 16));
  EXPECT_EQ(decode_segment_header(bytes), header);
}

}  // namespace
}  // namespace stanchion::journal
