// Collects what can still be read of a damaged store, in a form from which an engine can be loaded,
// and reports what is lost.
//
//   chunk that can be read      ─▶ copied as it is
//   … in parts                  ─▶ its readable messages, and a record that says so
//   record that cannot be       ─▶ rebuilt from the messages found there
//   a detached message's record ─▶ its message waits again, unless its content is lost, too
//
// The shard's own record must be readable. A queue whose entry is not readable is lost with
// everything in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/batch.h"
#include "model/ids.h"

namespace stanchion::engine {

// Lost messages of one chunk.
struct LostMessages {
  std::string group;
  Seq first;  // They are in this range of Seqs; exactly which is unknown.
  Seq last;
  std::uint64_t count = 0;
  Instant entered_first;
  Instant entered_last;
};

struct SalvagedQueue {
  QueueId id;
  QueueRef ref;
  std::vector<Seq> living{};  // Its remaining messages in order, if something is damaged.
  std::uint64_t kept = 0;
  std::uint64_t lost = 0;
  std::vector<LostMessages> pieces{};
  bool chunks_unknown = false;  // More messages may be lost than are known.
  bool states_unknown = false;  // Messages in flight, delayed or returned may be visible now.
  bool deduplication_lost = false;
  bool attempts_lost = false;
  bool places_lost = false;

  bool damaged() const {
    return lost > 0 || chunks_unknown || states_unknown || deduplication_lost || attempts_lost ||
           places_lost;
  }
};

struct SalvageReport {
  bool has_checkpoint = false;        // Otherwise there is nothing in the store.
  std::vector<SalvagedQueue> queues;  // All queues of the shard that are left.
  bool queues_lost = false;           // Some queues are lost.
  bool departures_lost = false;       // Lost messages on their way to another queue.

  bool damaged() const;
};

using WriteBatch = std::function<Status(const Batch&)>;

// Reads all of the store and passes what is left of it to `write`, a part at a time. Fails if that
// fails, or if the shard's record cannot be read.
Result<SalvageReport> salvage(const Engine::ScanStore& scan, const WriteBatch& write);

}  // namespace stanchion::engine
