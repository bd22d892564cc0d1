// The bytes of a journal segment, for reader and writer alike. docs/formats.md has the grammar and
// a worked example; numbers are little-endian.
//
//   segment file "<first position, 20 digits>.segment"
//   ┌──────────────────────┬─────────┬─────────┬─────┬──────────────────────────┐
//   │ header, 48 bytes     │ frame   │ frame   │  …  │ zeros (not yet written)  │
//   └──────────────────────┴─────────┴─────────┴─────┴──────────────────────────┘
//
//   header   0 magic "STNJRNL1"   8 version u32      12 shard index u32   16 shard count u32
//           20 directory u32     24 first position   32 salt u64          40 checksum u64
//
//   frame    0 header checksum u64: XXH3-64 of bytes 8..31, seeded with the salt
//            8 payload checksum u64: XXH3-64 of the payload, seeded with the salt
//           16 position of the first record u64
//           24 payload size u32, at least 1
//           28 record count u32, at least 1
//           32 payload: per record its size as a varint and its bytes
//              zeros up to the next multiple of 8
//
// One frame is one group commit. Frames begin at multiples of 8, so that a search for them after
// damage need not look at every byte. The salt is random per segment and never leaves the file:
// bytes that a user sends cannot pass for a frame. The frame header has a checksum of its own, so
// that finding a frame takes 32 bytes and the size in it can be trusted before the payload is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strong.h"
#include "model/ids.h"
#include "model/limits.h"

namespace stanchion::journal {

inline constexpr std::string_view kSegmentMagic = "STNJRNL1";
// 1: without the id of the directory. 2: with it.
inline constexpr std::uint32_t kFormatVersion = 2;
inline constexpr std::size_t kSegmentHeaderSize = 48;
inline constexpr std::size_t kFrameHeaderSize = 32;
inline constexpr std::size_t kFrameAlignment = 8;

// A frame must fit in memory to be read, so a commit has a maximum size. It is large enough for one
// record of the largest size; if more than this is pending, the commit thread makes several
// commits.
inline constexpr std::size_t kPayloadSizeMax = 6 << 20;
inline constexpr std::size_t kRecordPrefixSizeMax = 5;
static_assert(limits::kRecordSizeMax + kRecordPrefixSizeMax <= kPayloadSizeMax);
static_assert(kSegmentHeaderSize % kFrameAlignment == 0 && kFrameHeaderSize % kFrameAlignment == 0);

// Far more than any release allocates. A larger file is refused before it is read.
inline constexpr std::uint64_t kSegmentSizeMax = 1 << 30;

// Seeds the checksums of one segment.
using Salt = Strong<struct SaltTag>;

struct SegmentHeader {
  std::uint32_t version = 1;
  ShardIndex shard{};
  std::uint32_t shard_count = 1;
  std::uint32_t directory = 0;  // 0 in version 1: not known.
  Position first{};
  Salt salt{};

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

struct FrameHeader {
  std::uint64_t payload_checksum = 0;
  Position first;
  std::uint32_t payload_size = 0;
  std::uint32_t record_count = 0;

  // Position of the record after the frame's last one.
  Position next() const { return Position(first.value() + record_count); }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// The bytes that a frame takes in the file, header and padding included.
constexpr std::uint64_t frame_size(std::uint64_t payload_size) {
  return (kFrameHeaderSize + payload_size + kFrameAlignment - 1) / kFrameAlignment *
         kFrameAlignment;
}
inline constexpr std::uint64_t kFrameSizeMax = frame_size(kPayloadSizeMax);

std::string encode_segment_header(const SegmentHeader& header);

// nullopt if the bytes are not a complete header: wrong magic or checksum. The layout of the header
// and its checksum stay the same in all future versions, so the header of a newer release is
// decoded, including its version.
std::optional<SegmentHeader> decode_segment_header(std::string_view bytes);

// nullopt if the bytes are not the header of a frame of the segment with that salt, or exceed a
// bound. `bytes` has at least kFrameHeaderSize bytes.
std::optional<FrameHeader> decode_frame_header(std::string_view bytes, Salt salt);

bool payload_matches(const FrameHeader& header, std::string_view payload, Salt salt);

// The frame of one commit, built in place: records are encoded once, and the buffer is written
// without a copy. Reused after clear(), which keeps the memory unless it is a lot.
class FrameBuilder {
 public:
  FrameBuilder() { clear(); }

  // REQUIRES: record.size() <= limits::kRecordSizeMax, and the record fits().
  void add(std::string_view record);

  bool fits(std::size_t record_size) const {
    return payload_size() + kRecordPrefixSizeMax + record_size <= kPayloadSizeMax;
  }
  std::size_t payload_size() const { return payload_size_; }
  std::uint32_t record_count() const { return record_count_; }
  bool empty() const { return record_count_ == 0; }

  // Fills in header and padding, and returns the frame_size(payload_size()) bytes to write. The
  // view is valid until the builder changes; the records stay, so a frame can be stamped again.
  // REQUIRES: !empty().
  std::string_view stamp(Position first, Salt salt);

  void clear();

 private:
  std::string bytes_;  // Frame header, payload, and, once stamped, the padding.
  std::size_t payload_size_ = 0;
  std::uint32_t record_count_ = 0;
};

// Segment file names: zero-padded, so that the order of names is the order of positions.
std::string segment_name(Position first);
std::optional<Position> parse_segment_name(std::string_view name);

}  // namespace stanchion::journal
