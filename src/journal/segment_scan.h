// Reading one segment file: its frames, and how they end.
//
// A segment that was in use when the machine stopped ends in zeros, or in a commit of which only a
// part reached the disk. Commit N+1 is written only after commit N was durable, so an incomplete
// frame can be such a torn commit only if it is the last thing in the last segment. And a frame is
// written only if it fits into the space that the file has already, so a torn commit leaves the file
// as long as it was: a frame that reaches past the end of the file was cut by something else.
// Everything else is damage: acknowledged records are gone, and a person must decide what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "os/file.h"

namespace stanchion::journal {

// A window that moves forward over a file: reads large pieces, hands out small views.
class SegmentReader {
 public:
  static Result<SegmentReader> open(os::File& file);

  std::uint64_t file_size() const { return file_size_; }

  // The bytes from `offset`, fewer than `size` only where the file ends. Valid until the next call.
  Result<std::string_view> view(std::uint64_t offset, std::size_t size);

  // The next view() reads the file again.
  void forget() { window_.clear(); }

 private:
  SegmentReader(os::File& file, std::uint64_t size) : file_(&file), file_size_(size) {}

  os::File* file_;
  std::uint64_t file_size_;
  std::uint64_t start_ = 0;  // Offset of window_'s first byte.
  std::string window_;
};

enum class Ending {
  kClean,    // The end of the file, or nothing but zeros.
  kTorn,     // A commit that was cut short by a crash and never acknowledged.
  kDamaged,  // Anything else.
};

struct Tail {
  Ending ending = Ending::kClean;
  std::uint64_t frame_found_at = 0;  // Where a later frame begins, if one proves the damage.
  bool cut = false;                  // The end of the file proves it: no frame has room there.
};

// The torn-tail decision. At `offset` there is no complete frame; what do the bytes from there to
// the end of the file mean? Any frame header of this segment after `offset` proves that a later
// commit had begun, hence that the one at `offset` had been durable. A frame at `offset` that has no
// room in the file proves that the file was longer.
Result<Tail> judge_tail(SegmentReader& reader, std::uint64_t offset, Salt salt, bool last_segment);

struct SegmentScan {
  std::uint64_t end = kSegmentHeaderSize;  // Offset after the last complete frame.
  Position next{};                         // Position after the last complete frame.
  std::uint64_t frames = 0;
  std::uint64_t last_frame_at = 0;  // Offset of the last complete frame, if there is one.
  Ending ending = Ending::kClean;
  std::string problem{};  // What is wrong at `end`, if kDamaged.
};

// Reads all frames after the header, verifying everything, up to the first incomplete one. `visit`
// may be empty. Fails if the file cannot be read or the visitor fails; damage is returned as a
// value.
Result<SegmentScan> scan_segment(SegmentReader& reader, const SegmentHeader& header,
                                 bool last_segment, const RecordVisitor& visit);

// What is known of a segment before its frames are read.
struct SegmentOpening {
  std::optional<SegmentHeader> header;  // Absent: its creation was interrupted; it is empty.
  std::string problem;                  // Not empty: why the segment must not be used.
};

// Reads and verifies the header of the segment called `name`. An incomplete header is accepted only
// in the last segment and if only zeros follow it. A file larger than kSegmentSizeMax is not read.
Result<SegmentOpening> open_segment(SegmentReader& reader, std::string_view name,
                                    bool last_segment);

// The refusal for a person to read: where, what, and what to do.
std::string damage_message(const std::string& path, std::uint64_t offset, std::string_view what);

}  // namespace stanchion::journal
