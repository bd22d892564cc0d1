// Keeps a shard's engine within its memory and its journal short: checkpoints go to the store, cold
// messages come back from it, and what is saved and far from being received leaves memory.
//
//   enough changed ─▶ batch, little by little ─▶ its position is durable ─▶ commit (background)
//                      ─▶ journal trimmed, messages may leave memory
//   engine asks    ─▶ read (background) ─▶ installed ─▶ who waited for it is told
//
//   M1  A checkpoint is committed only when every record that it contains the effects of is
//       durable, and the journal is trimmed only when the checkpoint is.
//   M2  Every read that the engine asked for is installed, once.
//
// Everything runs on the shard's loop, except the work in the background, which touches the store
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/time.h"
#include "broker/background.h"
#include "broker/loop.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "store/store.h"

namespace stanchion::broker {

struct KeeperOptions {
  std::size_t memory = std::size_t{128} << 20;  // For messages.
  // A checkpoint is made when so much was written to the journal, or so much time has passed.
  std::uint64_t checkpoint_bytes = std::uint64_t{128} << 20;
  Duration checkpoint_interval = std::chrono::seconds(30);
};

class Keeper {
 public:
  // What the shard does for its keeper.
  struct Callbacks {
    std::function<Instant()> now;                // Looks at the clock; the engine knows it then.
    std::function<void(Task)> when_durable;      // Runs it when all that was appended is.
    std::function<void(QueueId)> installed;      // Something of this queue came into memory.
    std::function<void()> relieved;              // A checkpoint ended, or memory has room again.
    std::function<void(const Failure&)> failed;  // The process must end.
  };

  // Without a store everything stays in memory and the journal.
  Keeper(engine::Engine& engine, journal::Journal& journal, std::shared_ptr<store::Store> store,
         const KeeperOptions& options);
  ~Keeper();

  // Before start(): the state of the last checkpoint, if there is one. The journal goes on behind
  // the position that is returned.
  Result<Position> load(Instant& now);
  // Brings the engine to where the facts can be applied, reading what that needs.
  Status prepare(const std::vector<Fact>& facts, Instant now);

  void start(Loop& loop, Background& background, Callbacks callbacks, Instant now);

  // A copy of the store that someone wants.
  struct Saving {
    // In the background, when the store holds all up to this position and nothing behind it.
    std::function<Status(Position)> save;
    Task decided;                                // It is decided what the copy will hold.
    std::move_only_function<void(Status)> done;  // Behind `decided`; `save` does not run any more.
  };
  // Makes a checkpoint as soon as none is under way, and saves it. One at a time. Fails, rather
  // than waits, if there is no space for a checkpoint. work() must follow.
  void save(Saving saving);

  // A record of so many bytes was appended.
  void appended(std::size_t bytes) { unsaved_bytes_ += bytes; }

  // To be called after any change, with the last position that was appended.
  void work(Position position, Instant now);

  // When work() should be called again at the latest.
  Instant next_deadline() const;

  // No more messages should come in until the checkpoint under way lets some leave memory …
  bool is_full() const {
    return is_saving() && engine_.resident_bytes() > options_.memory + options_.memory / 2;
  }
  // … which takes until there is space on the disk.
  bool waits_for_space() const { return waits_for_space_; }

  Position loaded_position() const { return loaded_; }
  std::uint64_t checkpoints() const { return checkpoints_; }
  std::uint64_t reads() const { return reads_; }

 private:
  bool wants_checkpoint(Instant now) const;
  bool is_saving() const { return collecting_ || batch_ != nullptr; }
  void begin_checkpoint(Position position, Instant now);
  void collect();
  void commit();
  void committed(const Status& status);
  void saved(const Status& status);
  void start_reads();
  using Found = Result<std::vector<std::vector<engine::StoredMessage>>>;  // One for each read.
  void installed(const std::vector<engine::ColdRead>& reads, Found found);
  void evict_soon();
  engine::Engine::ScanStore scan() const;

  engine::Engine& engine_;
  journal::Journal& journal_;
  const std::shared_ptr<store::Store> store_;
  const KeeperOptions options_;
  Loop* loop_ = nullptr;
  Background* background_ = nullptr;
  Callbacks callbacks_;

  std::uint64_t unsaved_bytes_ = 0;
  Instant last_checkpoint_{};
  bool collecting_ = false;             // A checkpoint is being put together …
  std::shared_ptr<const Batch> batch_;  // … and is being committed.
  Position batch_position_;
  std::optional<Saving> saving_;
  std::function<Status(Position)> save_batch_;  // Of saving_, if the batch is what it waited for.
  Position loaded_;
  bool waits_for_space_ = false;
  std::unique_ptr<Alarm> space_alarm_;
  bool evicting_ = false;
  std::uint64_t checkpoints_ = 0;
  std::uint64_t reads_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace stanchion::broker
