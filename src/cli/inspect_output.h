// How `stanchion inspect` prints what it finds: as text for people or as one JSON document for
// programs, whose fields docs/operations.md lists. inspect.cc decides what is looked at and in
// which order.
//
//   begin ─▶ ( begin_shard ─▶ problem | store | fact | segment … ─▶ ( queue ─▶ message … ) … ─▶
//              end_shard ) … ─▶ end
//
// A shard that a running server changes meanwhile is begun again: again() discards what was
// reported about it, which is possible before its first queue.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "journal/survey.h"

namespace stanchion::cli {

// What the store of a shard takes.
struct StoreSize {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

class InspectOutput {
 public:
  virtual ~InspectOutput() = default;

  // `fleet`: whose node has this directory, and the journals in Kafka; empty: it has them itself.
  virtual void begin(std::string_view data, std::uint32_t shard_count, std::string_view fleet) = 0;
  virtual void begin_shard(ShardIndex shard) = 0;
  // Something is damaged or missing.
  virtual void problem(std::string_view text) = 0;
  virtual void store(const StoreSize& size) = 0;
  virtual void fact(Position position, Instant at, std::string_view text) = 0;
  virtual void again() = 0;
  // Why nothing more is reported about the shard, although it may be sound.
  virtual void gave_up(std::string_view why) = 0;
  virtual void segment(const journal::SegmentReport& segment) = 0;
  // `whole`: the records reach to the journal's end.
  virtual void records(std::uint64_t records, std::size_t queues, bool whole) = 0;
  // When the last record was made, and how far that is ahead of this machine's clock.
  virtual void last_record(Instant at, Duration ahead) = 0;
  virtual void holdings(const engine::Holdings& holdings) = 0;
  virtual void queue(const engine::Queue& queue) = 0;
  virtual void message(Seq seq, const Content& content, std::uint32_t receive_count,
                       engine::State state) = 0;
  virtual void end_shard(bool sound) = 0;
  virtual void end(bool sound) = 0;
};

// Both write to standard output.
std::unique_ptr<InspectOutput> inspect_as_text();
// `facts` and `messages`: the document has these lists, even if they are empty.
std::unique_ptr<InspectOutput> inspect_as_json(bool facts, bool messages);

// JSON is UTF-8, but a path or damaged text need not be.
std::string to_utf8(std::string_view text);

}  // namespace stanchion::cli
