#include "journal/format.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/text.h"

namespace stanchion::journal {
namespace {

constexpr std::size_t kSegmentChecksumOffset = 40;
constexpr std::size_t kHeaderChecksumSize = 8;
constexpr std::string_view kSegmentSuffix = ".segment";
constexpr std::size_t kPositionDigits = 20;
constexpr std::size_t kKeptCapacityMax = 1 << 20;

}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  std::string out;
  ByteWriter writer(out);
  writer.raw(kSegmentMagic);
  writer.u32(header.version);
  writer.u32(header.shard.value());
  writer.u32(header.shard_count);
  writer.u32(header.directory);
  writer.u64(header.first.value());
  writer.u64(header.salt.value());
  CHECK(out.size() == kSegmentChecksumOffset, "header layout");
  writer.u64(xxh3_64(out));
  return out;
}

std::optional<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderSize) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.raw(kSegmentMagic.size()) != kSegmentMagic) return std::nullopt;
  SegmentHeader header;
  header.version = reader.u32();
  header.shard = ShardIndex(reader.u32());
  header.shard_count = reader.u32();
  header.directory = reader.u32();
  header.first = Position(reader.u64());
  header.salt = Salt(reader.u64());
  if (reader.u64() != xxh3_64(bytes.substr(0, kSegmentChecksumOffset))) return std::nullopt;
  return header;
}

std::optional<FrameHeader> decode_frame_header(std::string_view bytes, Salt salt) {
  CHECK(bytes.size() >= kFrameHeaderSize, "the caller reads whole headers");
  ByteReader reader(bytes);
  const std::uint64_t checksum = reader.u64();
  FrameHeader header;
  header.payload_checksum = reader.u64();
  header.first = Position(reader.u64());
  header.payload_size = reader.u32();
  header.record_count = reader.u32();
  // The bounds come first because they cost nothing and reject nearly everything that is not a
  // frame.
  const bool within_bounds = header.payload_size >= 1 && header.payload_size <= kPayloadSizeMax &&
                             header.record_count >= 1 &&
                             header.record_count <= header.payload_size &&
                             header.first.value() >= 1 && header.next() > header.first;
  if (!within_bounds) return std::nullopt;
  const std::string_view covered =
      bytes.substr(kHeaderChecksumSize, kFrameHeaderSize - kHeaderChecksumSize);
  if (checksum != xxh3_64(covered, salt.value())) return std::nullopt;
  return header;
}

bool payload_matches(const FrameHeader& header, std::string_view payload, Salt salt) {
  return payload.size() == header.payload_size &&
         xxh3_64(payload, salt.value()) == header.payload_checksum;
}

void FrameBuilder::add(std::string_view record) {
  CHECK(record.size() <= limits::kRecordSizeMax, "record too large");
  CHECK(fits(record.size()), "frame too large");
  bytes_.resize(kFrameHeaderSize + payload_size_);
  ByteWriter(bytes_).text(record);
  payload_size_ = bytes_.size() - kFrameHeaderSize;
  ++record_count_;
}

std::string_view FrameBuilder::stamp(Position first, Salt salt) {
  CHECK(!empty(), "a frame has at least one record");
  bytes_.resize(frame_size(payload_size_), '\0');
  const std::string_view payload = std::string_view(bytes_).substr(kFrameHeaderSize, payload_size_);
  std::string header;
  ByteWriter writer(header);
  writer.u64(xxh3_64(payload, salt.value()));
  writer.u64(first.value());
  writer.u32(static_cast<std::uint32_t>(payload.size()));
  writer.u32(record_count_);
  std::string checksum;
  ByteWriter(checksum).u64(xxh3_64(header, salt.value()));
  std::ranges::copy(checksum, bytes_.begin());
  std::ranges::copy(header, bytes_.begin() + kHeaderChecksumSize);
  return bytes_;
}

void FrameBuilder::clear() {
  if (bytes_.capacity() > kKeptCapacityMax) bytes_ = std::string();
  bytes_.assign(kFrameHeaderSize, '\0');
  payload_size_ = 0;
  record_count_ = 0;
}

std::string segment_name(Position first) {
  std::string digits = std::to_string(first.value());
  return std::string(kPositionDigits - digits.size(), '0') + digits + std::string(kSegmentSuffix);
}

std::optional<Position> parse_segment_name(std::string_view name) {
  if (name.size() != kPositionDigits + kSegmentSuffix.size() || !name.ends_with(kSegmentSuffix))
    return std::nullopt;
  const auto value = parse_decimal(name.substr(0, kPositionDigits));
  if (!value || *value == 0) return std::nullopt;
  return Position(*value);
}

}  // namespace stanchion::journal
