#include "journal/segment_space.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stanchion::journal {
namespace {

constexpr std::string_view kNextName = "next";
constexpr std::string_view kReserveName = "reserve";
constexpr std::string_view kAllocatingName = "allocating";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Result<SegmentSpace> SegmentSpace::open(os::Directory& directory, const SegmentOptions& options,
                                        const std::vector<std::string>& names, Instant now) {
  SegmentSpace space(directory, options);
  CHECK(std::min(options.segment_size, options.reserve_size) >= space.usable_size_min(),
        "a segment must hold the largest append");
  CHECK(std::max(options.segment_size, options.reserve_size) <= kSegmentSizeMax,
        "a segment must be readable");
  if (contains(names, kAllocatingName)) RETURN_IF_FAILED(directory.remove(kAllocatingName));
  for (const auto& [name, size] :
       {std::pair{kNextName, &space.next_size_}, std::pair{kReserveName, &space.reserve_size_}}) {
    if (!contains(names, name)) continue;
    auto adopted = space.adopt(name);
    if (!adopted) return std::unexpected(std::move(adopted).error());
    *size = *adopted;
  }
  RETURN_IF_FAILED(space.refill(now, true));
  return space;
}

// The size of a file that an earlier run left, or 0 after removing one that is too small, which a
// changed configuration may leave, or larger than a segment may be.
Result<std::uint64_t> SegmentSpace::adopt(std::string_view name) {
  auto file = directory_->open_file(name, os::OpenMode::kReadOnly);
  if (!file) return std::unexpected(std::move(file).error());
  auto size = (*file)->size();
  if (!size || (*size >= usable_size_min() && *size <= kSegmentSizeMax)) return size;
  RETURN_IF_FAILED(directory_->remove(name));
  return std::uint64_t{0};
}

// False if there is no space. The size is synced before the file gets its name (SS1).
Result<bool> SegmentSpace::allocate(std::string_view name, std::uint64_t size,
                                    std::uint64_t leave_free) {
  if (leave_free > 0) {
    const auto free = directory_->free_space();
    if (!free) return std::unexpected(free.error());
    if (*free < size + leave_free) return false;
  }
  auto file = directory_->open_file(kAllocatingName, os::OpenMode::kCreateNew);
  if (!file) {
    if (os::is_out_of_space(file.error())) return false;
    return std::unexpected(std::move(file).error());
  }
  Status allocated = (*file)->allocate(size);
  if (allocated) allocated = (*file)->sync_data();
  if (!allocated) {
    RETURN_IF_FAILED(directory_->remove(kAllocatingName));
    if (os::is_out_of_space(allocated.error())) return false;
    return std::unexpected(std::move(allocated).error());
  }
  RETURN_IF_FAILED(directory_->rename(kAllocatingName, name));
  return true;
}

Result<bool> SegmentSpace::provide_next() {
  if (has_next()) return true;
  auto allocated = allocate(kNextName, options_.segment_size, options_.leave_free);
  if (!allocated) return allocated;
  if (*allocated) {
    next_size_ = options_.segment_size;
    return true;
  }
  if (!has_reserve()) return false;
  RETURN_IF_FAILED(directory_->rename(kReserveName, kNextName));
  next_size_ = std::exchange(reserve_size_, 0);
  return true;
}

Status SegmentSpace::refill(Instant now, bool want_next) {
  const auto missing = [&] { return !has_reserve() || (want_next && !has_next()); };
  // A clock that was set back must not postpone the next try.
  const bool due = now >= retry_at_ || now < last_try_;
  if (!missing() || !due) return {};
  if (want_next) RETURN_IF_FAILED(provide_next());
  if (!has_reserve()) RETURN_IF_FAILED(provide_reserve());
  // The free space may have been enough for a reserve only; then the reserve has to serve as the
  // segment.
  if (want_next && !has_next() && has_reserve()) RETURN_IF_FAILED(provide_next());
  if (want_next && !has_next()) RETURN_IF_FAILED(provide_for_draining());
  last_try_ = now;
  retry_at_ = missing() ? now + kSpaceRetryInterval : Instant::min();
  return {};
}

Status SegmentSpace::provide_reserve() {
  // Half a reserve is better than none: after a restart on a full disk, the space that the last
  // segment freed may be all there is.
  for (const std::uint64_t size : {options_.reserve_size, options_.reserve_size / 2}) {
    if (size < usable_size_min()) continue;
    auto allocated = allocate(kReserveName, size, options_.leave_free);
    if (!allocated) return std::unexpected(std::move(allocated).error());
    if (*allocated) {
      reserve_size_ = size;
      break;
    }
  }
  return {};
}

// A drained message costs a hundred bytes of journal, and its space is freed only by the next
// checkpoint: without this a long drain would stop half-way.
Status SegmentSpace::provide_for_draining() {
  const std::uint64_t size = options_.reserve_size / 2;
  if (options_.leave_free == 0 || size < usable_size_min()) return {};
  auto allocated = allocate(kNextName, size, options_.leave_free / 2);
  if (!allocated) return std::unexpected(std::move(allocated).error());
  if (*allocated) next_size_ = size;
  return {};
}

Result<std::unique_ptr<os::File>> SegmentSpace::take_next(std::string_view name,
                                                          std::string_view header) {
  CHECK(has_next(), "there is no next segment");
  auto file = directory_->open_file(kNextName, os::OpenMode::kReadWrite);
  if (!file) return file;
  // The header is durable before the name is, so a segment that has its name can be read.
  RETURN_IF_FAILED((*file)->write_at(0, header));
  RETURN_IF_FAILED((*file)->sync_data());
  RETURN_IF_FAILED(directory_->rename(kNextName, name));
  RETURN_IF_FAILED(directory_->sync());
  next_size_ = 0;
  return directory_->open_file(name, os::OpenMode::kAppend);
}

}  // namespace stanchion::journal
