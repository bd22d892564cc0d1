#include "journal/segment_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace stanchion::journal {
namespace {

// Up to this size of a commit, writing zeros ahead takes less time than it saves.
constexpr std::uint64_t kZerosPayUpTo = 32 << 10;

// Not const, so that it takes no space in the executable.
alignas(os::kBlockSize) constinit std::array<char, 128 << 10> kZeros{};

std::string describe(ShardOf shard) {
  return "shard " + std::to_string(shard.index.value()) + " of " + std::to_string(shard.count);
}

}  // namespace

std::string foreignness(const SegmentHeader& header, ShardOf shard) {
  const ShardOf found{header.shard, header.shard_count, header.directory};
  if (found.index != shard.index || found.count != shard.count)
    return "it belongs to " + describe(found) + ", this is " + describe(shard);
  if (found.directory != 0 && shard.directory != 0 && found.directory != shard.directory)
    return "it belongs to the data directory with the id " + std::to_string(found.directory) +
           ", this one has the id " + std::to_string(shard.directory);
  return "";
}

std::string missing_positions(const std::string& path, Position first, Position next,
                              Position from) {
  if (first <= from && from <= next) return "";
  return "the journal in " + path + " holds positions " + std::to_string(first.value()) +
         " up to, but not including, " + std::to_string(next.value()) + "; position " +
         std::to_string(from.value()) +
         " was asked for. Its segments are missing or belong to other data.";
}

Room room_for(const Capacity& capacity, std::uint64_t pending, std::uint64_t append_size_max) {
  // If the reserve is untouched, the disk is not full.
  if (capacity.guaranteed < pending + append_size_max)
    return capacity.has_reserve ? Room::kBusy : Room::kNone;
  return capacity.has_reserve ? Room::kPlenty : Room::kReserveOnly;
}

Result<std::unique_ptr<SegmentLog>> SegmentLog::open(os::Directory& directory, ShardOf shard,
                                                     const SegmentOptions& options,
                                                     os::Entropy& entropy, Instant now) {
  std::unique_ptr<SegmentLog> log(new SegmentLog(directory, shard, options, entropy));
  const auto note = read_end_note(directory);
  if (!note) return std::unexpected(note.error());
  auto names = directory.list();
  if (!names) return std::unexpected(std::move(names).error());
  RETURN_IF_FAILED(log->recover(*names, *note));
  // An earlier process may have died between renaming and syncing: a note must not outlive the
  // segment that it names. The note is written even if it can be read already: its sync may have
  // failed.
  RETURN_IF_FAILED(directory.sync());
  RETURN_IF_FAILED(log->note_end({.last_segment = log->last_segment(), .next = log->next_}));
  auto space = SegmentSpace::open(directory, options, *names, now);
  if (!space) return std::unexpected(std::move(space).error());
  log->space_.emplace(*space);
  RETURN_IF_FAILED(directory.sync());
  return log;
}

Status SegmentLog::found(os::Directory& directory, ShardOf shard, Position first,
                         os::Entropy& entropy) {
  CHECK(first >= Position(1) && shard.index.value() < shard.count, "no log begins there");
  auto names = directory.list();
  if (!names) return std::unexpected(std::move(names).error());
  for (const std::string& name : *names)
    if (parse_segment_name(name)) return fail("there is a journal in " + directory.path());
  const SegmentHeader header = shard.header(first, Salt(entropy.u64()));
  auto file = directory.open_file(segment_name(first), os::OpenMode::kCreateNew);
  if (!file) return std::unexpected(std::move(file).error());
  RETURN_IF_FAILED((*file)->write_at(0, encode_segment_header(header)));
  RETURN_IF_FAILED((*file)->sync_data());
  RETURN_IF_FAILED(write_end_note(directory, {.last_segment = first, .next = first}));
  return directory.sync();
}

// Reads the header of every segment and all of the last one. replay() verifies the others: reading
// them twice would double the time of a restart.
Status SegmentLog::recover(const std::vector<std::string>& names,
                           const std::optional<EndNote>& note) {
  for (const std::string& name : names)
    if (const auto first = parse_segment_name(name)) segments_.push_back({*first});
  CHECK(std::ranges::adjacent_find(segments_, std::ranges::greater_equal(), &Segment::first) ==
            segments_.end(),
        "a directory lists its files in order");
  if (segments_.empty()) return compare(note, false);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const bool last = i + 1 == segments_.size();
    auto file = directory_.open_file(segment_name(segment.first),
                                     last ? os::OpenMode::kReadWrite : os::OpenMode::kReadOnly);
    if (!file) return std::unexpected(std::move(file).error());
    auto reader = SegmentReader::open(**file);
    if (!reader) return std::unexpected(std::move(reader).error());
    segment.size = reader->file_size();
    auto opening = check_opening(*reader, **file, segment.first, last);
    if (!opening) return std::unexpected(std::move(opening).error());
    if (!last) continue;
    next_ = segment.first;
    if (!opening->header) return compare(note, false);
    RETURN_IF_FAILED(recover_last(**file, *reader, *opening->header, note));
  }
  return {};
}

// Checked before anything is changed: what the note says must be there.
Status SegmentLog::compare(const std::optional<EndNote>& note, bool torn) const {
  if (!note) return {};
  const std::string problem =
      contradiction(directory_.path(), *note,
                    {.last_segment = last_segment(),
                     .next = next_,
                     .torn = torn,
                     .size = segments_.empty() ? 0 : segments_.back().size});
  return problem.empty() ? Status() : fail(problem);
}

Result<SegmentOpening> SegmentLog::check_opening(SegmentReader& reader, const os::File& file,
                                                 Position first, bool last) const {
  auto opening = open_segment(reader, segment_name(first), last);
  if (!opening) return opening;
  if (opening->header && opening->problem.empty())
    opening->problem = foreignness(*opening->header, shard_);
  if (!opening->problem.empty()) return fail(damage_message(file.path(), 0, opening->problem));
  return opening;
}

// Cuts the torn tail and makes sure that the rest is on disk, not only in the kernel's memory: the
// process before may have died between write and sync, or a sync may have failed. Only the last
// frame can be in that state (SL2). Writing it once more marks its pages dirty again, so that the
// sync has an effect.
Status SegmentLog::recover_last(os::File& file, SegmentReader& reader, const SegmentHeader& header,
                                const std::optional<EndNote>& note) {
  auto scan = scan_segment(reader, header, true, {});
  if (!scan) return std::unexpected(std::move(scan).error());
  if (scan->ending == Ending::kDamaged)
    return fail(damage_message(file.path(), scan->end, scan->problem));
  next_ = scan->next;
  // Torn bytes in a segment without a frame were there when the journal was closed, too.
  RETURN_IF_FAILED(compare(note, scan->ending == Ending::kTorn && scan->frames > 0));
  // A segment without a frame is left as it is; the first append replaces it.
  if (scan->frames == 0) return {};
  if (scan->ending == Ending::kTorn)
    recovery_ = {.torn_bytes = reader.file_size() - scan->end, .torn_file = file.path()};
  auto frame =
      reader.view(scan->last_frame_at, static_cast<std::size_t>(scan->end - scan->last_frame_at));
  if (!frame) return std::unexpected(std::move(frame).error());
  RETURN_IF_FAILED(file.write_at(scan->last_frame_at, *frame));
  if (scan->end != reader.file_size()) {
    // N3: whatever the note says now, it must not say that the segment has this size.
    RETURN_IF_FAILED(directory_.sync());
    RETURN_IF_FAILED(note_end({.last_segment = last_segment()}));
    RETURN_IF_FAILED(file.truncate(scan->end));
  }
  RETURN_IF_FAILED(file.sync_data());
  segments_.back().size = scan->end;
  return {};
}

Status SegmentLog::replay(Position from, const RecordVisitor& visit) {
  CHECK(current_ == nullptr, "replay comes before the first append");
  if (std::string problem = missing_positions(directory_.path(), first_position(), next_, from);
      !problem.empty())
    return fail(std::move(problem));
  const RecordVisitor from_there = [&](Position position, std::string_view record) -> Status {
    return position < from ? Status() : visit(position, record);
  };
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Position end = i + 1 < segments_.size() ? segments_[i + 1].first : next_;
    if (end <= from) continue;
    auto scan = replay_segment(i, from_there);
    if (!scan) return std::unexpected(std::move(scan).error());
    if (scan->next != end)
      return fail(
          damage_message(directory_.path() + "/" + segment_name(segments_[i].first), scan->end,
                         "it ends before position " + std::to_string(scan->next.value()) +
                             ", but the next segment begins at " + std::to_string(end.value())));
  }
  return {};
}

Result<SegmentScan> SegmentLog::replay_segment(std::size_t index, const RecordVisitor& visit) {
  const bool last = index + 1 == segments_.size();
  auto file = directory_.open_file(segment_name(segments_[index].first), os::OpenMode::kReadOnly);
  if (!file) return std::unexpected(std::move(file).error());
  auto reader = SegmentReader::open(**file);
  if (!reader) return std::unexpected(std::move(reader).error());
  auto opening = check_opening(*reader, **file, segments_[index].first, last);
  if (!opening) return std::unexpected(std::move(opening).error());
  if (!opening->header) return SegmentScan{.next = segments_[index].first};
  auto scan = scan_segment(*reader, *opening->header, last, visit);
  if (scan && scan->ending == Ending::kDamaged)
    return fail(damage_message((*file)->path(), scan->end, scan->problem));
  return scan;
}

Result<Position> SegmentLog::append_batch(std::span<const std::string_view> records) {
  FrameBuilder frame;
  for (const std::string_view record : records) frame.add(record);
  return append_batch(frame);
}

Result<Position> SegmentLog::append_batch(FrameBuilder& frame) {
  if (failure_) return std::unexpected(*failure_);
  RETURN_IF_FAILED(remember(commit(frame)));
  return Position(next_.value() - 1);
}

Status SegmentLog::commit(FrameBuilder& frame) {
  const std::uint64_t size = frame_size(frame.payload_size());
  if (size > remaining()) RETURN_IF_FAILED(roll());
  if (size > remaining())
    return fail("the journal in " + directory_.path() + " has no space for a commit of " +
                std::to_string(size) + " bytes");
  CHECK(
      end_ >= kSegmentHeaderSize && end_ % kFrameAlignment == 0 && next_ >= segments_.back().first,
      "a frame is written behind the one before");
  RETURN_IF_FAILED(current_->write_at(end_, frame.stamp(next_, salt_)));
  RETURN_IF_FAILED(current_->sync_data());
  end_ += size;
  last_commit_size_ = size;
  next_ = Position(next_.value() + frame.record_count());
  return {};
}

// Switches to the next segment. The old one is sealed first, so that an unsealed segment is always
// the last one, whatever happens in between (SL3).
Status SegmentLog::roll() {
  if (current_ != nullptr) RETURN_IF_FAILED(seal());
  auto provided = space_->provide_next();
  if (!provided) return std::unexpected(std::move(provided).error());
  if (!*provided)
    return fail("the journal in " + directory_.path() + " has no space left, and no reserve");

  const std::uint64_t size = space_->next_size();
  const SegmentHeader header = shard_.header(next_, Salt(entropy_.u64()));
  auto taken = space_->take_next(segment_name(next_), encode_segment_header(header));
  if (!taken) return std::unexpected(std::move(taken).error());
  current_ = std::move(*taken);
  salt_ = header.salt;
  current_size_ = size;
  end_ = zeroed_ = kSegmentHeaderSize;
  // A segment without records that open() found has the same name and is replaced.
  if (!segments_.empty() && segments_.back().first == next_) segments_.pop_back();
  segments_.push_back({next_, size});
  return note_end({.last_segment = next_, .size = size});
}

// On a full disk it is better to have no note than an old one: without a note less loss is noticed,
// but a wrong note would refuse a good journal.
Status SegmentLog::note_end(const EndNote& note) {
  const Status noted = write_end_note(directory_, note);
  if (noted || !os::is_out_of_space(noted.error())) return noted;
  const Status removed = directory_.remove(kEndNoteName);
  if (!removed && removed.error().os_error != ENOENT) return removed;
  return directory_.sync();
}

// The note comes first: a segment that is shorter than the note says was cut by somebody else.
Status SegmentLog::seal() {
  RETURN_IF_FAILED(note_end({.last_segment = last_segment(), .next = next_}));
  RETURN_IF_FAILED(current_->truncate(end_));
  RETURN_IF_FAILED(current_->sync_data());
  segments_.back().size = end_;
  current_.reset();
  space_->expect_space();
  return {};
}

Status SegmentLog::prepare(Instant now) {
  if (failure_) return std::unexpected(*failure_);
  RETURN_IF_FAILED(remember(write_zeros_ahead()));
  // A segment made from half a reserve may be shorter than two appends; without the next segment
  // there would soon be no room, and then no append would ever bring us here again.
  const std::uint64_t enough = std::max(current_size_ / 2, 2 * options_.append_size_max);
  const bool want_next = current_ == nullptr || remaining() < enough;
  return remember(space_->refill(now, want_next));
}

// Half a stretch of zeros is kept ahead and the other half written at once, which makes these steps
// rare. They are synced here so that the next commit does not pay for it.
Status SegmentLog::write_zeros_ahead() {
  if (current_ == nullptr || last_commit_size_ > kZerosPayUpTo) return {};
  // Commits write whole blocks, so the block in which the frames end is already written.
  const std::uint64_t written = (end_ + os::kBlockSize - 1) / os::kBlockSize * os::kBlockSize;
  zeroed_ = std::min(std::max(zeroed_, written), current_size_);
  if (zeroed_ - end_ >= options_.zero_ahead / 2 || zeroed_ == current_size_) return {};
  const std::uint64_t until = std::min(zeroed_ + options_.zero_ahead / 2, current_size_);
  while (zeroed_ < until) {
    const std::uint64_t piece = std::min<std::uint64_t>(until - zeroed_, kZeros.size());
    RETURN_IF_FAILED(current_->write_at(zeroed_, {kZeros.data(), piece}));
    zeroed_ += piece;
  }
  return current_->sync_data();
}

Status SegmentLog::trim_before(Position position, Files& removed) {
  if (failure_) return std::unexpected(*failure_);
  // Oldest first: a crash in between leaves the newer ones, which are the ones that matter.
  while (segments_.size() > 1 && segments_[1].first <= position) {
    const std::string name = segment_name(segments_.front().first);
    auto file = directory_.open_file(name, os::OpenMode::kReadWrite);
    if (!file) return std::unexpected(std::move(file).error());
    RETURN_IF_FAILED(directory_.remove(name));
    removed.push_back(std::move(*file));
    segments_.erase(segments_.begin());
    space_->expect_space();
  }
  return {};
}

Status SegmentLog::close() {
  if (failure_) return std::unexpected(*failure_);
  // If no segment is in use, the note says "stopped" already.
  if (current_ != nullptr) RETURN_IF_FAILED(remember(seal()));
  failure_ = Failure{"the journal in " + directory_.path() + " is closed"};
  return {};
}

Capacity SegmentLog::capacity() const {
  const std::uint64_t in_next = space_->has_next() ? space_->next_size() - kSegmentHeaderSize : 0;
  // The larger of the two, not their sum: a frame that does not fit into the current segment goes
  // to the next one and leaves a gap.
  return {.guaranteed = std::max(remaining(), in_next), .has_reserve = space_->has_reserve()};
}

std::uint64_t SegmentLog::size_on_disk() const {
  std::uint64_t total = 0;
  for (const Segment& segment : segments_) total += segment.size;
  return total;
}

Status SegmentLog::remember(Status status) {
  if (!status) failure_ = status.error();
  return status;
}

}  // namespace stanchion::journal
