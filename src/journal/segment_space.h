// Disk space that a journal allocates ahead of its needs: the next segment, and a reserve.
//
//   files:  "next"        allocated, empty; becomes the next segment by being renamed
//           "reserve"     allocated, empty; becomes "next" when the disk has no space for one
//           "allocating"  under construction; left over only by a crash
//
//   disk has space ─▶ next and reserve exist            Room::kPlenty
//   disk is full   ─▶ reserve is renamed to next        what is left is for draining; when that is
//                     used up, small segments from half of the space that is otherwise left free
//   space is back  ─▶ a new reserve is allocated        Room::kPlenty again
//
// Renaming, rather than freeing and allocating again, means that nobody else can take the reserve
// in between. All files are created and fully allocated under "allocating" first, so a file called
// next or reserve is complete whatever happened.
//
// Owned by one SegmentLog and used by its thread.
//
//   SS1  A file called "next" or "reserve" holds no frames: only zeros, perhaps after an old
//        header.
//   SS2  has_reserve() is false only while the disk refuses to give space, or has no more than must
//        be left free.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "journal/format.h"
#include "os/file.h"

namespace stanchion::journal {

struct SegmentOptions {
  std::uint64_t segment_size = 64 << 20;
  std::uint64_t reserve_size = 16 << 20;
  // The largest frame that a caller may still append while room is reported.
  std::uint64_t append_size_max = frame_size(limits::kRecordSizeMax + kRecordPrefixSizeMax);
  // How far ahead of the frames zeros are written; 0 for not at all.
  std::uint64_t zero_ahead = 1 << 20;
  // Space that is left free on the disk: for the checkpoint by which a full disk is drained, and
  // half of it for the records of draining.
  std::uint64_t leave_free = 0;
};

// How often allocation is retried on a full disk.
inline constexpr Duration kSpaceRetryInterval = std::chrono::seconds(1);

class SegmentSpace {
 public:
  // Adopts the files that an earlier run left in `directory` (`names` are its files) and allocates
  // what is missing. A full disk is not a failure.
  static Result<SegmentSpace> open(os::Directory& directory, const SegmentOptions& options,
                                   const std::vector<std::string>& names, Instant now);

  bool has_next() const { return next_size_ > 0; }
  std::uint64_t next_size() const { return next_size_; }
  bool has_reserve() const { return reserve_size_ > 0; }

  // Makes sure that there is a next segment, using the reserve if need be. False: the disk is full
  // and the reserve is used up.
  Result<bool> provide_next();

  // Allocates what is missing: the reserve, and the next segment if it is wanted. After the disk
  // has refused, does nothing for kSpaceRetryInterval.
  Status refill(Instant now, bool want_next);

  // Space was freed: the next refill() tries at once.
  void expect_space() { retry_at_ = Instant::min(); }

  // Turns the next segment into `name`, beginning with `header`, durably, and opens it.
  // REQUIRES: has_next(). Replaces an existing file of that name.
  Result<std::unique_ptr<os::File>> take_next(std::string_view name, std::string_view header);

 private:
  SegmentSpace(os::Directory& directory, const SegmentOptions& options)
      : directory_(&directory), options_(options) {}

  Result<std::uint64_t> adopt(std::string_view name);
  Result<bool> allocate(std::string_view name, std::uint64_t size, std::uint64_t leave_free);
  Status provide_reserve();
  Status provide_for_draining();
  std::uint64_t usable_size_min() const { return kSegmentHeaderSize + options_.append_size_max; }

  os::Directory* directory_;
  SegmentOptions options_;
  std::uint64_t next_size_ = 0;     // 0: there is none.
  std::uint64_t reserve_size_ = 0;  // 0: there is none.
  Instant last_try_ = Instant::min();
  Instant retry_at_ = Instant::min();  // Not before this, unless the clock was set back.
};

}  // namespace stanchion::journal
