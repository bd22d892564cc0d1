// The state of a shard according to its checkpoint and the records since, for commands that read a
// data directory and change nothing: as a start reads it, and the same is refused.
//
//   ShardReplay   store ─▶ load ─▶ journal::survey ─▶ take, take, … ─▶ gap ─▶ the engine
//   check_shard   the same for whoever wants to know only whether a server could start
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "broker/data_directory.h"
#include "engine/engine.h"
#include "journal/survey.h"
#include "model/fact.h"
#include "model/ids.h"
#include "store/rocks_store.h"

namespace stanchion::broker {

// For the messages of a shard that is read: as at a start, so that a journal about many messages does
// not need them all in memory at once.
inline constexpr std::size_t kReplayMemory = std::size_t{256} << 20;

// How an engine reads this store, which outlives it.
engine::Engine::ScanStore scan_of(const store::Store& store);

class ShardReplay {
 public:
  // Called with every fact that is read, if given.
  using FactVisitor = std::function<void(Position, Instant, const Fact&)>;

  // `store` may be null, as in data of the first release, and must outlive this object.
  ShardReplay(ShardIndex shard, const store::Store* store, FactVisitor facts = {})
      : engine_(engine::Options{shard, false, {}}), store_(store), facts_(std::move(facts)) {}

  // Reads the checkpoint. Comes first.
  Status load();

  // The next record of the journal. Records that do not follow from the checkpoint are only counted.
  Status take(Position position, std::string_view bytes);

  // Why the journal in `path`, which is usable, does not continue the checkpoint; empty: it does.
  std::string gap(const std::string& path, const journal::Survey& survey) const;

  const engine::Engine& engine() const { return engine_; }
  Position checkpoint() const { return checkpoint_; }  // That was loaded.
  std::uint64_t records() const { return records_; }
  Instant now() const { return now_; }  // Of the last record.

 private:
  engine::Engine engine_;
  const store::Store* store_;
  FactVisitor facts_;
  Position checkpoint_;
  Position applied_;
  Instant now_{};
  std::uint64_t records_ = 0;
};

// The shard's store, opened without changing it; null if there is none yet.
Result<std::unique_ptr<const store::RocksStore>> open_shard_store(const DataDirectory& data,
                                                                  ShardIndex shard);

struct Checkpoint {
  Position position;
  Instant at;
};
// The last one in the shard's store; none if it has none.
Result<std::optional<Checkpoint>> last_checkpoint(const DataDirectory& data, ShardIndex shard);

// Fails with the reason why a server would not start on this shard, or with the first file of its
// store that is damaged. Reads every byte. Only while no server runs.
Status check_shard(const DataDirectory& data, ShardIndex shard);

// The same without reading the tables of the store, except what a start reads of them.
Status check_start(const DataDirectory& data, ShardIndex shard);

// Whether the system refused for a reason that has nothing to do with the data, so that the failure of
// a check does not say that anything is damaged.
bool may_pass(const Failure& failure);

}  // namespace stanchion::broker
