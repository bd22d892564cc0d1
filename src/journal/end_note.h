// A note beside the segments that says how the journal ends, without being written at every commit:
// which segment is the last, how much space it has while it is in use, and where the records end
// while it is not. Without the note, nobody would notice that something is missing from the end.
//
//   end:  "running <first position of the last segment> <its size> <XXH3-64 of what is before it, 16
//         hex digits>\n", or
//         "stopped <first position of the last segment> <next position> <checksum>\n",
//         padded with spaces to 80 bytes, written in place; the size may be absent
//
//   open ─▶ stopped ─ next segment ─▶ running ─ seal ─▶ stopped ─ next segment ─▶ running ─ …
//
// Space is allocated before a segment is used, and frames never make it longer. So a segment in use
// that is shorter than noted was cut, wherever the cut is, and not torn by a crash.
//
//   N1  A segment is noted before any of its records is acknowledged, and after its name is
//       durable.
//   N2  "stopped" is durable before a segment is cut to the length of its frames and when close()
//       returns, and overwritten before the next append.
//   N3  The size is noted only while the segment has it, at least.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/ids.h"
#include "os/file.h"

namespace stanchion::journal {

inline constexpr std::string_view kEndNoteName = "end";

struct EndNote {
  Position last_segment{};         // 0: there was none yet.
  std::optional<Position> next{};  // Set: the segment is not in use; this comes next.
  std::uint64_t size = 0;          // Of the segment in use; 0: not known.

  friend bool operator==(const EndNote&, const EndNote&) = default;
};

// nullopt if there is no note, as in directories of earlier releases, or one that a crash tore.
Result<std::optional<EndNote>> read_end_note(os::Directory& directory);

// The content is durable on return; the name, if it is new, after the directory's sync().
Status write_end_note(os::Directory& directory, const EndNote& note);

// How a journal was found to end.
struct FoundEnd {
  Position last_segment{};  // 0: there is none.
  Position next{1};
  bool torn = false;       // After a frame of the last segment.
  std::uint64_t size = 0;  // Of the last segment.
};

// What is wrong with a journal in `path` that ends like this; empty if the note does not
// contradict.
std::string contradiction(const std::string& path, const EndNote& note, const FoundEnd& found);

}  // namespace stanchion::journal
