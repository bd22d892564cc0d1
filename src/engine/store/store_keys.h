// The keys of the store. Numbers in keys are big-endian, so that keys sort by them; docs/formats.md
// lists the keys with their values.
//
//   type u8                                     what it holds
//   1                                           the shard: position, time, keys, counters, inbox
//   2  queue                                    a queue
//   3  queue, incarnation, lane, from           a chunk
//   4  queue, incarnation, seq                  the record of a detached message (see chunk.h)
//   5  queue, incarnation, expiry, seq          a page of deduplication ids, by its first
//   6  queue, incarnation, hash of the id       a receive attempt
//   7  transfer                                 a message that is leaving
//   8  queue, incarnation, lane, seq            a message: its entry, and its content; or a pack of
//                                               messages from that seq on (see Series)
//   9  queue, incarnation, lane                 the place of a FIFO group in its queue's line
//
// A purge begins a new incarnation of the queue, so that everything of the old one can be erased as
// a few ranges. A lane is named by a 128-bit hash of its group, so that accidental collisions are
// practically impossible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "model/ids.h"

namespace stanchion::engine {

enum class KeyType : std::uint8_t {
  kShard = 1,
  kQueue = 2,
  kChunk = 3,
  kDetached = 4,
  kDeduplication = 5,
  kAttempt = 6,
  kDeparture = 7,
  kMessage = 8,
  kPlace = 9,
};

// The messages of a queue between two purges.
struct StockName {
  QueueId queue;
  std::uint32_t incarnation = 0;

  friend bool operator==(const StockName&, const StockName&) = default;
};

using LaneName = Hash128;
LaneName lane_name(std::string_view group);

Key shard_key();
Key queue_key(QueueId queue);
Key chunk_key(StockName stock, LaneName lane, Seq from);
Key detached_key(StockName stock, Seq seq);
Key deduplication_key(StockName stock, Instant expires, Seq seq);
Key attempt_key(StockName stock, const Hash128& id);  // The hash of its id.
Key departure_key(TransferNo number);
Key message_key(StockName stock, LaneName lane, Seq seq);
Key place_key(StockName stock, LaneName lane);

// The departures first to last.
KeyRange departures_between(TransferNo first, TransferNo last);
// All keys of one type.
KeyRange all_of(KeyType type);
// The deduplication ids of a stock.
KeyRange all_deduplication(StockName stock);
// The messages first to last of a lane.
KeyRange messages_between(StockName stock, LaneName lane, Seq first, Seq last);
// All keys of the incarnations first to last of a queue, one range per type.
std::vector<KeyRange> stock_ranges(QueueId queue, std::uint32_t first, std::uint32_t last);

// Parses a key part by part from its beginning: callers know what kind of key it is.
class KeyReader {
 public:
  explicit KeyReader(std::string_view key) : key_(key) {}

  KeyType type() { return static_cast<KeyType>(number(1)); }
  QueueId queue() { return QueueId(number(8)); }
  StockName stock() {
    const QueueId id = queue();
    return {id, static_cast<std::uint32_t>(number(4))};
  }
  LaneName lane() {
    const std::uint64_t high = number(8);
    return {.low = number(8), .high = high};
  }
  Seq seq() { return Seq(number(8)); }
  TransferNo transfer() { return TransferNo(number(8)); }

  // Whether all of the key was read, and nothing beyond it.
  bool complete() const { return ok_ && key_.empty(); }

 private:
  std::uint64_t number(std::size_t bytes);

  std::string_view key_;
  bool ok_ = true;
};

}  // namespace stanchion::engine
