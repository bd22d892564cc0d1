// A journal in segment files: synchronous, without threads, on an os::Directory of its own.
//
//   append_batch ─▶ one frame ─▶ one write, one sync ─▶ durable
//                     └─ does not fit: seal the segment, go on in the next one
//   open         ─▶ verify the last segment, cut its torn tail; new frames go to a new segment
//   replay       ─▶ every frame from a position on, verified as it is read
//
// How bytes get to the disk: measured on ext4 (virtio disk), median of a 300 B / 16 KiB / 256 KiB
// commit into space that was zeroed before. Through the page cache and fdatasync: 67 / 68 / 213 µs,
// of which 23 / 23 / 79 µs are processor time. With O_DIRECT and fdatasync: 48 / 54 / 158 µs, of
// which 11 / 12 / 54 µs are. So commits bypass the cache where the file system allows it. In space
// that is only allocated, a sync also commits the file system's own journal, so prepare() writes
// zeros a little ahead, outside of the commit. Zeros cost about 0.8 µs per KiB, so they pay off
// only while commits are small; zeroing a whole segment at once would make one commit wait for all
// of it.
//
// Fail-stop: after a failed write or sync the log refuses every append with that failure. The write
// is never retried: the kernel may have dropped the bytes and would report success the second time.
//
// Used by one thread at a time. No one else uses the directory; the caller holds its lock.
//
//   SL1  Positions are dense: segment i+1 begins where segment i ends.
//   SL2  Frames are only ever appended, and frame N+1 is written after the sync of frame N
//        succeeded.
//   SL3  Only the last segment may be unsealed, and the last segment that open() found is never
//        written to again, except that its last frame is written once more with the same bytes.
//   SL4  The last segment is never removed, because it carries the position. It is noted
//        (end_note.h), so that its loss is noticed, and the loss of its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/end_note.h"
#include "journal/format.h"
#include "journal/segment_scan.h"
#include "journal/segment_space.h"
#include "os/entropy.h"
#include "os/file.h"

namespace stanchion::journal {

// Which part of the data a journal belongs to; written into every segment and compared on open.
struct ShardOf {
  ShardIndex index;
  std::uint32_t count = 1;
  std::uint32_t directory = 0;  // The data directory's id; 0: none, as in version 1 of the format.

  SegmentHeader header(Position first, Salt salt) const {
    return {.version = directory == 0 ? 1 : kFormatVersion,
            .shard = index,
            .shard_count = count,
            .directory = directory,
            .first = first,
            .salt = salt};
  }
};

// What is wrong with a segment for a journal of that shard; empty if nothing. A segment without an
// id was written by an earlier release and is accepted for any directory.
std::string foreignness(const SegmentHeader& header, ShardOf shard);

// What is wrong with a journal in `path` that holds the positions from `first` up to, but not
// including, `next`, for whoever needs those from `from` on; empty if nothing.
std::string missing_positions(const std::string& path, Position first, Position next,
                              Position from);

struct Capacity {
  std::uint64_t guaranteed = 0;  // Bytes of frames that are sure to find allocated space.
  bool has_reserve = false;
};

// The room left when `pending` bytes of frames are still to be appended. As long as appending is
// allowed, one more frame of `append_size_max` bytes is sure to fit.
Room room_for(const Capacity& capacity, std::uint64_t pending, std::uint64_t append_size_max);

class SegmentLog {
 public:
  // What open() did to the last segment, for the log and for tests.
  struct Recovery {
    std::uint64_t torn_bytes = 0;  // Length of the torn tail that was cut, padding included.
    std::string torn_file;
  };

  // Refuses, without changing anything, a journal that is damaged, newer than this release, or
  // another shard's. `directory` and `entropy` must outlive the log.
  static Result<std::unique_ptr<SegmentLog>> open(os::Directory& directory, ShardOf shard,
                                                  const SegmentOptions& options,
                                                  os::Entropy& entropy, Instant now);

  // Creates an empty log in `directory`, which must not have one, whose first record gets the
  // position `first`; durable on return. For data whose earlier records are in a checkpoint: a
  // directory without any segment would be mistaken for a log that begins at 1.
  static Status found(os::Directory& directory, ShardOf shard, Position first,
                      os::Entropy& entropy);

  // Passes all records from `from` on to `visit`, in order. REQUIRES: no append yet. Fails if
  // `from` is before the first record that is kept or after next_position(), because then the
  // journal does not belong to the caller's checkpoint.
  Status replay(Position from, const RecordVisitor& visit);

  // Makes the records of `frame` durable and returns the position of the last one. The first
  // gets next_position().
  Result<Position> append_batch(FrameBuilder& frame);
  Result<Position> append_batch(std::span<const std::string_view> records);

  // Does one small piece of work that commits would otherwise wait for: zeros ahead, the next
  // segment, the reserve. Call it after commits, and every kSpaceRetryInterval while room() is not
  // kPlenty. A full disk is not a failure.
  Status prepare(Instant now);

  // Removes segments whose records are all before `position`. Their space is freed when the files
  // added to `removed` are closed, which may take as long as many commits.
  using Files = std::vector<std::unique_ptr<os::File>>;
  Status trim_before(Position position, Files& removed);

  // Seals the segment in use, which notes where the journal ends. No appends after it.
  Status close();

  Position first_position() const { return segments_.empty() ? next_ : segments_.front().first; }
  Position next_position() const { return next_; }
  Capacity capacity() const;
  Room room(std::uint64_t pending = 0) const {
    return room_for(capacity(), pending, options_.append_size_max);
  }
  const SegmentOptions& options() const { return options_; }
  const Recovery& recovery() const { return recovery_; }
  const std::optional<Failure>& failure() const { return failure_; }
  // Bytes of all segments, including the allocated rest of the one in use.
  std::uint64_t size_on_disk() const;

 private:
  struct Segment {
    Position first;
    std::uint64_t size = 0;
  };

  SegmentLog(os::Directory& directory, ShardOf shard, const SegmentOptions& options,
             os::Entropy& entropy)
      : directory_(directory), shard_(shard), options_(options), entropy_(entropy) {}

  Status recover(const std::vector<std::string>& names, const std::optional<EndNote>& note);
  Status recover_last(os::File& file, SegmentReader& reader, const SegmentHeader& header,
                      const std::optional<EndNote>& note);
  Status compare(const std::optional<EndNote>& note, bool torn) const;
  Status note_end(const EndNote& note);
  Position last_segment() const { return segments_.empty() ? Position() : segments_.back().first; }
  Result<SegmentOpening> check_opening(SegmentReader& reader, const os::File& file, Position first,
                                       bool last) const;
  Result<SegmentScan> replay_segment(std::size_t index, const RecordVisitor& visit);

  Status commit(FrameBuilder& frame);
  Status roll();
  Status seal();
  Status write_zeros_ahead();
  Status remember(Status status);

  std::uint64_t remaining() const { return current_ == nullptr ? 0 : current_size_ - end_; }

  os::Directory& directory_;
  ShardOf shard_;
  SegmentOptions options_;
  os::Entropy& entropy_;
  std::optional<SegmentSpace> space_;

  std::vector<Segment> segments_;  // Oldest first; the last one is in use if current_ is set.
  Position next_{1};

  std::unique_ptr<os::File> current_;  // The segment in use; none between open and first append.
  Salt salt_;
  std::uint64_t current_size_ = 0;
  std::uint64_t end_ = 0;     // Where the next frame goes.
  std::uint64_t zeroed_ = 0;  // Up to here the segment has been written, by frames or zeros.
  std::uint64_t last_commit_size_ = 0;

  Recovery recovery_;
  std::optional<Failure> failure_;
};

}  // namespace stanchion::journal
