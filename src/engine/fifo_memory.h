// What a FIFO queue remembers besides its messages, since its last purge.
#pragma once

#include <cstddef>

#include "engine/deduplication.h"
#include "engine/memory_share.h"
#include "engine/receive_attempts.h"
#include "engine/stock.h"
#include "engine/store/store_keys.h"
#include "model/batch.h"

namespace stanchion::engine {

struct FifoMemory {
  explicit FifoMemory(Memory& memory) : share(memory.structure) {}
  void count() { share.set(deduplication.bytes() + attempts.bytes()); }

  DeduplicationWindow deduplication;
  ReceiveAttempts attempts;
  MemoryShare share;  // Of both. Neither can be evicted.

  // Fixes what the checkpoint that has begun writes of it. The batch must live until nothing is
  // pending.
  void begin_save(Batch& batch, StockName stock) {
    deduplication.begin_save(batch, stock);
    attempts.begin_save(batch, stock);
  }
  bool has_pending() const { return deduplication.has_pending() || attempts.has_pending(); }
  // Writes what is pending: about as much as writing this many messages takes. Returns how much.
  std::size_t save_some(std::size_t count) {
    const std::size_t looked_at = deduplication.save_some(count);
    return looked_at < count ? looked_at + attempts.save_some(count - looked_at) : looked_at;
  }
};

}  // namespace stanchion::engine
