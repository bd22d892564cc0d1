// A journal on this machine's disk: a SegmentLog and the one thread that commits to it.
//
//   shard's thread                        commit thread
//   append ─▶ pending_ ──── swap ───────▶ write, sync ─▶ publish ─▶ events.durable
//   flush  ─▶ wakes it if it sleeps            └─ then takes all that came in meanwhile, if flushed
//
// So a lone record waits for one sync, and under load the commits grow by themselves. The mutex is
// held for copying a record or swapping two vectors, never during I/O. A third thread closes the
// files of removed segments, because the file system takes a while to free a large one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "journal/journal.h"
#include "journal/segment_log.h"
#include "os/clock.h"
#include "os/entropy.h"
#include "os/file.h"

namespace stanchion::journal {

class LocalJournal final : public Journal {
 public:
  // `directory`, `clock` and `entropy` must outlive the journal; the caller holds the lock of the
  // directory or of a parent of it.
  static Result<std::unique_ptr<LocalJournal>> open(os::Directory& directory, ShardOf shard,
                                                    const SegmentOptions& options,
                                                    os::Entropy& entropy, os::Clock& clock);
  ~LocalJournal() override;

  const SegmentLog::Recovery& recovery() const { return log_->recovery(); }

  Status replay(Position from, const RecordVisitor& visit) override;
  void start(JournalEvents events) override;
  Position append(std::string_view record) override;
  void flush() override;
  Position durable() const override { return Position(durable_.load(std::memory_order_acquire)); }
  Position next_position() const override { return next_; }
  Room room() const override;
  std::uint64_t unwritten_bytes() const override {
    return pending_bytes_.load(std::memory_order_relaxed);
  }
  void trim_before(Position position) override;
  JournalFigures figures() const override;
  Status close() override;

 private:
  enum class Mode { kRun, kDrain, kAbandon };

  LocalJournal(std::unique_ptr<SegmentLog> log, os::Clock& clock);

  // The commit thread.
  void run();
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  Status commit(std::vector<FrameBuilder>& frames);
  void finish(std::vector<FrameBuilder>& frames, const Status& status);
  Status keep_house(Position trim);
  void publish(std::uint64_t committed_bytes);
  void end(Mode mode);

  // The third thread.
  void close_files();

  std::unique_ptr<SegmentLog> log_;  // Owned by the commit thread, from start() until it is joined.

  os::Clock& clock_;
  JournalEvents events_;
  std::thread thread_;
  std::thread closer_;
  Position next_;  // Owned by the shard's thread.
  std::atomic<std::uint64_t> durable_;

  // Counted by the commit thread.
  Tally commits_;
  Tally records_;
  Tally bytes_;
  Latency commit_time_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable wake_closer_;
  // Guarded by mutex_:
  bool asleep_ = false;
  bool due_ = false;  // There was a flush() since pending_ was taken.
  Mode mode_ = Mode::kRun;
  std::vector<FrameBuilder> pending_;  // Each is one commit; nearly always there is at most one.
  std::vector<FrameBuilder> spare_;    // Cleared builders, kept for their memory.
  // Frames in pending_ and in the commit under way. Written with the mutex, read without.
  std::atomic<std::uint64_t> pending_bytes_ = 0;
  Capacity capacity_;
  Position trim_;
  SegmentLog::Files removed_;       // To be closed.
  std::optional<Failure> failure_;  // Set once; from then on appends are dropped.
};

}  // namespace stanchion::journal
