#include "engine/store/stock_loader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/store/chunk_record.h"
#include "engine/store/detached_record.h"
#include "engine/store/sense.h"

namespace stanchion::engine {

Status StockLoader::load_chunk(LaneName lane_key, Seq from, std::string_view value, Instant at) {
  const auto record = parse_chunk(value);
  if (!record || !is_possible(*record, from) || lane_name(record->group) != lane_key)
    return makes_no_sense("a chunk");
  const ChunkSummary& summary = record->summary;
  Lane& lane = lanes_.of(record->group, from);
  const Chunk* before = lane.last_chunk;
  if (before != nullptr && before->until >= from)
    return fail("the store is damaged: chunks overlap");
  // Messages came in order of time, the last before the checkpoint.
  const Instant earliest =
      before != nullptr && before->is_cold() ? before->cold->summary.last_entered : Instant();
  if (summary.members > 0 && (summary.first_entered < earliest || at < summary.last_entered))
    return fail("the store is damaged: a chunk has messages of another time");
  loaded_.push_back({lane_key, from, &residency_.chunks().load(lane, from, *record)});
  states_.add_cold(summary.members);
  return {};
}

// In the order of the store's keys.
std::vector<StockLoader::Loaded>::const_iterator StockLoader::first_loaded(LaneName lane,
                                                                           Seq from) const {
  const auto key = [](const Loaded& one) {
    return std::tuple(one.lane.high, one.lane.low, one.from);
  };
  return std::ranges::lower_bound(loaded_, key({lane, from, nullptr}), {}, key);
}

Chunk* StockLoader::find_loaded(LaneName lane, Seq from) const {
  const auto found = first_loaded(lane, from);
  return found == loaded_.end() || found->lane != lane || found->from != from ? nullptr
                                                                              : found->chunk;
}

Lane* StockLoader::find_loaded(LaneName lane) const {
  const auto found = first_loaded(lane, Seq());
  return found == loaded_.end() || found->lane != lane ? nullptr : &found->chunk->lane;
}

Status StockLoader::load_detached(Seq seq, std::string_view value) {
  std::optional<DetachedRecord> record = parse_detached(seq, value);
  Chunk* home = record ? find_loaded(record->lane, record->home) : nullptr;
  if (home == nullptr || !can_be_detached(*record->message, *home, fifo_) ||
      messages_.find(seq) != nullptr)
    return makes_no_sense("the record of a message");
  Message& message = messages_.keep(std::move(record->message));
  residency_.chunks().set_home(message, *home);
  states_.enter(message);
  if (message.state == State::kReady) {
    residency_.chunks().rejoin(message);
    return {};
  }
  if (message.state == State::kDelayed) {
    ++message.lane->delayed;
  } else {
    states_.lock(message);
  }
  return {};
}

Status StockLoader::load_leaving(Message& message, Seq from) {
  Chunk* home = find_loaded(lane_name(message.content->group()), from);
  if (home == nullptr || message.seq < home->from || home->until < message.seq ||
      messages_.find(message.seq) != nullptr)
    return makes_no_sense("a message on its way");
  residency_.chunks().set_home(message, *home);
  if (fifo_) states_.lock(message);
  return {};
}

Status StockLoader::load_place(LaneName lane, std::string_view value) {
  Lane* found = find_loaded(lane);
  if (found != nullptr) return lanes_.load_place(*found, value);
  // Left behind by a release that did not know places.
  lanes_.forget_place(lane);
  return {};
}

// Checks that chunks, detached messages and places are consistent with each other and with the
// queue, which has assigned the Seqs from `begin` up to `end`.
bool StockLoader::makes_sense(Seq begin, Seq end) const {
  const bool chunks_do = std::ranges::all_of(loaded_, [&](const Loaded& one) {
    const Chunk& chunk = *one.chunk;
    const std::uint64_t here = std::uint64_t{chunk.members} + chunk.detached;
    const bool delayed = chunk.is_cold() && chunk.cold->summary.due_max != Instant();
    return here > 0 && here <= chunk.homed && begin <= chunk.from && chunk.until < end &&
           (chunk.pack == Seq() || chunk.detached == 0) && (fifo_ || !delayed);
  });
  bool places_do = true;
  lanes_.for_each([&](const Lane& lane) { places_do &= lane.place.after < end; });
  return chunks_do && places_do;
}

// In order of Seq the index is built without a search for each of what may be millions.
Status StockLoader::finish(Seq begin, Seq end, Instant at) {
  if (!makes_sense(begin, end)) return makes_no_sense("a part of a queue");
  // Chunks are found by the first Seq that they have a place for (RQ1).
  const auto from_of = [](const Loaded& one) { return one.chunk->from; };
  std::ranges::sort(loaded_, {}, from_of);
  if (std::ranges::adjacent_find(loaded_, {}, from_of) != loaded_.end())
    return fail("the store is damaged: two parts of a queue begin with one message");
  std::erase_if(loaded_, [](const Loaded& one) { return !one.chunk->is_cold(); });
  std::ranges::sort(loaded_, {}, [](const Loaded& one) { return one.chunk->cold->summary.first; });
  for (const Loaded& one : loaded_) residency_.chunks().index_loaded(*one.chunk);
  if (residency_.cold().size() != loaded_.size())
    return fail("the store is damaged: two parts of a queue begin with one message");
  lanes_.loaded(Seq(end.value() - 1), at);
  for (const auto& [first, chunk] : residency_.cold().by_first())
    if (chunk->cold->summary.due_max > at) residency_.want(*chunk);
  return {};
}

}  // namespace stanchion::engine
