#include "journal/segment_scan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace stanchion::journal {
namespace {

// Large enough that reading is limited by the disk, small enough for a server with many shards.
constexpr std::size_t kWindowSize = 256 << 10;

bool all_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Passes the records of one complete frame to the visitor. False if they do not fill the payload.
Result<bool> visit_records(const FrameHeader& header, std::string_view payload,
                           const RecordVisitor& visit) {
  ByteReader reader(payload);
  Position position = header.first;
  for (std::uint32_t i = 0; i < header.record_count; ++i, position = position.next()) {
    const std::string_view record = reader.text();
    if (!reader.ok() || record.size() > limits::kRecordSizeMax) return false;
    if (visit) RETURN_IF_FAILED(visit(position, record));
  }
  return reader.at_end();
}

std::string describe_tail(const Tail& tail) {
  if (tail.cut)
    return "the frame here reaches past the end of the file, so the file was cut: a crash leaves "
           "it as long as it was";
  if (tail.frame_found_at == 0)
    return "there is no whole frame here, and this is not the last segment";
  return "there is no whole frame here, but a later one begins at offset " +
         std::to_string(tail.frame_found_at) + ", so this is not the torn end of a crash";
}

// Whether what begins at `offset`, and is not only zeros, would need a longer file.
Result<bool> is_cut_off(SegmentReader& reader, std::uint64_t offset, Salt salt) {
  const std::uint64_t left = reader.file_size() - offset;
  if (left < frame_size(1)) return true;
  auto head = reader.view(offset, kFrameHeaderSize);
  if (!head) return std::unexpected(std::move(head).error());
  const auto frame = decode_frame_header(*head, salt);
  return frame && frame_size(frame->payload_size) > left;
}

// Reads on from scan.end, up to the first incomplete frame. A complete one that does not belong
// there is damage.
Status scan_frames(SegmentReader& reader, const SegmentHeader& header, const RecordVisitor& visit,
                   SegmentScan& scan) {
  const auto damaged = [&](std::string what) -> Status {
    scan.ending = Ending::kDamaged;
    scan.problem = std::move(what);
    return {};
  };
  while (true) {
    auto head = reader.view(scan.end, kFrameHeaderSize);
    if (!head) return std::unexpected(std::move(head).error());
    const auto frame =
        head->size() == kFrameHeaderSize ? decode_frame_header(*head, header.salt) : std::nullopt;
    if (!frame) return {};
    if (frame->first != scan.next)
      return damaged("the frame begins at position " + std::to_string(frame->first.value()) +
                     " instead of " + std::to_string(scan.next.value()));
    auto bytes = reader.view(scan.end, kFrameHeaderSize + frame->payload_size);
    if (!bytes) return std::unexpected(std::move(bytes).error());
    const std::string_view payload = bytes->substr(kFrameHeaderSize);
    if (!payload_matches(*frame, payload, header.salt)) return {};
    auto whole = visit_records(*frame, payload, visit);
    if (!whole) return std::unexpected(std::move(whole).error());
    if (!*whole) return damaged("the records do not fill their frame");
    scan.last_frame_at = scan.end;
    scan.end += frame_size(frame->payload_size);
    scan.next = frame->next();
    ++scan.frames;
  }
}

}  // namespace

Result<SegmentReader> SegmentReader::open(os::File& file) {
  auto size = file.size();
  if (!size) return std::unexpected(std::move(size).error());
  return SegmentReader(file, *size);
}

Result<std::string_view> SegmentReader::view(std::uint64_t offset, std::size_t size) {
  if (offset >= file_size_) return std::string_view();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file_size_ - offset));
  const bool inside = offset >= start_ && offset + size <= start_ + window_.size();
  if (!inside) {
    const std::uint64_t wanted = std::max(size, kWindowSize);
    window_.resize(static_cast<std::size_t>(std::min(wanted, file_size_ - offset)));
    auto got = file_->read_at(offset, window_);
    if (!got) return std::unexpected(std::move(got).error());
    if (*got < size) return fail(file_->path() + " became shorter while it was read");
    window_.resize(*got);
    start_ = offset;
  }
  return std::string_view(window_).substr(static_cast<std::size_t>(offset - start_), size);
}

Result<Tail> judge_tail(SegmentReader& reader, std::uint64_t offset, Salt salt, bool last_segment) {
  CHECK(offset % kFrameAlignment == 0, "frames are aligned");
  bool zeros = true;
  // Blocks overlap by less than a header, so that no header is missed where two of them meet.
  constexpr std::size_t kBlock = 4096;
  for (std::uint64_t at = offset; at < reader.file_size(); at += kBlock) {
    auto block = reader.view(at, kBlock + kFrameHeaderSize - kFrameAlignment);
    if (!block) return std::unexpected(std::move(block).error());
    if (all_zero(*block)) continue;
    zeros = false;
    for (std::size_t i = at == offset ? kFrameAlignment : 0;
         i < kBlock && i + kFrameHeaderSize <= block->size(); i += kFrameAlignment) {
      if (decode_frame_header(block->substr(i), salt)) return Tail{Ending::kDamaged, at + i};
    }
  }
  if (zeros) return Tail{Ending::kClean};
  if (!last_segment) return Tail{Ending::kDamaged};
  const auto cut = is_cut_off(reader, offset, salt);
  if (!cut) return std::unexpected(cut.error());
  return *cut ? Tail{.ending = Ending::kDamaged, .cut = true} : Tail{Ending::kTorn};
}

Result<SegmentScan> scan_segment(SegmentReader& reader, const SegmentHeader& header,
                                 bool last_segment, const RecordVisitor& visit) {
  SegmentScan scan;
  scan.next = header.first;
  std::uint64_t looked_again_at = 0;
  while (true) {
    RETURN_IF_FAILED(scan_frames(reader, header, visit, scan));
    if (scan.ending == Ending::kDamaged) return scan;
    auto tail = judge_tail(reader, scan.end, header.salt, last_segment);
    if (!tail) return std::unexpected(std::move(tail).error());
    // While a server writes, the frame found after the end may be newer than the bytes read at the
    // end. The frame at the end was written before it, so only what a second read shows is damage.
    if (tail->ending == Ending::kDamaged && looked_again_at != scan.end) {
      looked_again_at = scan.end;
      reader.forget();
      continue;
    }
    scan.ending = tail->ending;
    if (tail->ending == Ending::kDamaged) scan.problem = describe_tail(*tail);
    return scan;
  }
}

Result<SegmentOpening> open_segment(SegmentReader& reader, std::string_view name,
                                    bool last_segment) {
  SegmentOpening opening;
  if (reader.file_size() > kSegmentSizeMax) {
    opening.problem = "it has " + std::to_string(reader.file_size()) +
                      " bytes, and a segment has at most " + std::to_string(kSegmentSizeMax);
    return opening;
  }
  auto bytes = reader.view(0, kSegmentHeaderSize);
  if (!bytes) return std::unexpected(std::move(bytes).error());
  opening.header = decode_segment_header(*bytes);
  if (opening.header) {
    const SegmentHeader& header = *opening.header;
    if (header.version > kFormatVersion) {
      opening.problem = "it was written by a newer release (format " +
                        std::to_string(header.version) + ", this one reads up to " +
                        std::to_string(kFormatVersion) + ")";
    } else if (header.version == 0) {
      opening.problem = "its header has no format version";
    } else if (parse_segment_name(name) != header.first) {
      opening.problem = "its header says that it begins at position " +
                        std::to_string(header.first.value()) + ", its name says otherwise";
    }
    return opening;
  }
  // Without a header the salt is unknown, so frames cannot be recognised.
  for (std::uint64_t at = kSegmentHeaderSize; at < reader.file_size(); at += kWindowSize) {
    auto rest = reader.view(at, kWindowSize);
    if (!rest) return std::unexpected(std::move(rest).error());
    if (!all_zero(*rest)) opening.problem = "its header is damaged";
  }
  if (!last_segment) opening.problem = "its header is damaged";
  return opening;
}

std::string damage_message(const std::string& path, std::uint64_t offset, std::string_view what) {
  return "journal segment " + path + " cannot be used, at offset " + std::to_string(offset) + ": " +
         std::string(what) +
         ". Nothing was changed. Restore the file from a copy, or start the release that wrote it; "
         "'stanchion inspect' shows what is readable.";
}

}  // namespace stanchion::journal
