// Keeps a shard's engine within its memory budget and its journal short: writes checkpoints to the
// store, reads cold messages back, and evicts messages that are saved and far from being received.
//
//   enough changed ─▶ batch, little by little ─▶ its position is durable ─▶ commit (background)
//                      ─▶ journal trimmed, messages may be evicted
//   engine asks    ─▶ read (background) ─▶ installed ─▶ waiting calls go on
//
//   M1  A checkpoint is committed only when every record whose effects it contains is durable, and
//       the journal is trimmed only when the checkpoint is.
//   M2  Every read that the engine requested is installed, once, or its queue is reported as
//       damaged. A failed read is tried again first; one that fails only for lack of a file
//       descriptor waits until there is one.
//
// Everything runs on the shard's loop, which is checked, except the work in the background, which
// touches the store only.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "broker/account_shares.h"
#include "broker/background.h"
#include "broker/discards.h"
#include "broker/loop.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "store/store.h"

namespace stanchion::broker {

struct KeeperOptions {
  // Messages are evicted beyond this, less what the structures take that they wait in, but not below a
  // quarter of it. What comes in faster than it is evicted may take twice as much, structures and
  // messages together; see Keeper::is_crowded().
  std::size_t memory = std::size_t{128} << 20;
  // A checkpoint is made when this much was written to the journal, or this much time has passed.
  std::uint64_t checkpoint_bytes = std::uint64_t{128} << 20;
  Duration checkpoint_interval = std::chrono::seconds(30);
  // Space to be left free on the disk, so that there is room for the checkpoint that removes
  // deleted messages: with less, minus what is not saved yet, sends are refused.
  std::uint64_t left_free = 0;
  std::uint32_t disk_shared_by = 1;  // Shards.
  // Sends wait while the journal has this much that is not written yet: it copies each record.
  std::size_t unwritten = std::numeric_limits<std::size_t>::max();
  std::uint32_t account_share = 50;  // Percent of `memory`; see AccountShares.
};

// What a shard with this budget may take for its purposes.
engine::MemoryOptions divide(engine::MemoryOptions options, std::size_t memory);

class Keeper {
 public:
  // What the shard does for its keeper.
  struct Callbacks {
    std::function<Instant()> now;            // Reads the clock and advances the engine.
    std::function<void(Task)> when_durable;  // Runs it when everything appended is durable.
    std::function<void(QueueId)> installed;  // Something of this queue was read into memory.
    std::function<void()> relieved;          // A checkpoint ended, or memory has room again.
    // Something of this queue cannot be read.
    std::function<void(QueueId, const Failure&)> damaged;
    std::function<void(const Failure&)> failed;  // The process must end.
  };

  // Without a store everything stays in memory and the journal.
  Keeper(engine::Engine& engine, journal::Journal& journal, std::shared_ptr<store::Store> store,
         const KeeperOptions& options);
  ~Keeper();

  // Before start(): loads the last checkpoint, if there is one. The journal continues after the
  // returned position.
  Result<Position> load(Instant& now);
  // Reads whatever the facts need, so that they can be applied.
  Status prepare(const std::vector<Fact>& facts, Instant now);
  // Between two records of a replay, the last of which has this position: makes a checkpoint at once
  // if memory is beyond its budget, so that no journal needs more memory to be replayed than its
  // shard needed when it was written.
  Status save_in_replay(Position position, Instant now);

  void start(Loop& loop, Background& background, Callbacks callbacks, Instant now);
  // The loop has ended.
  void stop() { owner_.stop(); }

  // A copy of the store that someone wants.
  struct Backup {
    // Called in the background, when the store holds everything up to this position and nothing
    // after it.
    std::function<Status(Position)> copy;
    Task decided;                                // The content of the copy is fixed.
    std::move_only_function<void(Status)> done;  // After `decided`; `copy` no longer runs.
  };
  // Makes a checkpoint as soon as none is under way, and has it copied. One at a time. Fails,
  // rather than waits, if there is no space for a checkpoint. work() must be called after it.
  void back_up(Backup backup);
  // Ends a backup of which nothing is copied yet, as while the journal does not take what it is to have.
  void give_up_backup(const Failure& why);

  // A record of this size was appended.
  void appended(std::size_t bytes) {
    owner_.check();
    unsaved_bytes_ += bytes;
  }

  // To be called after any change, with the last position that was appended.
  void work(Position position, Instant now, bool may_begin_checkpoint = true);

  // Whether work() will begin a checkpoint now, and whether one is under way.
  bool wants_checkpoint(Instant now) const;
  bool is_writing() const { return collecting_ || batch_ != nullptr; }
  bool is_reading() const { return reading_ > 0; }

  // When work() should be called again at the latest.
  Instant next_deadline() const;

  // Whether messages may be read out of their turn. Those around one that is taken stay in memory until
  // the next checkpoint.
  bool may_read_apart() const;

  // Messages take more than one and a half times their part of the budget, the structures take five
  // quarters of the budget, what is removed is not freed yet and fills it twice together with them, the
  // checkpoint under way lags far behind, or the disk has no space for the next one: not every send may
  // be admitted …
  bool is_crowded() const { return is_beyond_budget() || has_much_to_free(); }
  // … but which, and when?
  enum class Admission {
    kNow,
    kSoon,             // Memory is being freed, or a checkpoint is under way that may free some.
    kWithSpaceOnDisk,  // The checkpoint waits for space on disk.
    kWhenDrained,      // Nothing evictable is left.
  };
  Admission admission(const QueueRef& queue) const;
  // The journal has as much to write as it may have.
  bool is_journal_behind() const { return journal_.unwritten_bytes() >= options_.unwritten; }
  // What was removed is not freed yet, and fills the budget twice together with the rest. If so,
  // relieved() is called when some of it was freed.
  bool must_wait_to_free() const;
  // Whether there is memory to remember one more receive attempt of the queue.
  bool may_remember(const QueueRef& queue) const;
  // Whether there are other accounts, and this one takes more than its share of memory.
  bool exceeds_share(const std::string& account) const { return accounts_.exceeds(account); }

  Position loaded_position() const { return loaded_; }
  // Of the records up to there, if the store knows it.
  std::optional<journal::LogDigest> loaded_digest() const;
  // The store has everything up to here.
  Position saved_position() const { return saved_; }
  bool disk_is_full() const { return disk_is_full_; }
  std::uint64_t checkpoints() const { return checkpoints_; }
  std::uint64_t reads() const { return reads_; }

 private:
  void look_at_space();
  void ask_for_space();
  Duration interval() const;
  bool is_worth_saving(std::size_t share) const;
  bool has_much_to_erase() const;
  bool must_postpone() const;
  void postpone();
  bool messages_fill(std::size_t quarters) const;
  // Eighths of the budget that the structures may take; for the queues of an account that takes more
  // than its share, and for all others, if they hold little.
  static constexpr std::size_t kStructure = 10, kStructureOfMany = 11, kStructureOfAll = 12;
  bool structure_fills(std::size_t eighths) const;
  // The same for queues that hold little.
  bool structure_fills_for_all(std::size_t eighths) const;
  bool is_left_behind(std::uint64_t halves) const {
    return is_writing() && unsaved_bytes_ > halves * checkpoint_at_ / 2;
  }
  bool is_beyond_budget() const {
    return messages_fill(6) || structure_fills(kStructure) || is_left_behind(4) || disk_is_full_;
  }
  std::size_t held_by_checkpoint() const {
    return is_writing() ? std::min<std::size_t>(engine_.memory().outlived, writing_bytes_) : 0;
  }
  bool has_much_to_free() const;
  Admission admission_by_budget(const QueueRef& queue) const;
  bool holds_little(const QueueRef& queue) const;
  void begin_checkpoint(Position position, Instant now);
  void collect();
  void commit();
  void committed(const Status& status);
  void backed_up(const Status& status);
  void start_reads();
  void start(std::vector<engine::ColdRead> neighbours);
  void retry_reads();
  using Found = std::vector<Result<std::vector<engine::StoredMessage>>>;  // One for each read.
  static Found read(const std::vector<engine::ColdRead>& reads,
                    const engine::Engine::ScanStore& scan);
  void installed(const std::vector<engine::ColdRead>& reads, Found found);
  void evict_soon();
  engine::Engine::ScanStore scan() const;

  engine::Engine& engine_;
  journal::Journal& journal_;
  const std::shared_ptr<store::Store> store_;
  const KeeperOptions options_;
  const AccountShares accounts_;
  OwningLoop owner_;
  Loop* loop_ = nullptr;
  Background* background_ = nullptr;
  Callbacks callbacks_;

  std::size_t structure_at_start_ = 0;  // As far as it still exists.
  std::uint64_t unsaved_bytes_ = 0;
  std::uint64_t writing_bytes_ = 0;  // The part of them that the checkpoint under way covers.
  // This many of them are worth a checkpoint: fewer when the disk is nearly full, so that there is
  // always space for it. Computed anew when there are next_look_.
  std::uint64_t checkpoint_at_;
  std::uint64_t next_look_ = 0;
  bool short_of_space_ = false;  // A checkpoint every second may free some.
  bool disk_is_full_ = false;
  std::uint64_t free_ = UINT64_MAX;  // Space on disk, as it was when somebody looked.
  bool postponed_ = false;           // A checkpoint is, until the alarm rings.
  Instant last_checkpoint_{};
  bool collecting_ = false;             // A checkpoint is being assembled …
  std::shared_ptr<const Batch> batch_;  // … and is being committed.
  Position batch_position_;
  std::optional<Backup> backup_;
  std::function<Status(Position)> copy_batch_;  // Of backup_, if the batch is what it waited for.
  Position loaded_;
  Position saved_;
  bool waits_for_space_ = false;
  std::unique_ptr<Alarm> space_alarm_;
  std::vector<engine::ColdRead> without_files_;  // Reads that wait for a file descriptor.
  std::unique_ptr<Alarm> files_alarm_;
  bool evicting_ = false;
  Discards discards_;
  std::uint64_t checkpoints_ = 0;
  std::uint64_t reads_ = 0;
  std::size_t reading_ = 0;  // Reads under way.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::broker
