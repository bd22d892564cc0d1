// Looks at a journal without changing it: what each segment holds and precisely what is wrong. For
// `stanchion inspect`, `repair` and `backup`, and for a person whose journal was refused.
//
// A survey of a journal that a server is writing to is right about everything except its last
// frame.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "journal/format.h"
#include "journal/segment_log.h"
#include "journal/segment_scan.h"
#include "os/file.h"

namespace stanchion::journal {

struct SegmentReport {
  std::string name;
  std::uint64_t file_size = 0;
  std::optional<SegmentHeader> header;  // Absent: there is no readable header.
  Position first;                       // From the name, if there is no header.
  Position next;                        // After the last readable record.
  std::uint64_t frames = 0;
  std::uint64_t used = 0;  // Bytes of header and complete frames.
  Ending ending = Ending::kClean;
  std::string problem;               // Empty unless kDamaged.
  std::uint64_t problem_offset = 0;  // Where in the file.
  std::uint64_t torn_bytes = 0;      // What recovery would cut; 0 unless kTorn.
};

struct Survey {
  std::vector<SegmentReport> segments;  // Oldest first.
  // What is wrong between segments: missing positions, files of different shards, an end other than
  // the noted one.
  std::vector<std::string> problems;
  bool has_reserve = false;

  // Whether a server would open this journal.
  bool usable() const;

  // The positions of the first record that is kept, and of the one that comes next. They mean
  // something only if the journal is usable.
  Position first() const { return segments.empty() ? Position(1) : segments.front().first; }
  Position next() const { return segments.empty() ? Position(1) : segments.back().next; }
};

// Reads and verifies every byte. `visit`, if given, gets every record up to the first damage or
// gap, in order. If `shard` is given, segments of other shards are damage. Fails only if a file
// cannot be read, or if `visit` fails.
Result<Survey> survey(os::Directory& directory, const RecordVisitor& visit = {},
                      const std::optional<ShardOf>& shard = std::nullopt);

}  // namespace stanchion::journal
