// How the messages of a shard are kept in memory: the options, and the state that its queues share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "engine/store/cold_read.h"
#include "model/batch.h"

namespace stanchion::engine {

// Tests make everything small.
struct MemoryOptions {
  std::uint32_t chunk_messages = 256;
  std::uint32_t chunk_bytes = 256 << 10;
  // Messages that are read ahead for all lanes together that are being received from; each lane
  // gets at least a chunk.
  std::uint32_t read_ahead = 4096;
  std::uint32_t read_ahead_bytes = 4 << 20;  // At most this, except for first chunks.
  std::uint32_t near_messages = 1024;        // Behind this many, a new chunk is deep.
  std::size_t spare = std::size_t{1} << 20;  // Bytes of lanes and chunks that do not count.
  // Bytes of messages that may have to be read for a new delay of their FIFO queue.
  std::size_t delayed_again = std::size_t{64} << 20;
  // Bytes of messages on their way to other queues; half of that for one account.
  std::size_t in_transit = std::size_t{16} << 20;
  // Their numbers, from the first unsettled one on: each destination remembers those that it has
  // accepted.
  std::uint64_t transfer_numbers = 100'000;
  // A receive takes no further message when it has this many bytes.
  std::size_t receive_bytes = std::size_t{64} << 20;

  // Whether so many messages, or so many bytes of them, are a full chunk.
  bool fill_a_chunk(std::uint32_t messages, std::uint32_t bytes) const {
    return messages >= chunk_messages || bytes >= chunk_bytes;
  }
};

// What an entry takes that a checkpoint erases: its key in the batch, and its number until then.
inline constexpr std::size_t kErasedBytes = 90;

// State that the stocks of a shard share.
struct Memory {
  MemoryOptions options;
  std::size_t messages = 0;    // Bytes of messages, some of which can be evicted …
  std::size_t structure = 0;   // … and of lanes and chunks, which cannot.
  std::size_t brought_in = 0;  // Bytes that were read since the last checkpoint was begun …
  std::size_t outlived = 0;    // … and that were removed, but others may hold, as it does.
  // Bytes of packs that have changed: the next checkpoint writes what is left of them message by
  // message.
  std::size_t to_unpack = 0;
  std::size_t to_erase = 0;              // Entries that the next checkpoint erases one by one.
  std::uint64_t checkpoint = 0;          // The last checkpoint that was begun …
  std::uint64_t durable_checkpoint = 0;  // … and the last one that is durable.
  Instant checkpoint_at{};               // When the former was begun.
  std::unique_ptr<Batch> batch{};        // Its entries, until they are taken.
  // What checkpoints have looked at: messages, chunks, lanes, records, keys to be erased.
  std::uint64_t looked_at = 0;
  std::vector<ColdRead> wanted;  // Requested reads, in order.
  std::uint64_t peeks = 0;       // Of them, those for a peek are numbered.

  // What is to be erased takes this much until it is.
  std::size_t bytes_to_erase() const { return to_erase * kErasedBytes; }
};

// How much one call of an eviction examines: often in vain, because the newest is not saved yet.
inline constexpr std::size_t kEvictLooksMax = 4096;

// What such a call has done.
struct Evicted {
  std::size_t bytes;
  bool more;  // There is something that was not examined yet.
};

}  // namespace stanchion::engine
