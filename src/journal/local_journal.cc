#include "journal/local_journal.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace stanchion::journal {
namespace {

constexpr std::size_t kSpareBuildersMax = 2;

// A disk that is told to free space may do nothing else until it has done so: with 64 MiB at once,
// a commit was seen to wait for 20 ms.
constexpr std::uint64_t kFreedAtOnce = 1 << 20;

// Nothing depends on this call: space that is not freed here is freed when the file is closed.
void free_in_steps(os::File& file) {
  auto size = file.size();
  while (size && *size > kFreedAtOnce) {
    *size -= kFreedAtOnce;
    if (!file.truncate(*size)) return;
  }
}

}  // namespace

Result<std::unique_ptr<LocalJournal>> LocalJournal::open(os::Directory& directory, ShardOf shard,
                                                         const SegmentOptions& options,
                                                         os::Entropy& entropy, os::Clock& clock) {
  // Half a reserve must hold a full frame too; see SegmentSpace.
  constexpr std::uint64_t kSizeMin = 2 * (kSegmentHeaderSize + kFrameSizeMax);
  if (options.segment_size < kSizeMin || options.reserve_size < kSizeMin)
    return fail("journal segments and their reserve must have at least " +
                std::to_string(kSizeMin) + " bytes each");
  auto log = SegmentLog::open(directory, shard, options, entropy, clock.now());
  if (!log) return std::unexpected(std::move(log).error());
  return std::unique_ptr<LocalJournal>(new LocalJournal(std::move(*log), clock));
}

LocalJournal::LocalJournal(std::unique_ptr<SegmentLog> log, os::Clock& clock)
    : log_(std::move(log)),
      clock_(clock),
      next_(log_->next_position()),
      durable_(next_.value() - 1) {
  publish(0);
}

LocalJournal::~LocalJournal() {
  end(Mode::kAbandon);
}

Status LocalJournal::replay(Position from, const RecordVisitor& visit) {
  CHECK(!thread_.joinable(), "replay comes before start");
  return log_->replay(from, visit);
}

void LocalJournal::start(JournalEvents events) {
  CHECK(!thread_.joinable(), "started twice");
  events_ = std::move(events);
  thread_ = std::thread([this] { run(); });
  closer_ = std::thread([this] { close_files(); });
}

Position LocalJournal::append(std::string_view record) {
  CHECK(thread_.joinable(), "append comes between start and close");
  const std::lock_guard lock(mutex_);
  if (failure_) return std::exchange(next_, next_.next());
  if (pending_.empty() || !pending_.back().fits(record.size())) {
    if (spare_.empty()) spare_.emplace_back();
    pending_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  FrameBuilder& frame = pending_.back();
  const std::uint64_t before = frame.empty() ? 0 : frame_size(frame.payload_size());
  frame.add(record);
  pending_bytes_ += frame_size(frame.payload_size()) - before;
  return std::exchange(next_, next_.next());
}

void LocalJournal::flush() {
  bool asleep = false;
  {
    const std::lock_guard lock(mutex_);
    due_ = true;
    // Set once per sleep: a caller that finds it false knows that the thread is awake and will look
    // again.
    asleep = std::exchange(asleep_, false);
  }
  if (asleep) wake_.notify_one();
}

Room LocalJournal::room() const {
  const std::lock_guard lock(mutex_);
  return room_for(capacity_, pending_bytes_, log_->options().append_size_max);
}

void LocalJournal::trim_before(Position position) {
  CHECK(position <= durable().next(), "only what is durable is trimmed");
  {
    const std::lock_guard lock(mutex_);
    trim_ = std::max(trim_, position);
  }
  flush();
}

JournalFigures LocalJournal::figures() const {
  return {.commits = commits_.value(),
          .records = records_.value(),
          .bytes = bytes_.value(),
          .commit_time = commit_time_.counts()};
}

Status LocalJournal::close() {
  end(Mode::kDrain);
  if (failure_) return std::unexpected(*failure_);
  return log_->close();
}

void LocalJournal::end(Mode mode) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    mode_ = mode;
    asleep_ = false;
  }
  wake_.notify_one();
  wake_closer_.notify_one();
  thread_.join();
  closer_.join();
}

void LocalJournal::close_files() {
  SegmentLog::Files files;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_closer_.wait(lock, [this] { return !removed_.empty() || mode_ != Mode::kRun; });
    if (removed_.empty()) return;
    std::swap(files, removed_);
    lock.unlock();
    for (const std::unique_ptr<os::File>& file : files) free_in_steps(*file);
    files.clear();
    lock.lock();
  }
}

void LocalJournal::run() {
  std::vector<FrameBuilder> frames;
  std::unique_lock lock(mutex_);
  while (wait_for_work(lock)) {
    std::swap(frames, pending_);
    due_ = false;
    const Position trim = std::exchange(trim_, Position());
    lock.unlock();
    Status status = commit(frames);
    if (status) status = keep_house(trim);
    lock.lock();
    finish(frames, status);
    if (status) continue;
    lock.unlock();
    if (events_.failed) events_.failed(status.error());
    return;
  }
}

void LocalJournal::finish(std::vector<FrameBuilder>& frames, const Status& status) {
  if (!status) {
    failure_ = status.error();
    capacity_ = {};
    return;
  }
  for (FrameBuilder& frame : frames)
    if (spare_.size() < kSpareBuildersMax) spare_.push_back(std::move(frame));
  frames.clear();
}

// Returns once there is work to do, or false if it is time to end. While the disk is full it also
// returns now and then, to ask for space.
bool LocalJournal::wait_for_work(std::unique_lock<std::mutex>& lock) {
  if (mode_ == Mode::kAbandon || failure_) return false;
  if (due_ || trim_ != Position()) return true;
  if (mode_ == Mode::kDrain) return !pending_.empty();
  asleep_ = true;
  const auto woken = [this] { return !asleep_; };
  if (room_for(capacity_, 0, log_->options().append_size_max) == Room::kPlenty) {
    wake_.wait(lock, woken);
  } else {
    wake_.wait_for(lock, kSpaceRetryInterval, woken);
  }
  asleep_ = false;
  return mode_ != Mode::kAbandon && !failure_;
}

Status LocalJournal::commit(std::vector<FrameBuilder>& frames) {
  for (FrameBuilder& frame : frames) {
    const std::uint64_t size = frame_size(frame.payload_size());
    const Position first = log_->next_position();
    const auto began = std::chrono::steady_clock::now();
    const auto last = log_->append_batch(frame);
    if (!last) return std::unexpected(last.error());
    commit_time_.add(std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - began));
    commits_.add();
    records_.add(last->next().value() - first.value());
    bytes_.add(size);
    frame.clear();
    CHECK(*last > durable(), "positions grow from commit to commit");
    durable_.store(last->value(), std::memory_order_release);
    publish(size);
    if (events_.durable) events_.durable(*last);
  }
  return {};
}

Status LocalJournal::keep_house(Position trim) {
  if (trim != Position()) {
    SegmentLog::Files removed;
    const Status status = log_->trim_before(trim, removed);
    {
      const std::lock_guard lock(mutex_);
      std::ranges::move(removed, std::back_inserter(removed_));
    }
    wake_closer_.notify_one();
    RETURN_IF_FAILED(status);
  }
  const Capacity before = log_->capacity();
  RETURN_IF_FAILED(log_->prepare(clock_.now()));
  publish(0);
  const Capacity after = log_->capacity();
  if (events_.roomier &&
      (after.guaranteed > before.guaranteed || after.has_reserve != before.has_reserve))
    events_.roomier();
  return {};
}

// The capacity and the bytes counted against it change together, so room() is never too optimistic.
void LocalJournal::publish(std::uint64_t committed_bytes) {
  const std::lock_guard lock(mutex_);
  CHECK(committed_bytes <= pending_bytes_ && durable() < next_, "what is committed was appended");
  pending_bytes_ -= committed_bytes;
  capacity_ = log_->capacity();
}

}  // namespace stanchion::journal
