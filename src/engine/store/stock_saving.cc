// A stock in the store: what a checkpoint writes, and how it is loaded.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fetch_soon.h"
#include "engine/stock.h"
#include "engine/store/chunk_record.h"
#include "engine/store/sense.h"
#include "engine/store/stored_message.h"
#include "model/dates.h"

namespace stanchion::engine {
namespace {

constexpr std::uint32_t kSeriesMin = 2;  // A single message takes less memory as a Put.
constexpr int kFetchAhead = 8;

}  // namespace

void Stock::record_changed(Message& stranger) {
  if (unsaved_strangers_.is_unsaved(stranger)) return;
  unsaved_strangers_.add(stranger);
  settle(*stranger.home);
  unsaved_chunks_.add(*stranger.home);
}

void Stock::entry_changed(Message& member) {
  member.entry_changed = true;
  unsaved_chunks_.add(*member.home);
}

void Stock::forget_record(Message& stranger) {
  CHECK(!unsaved_strangers_.is_pending(stranger), "settled before the change");
  unsaved_strangers_.remove(stranger);
  if (std::exchange(stranger.record_saved, false)) to_erase_.strangers.insert(stranger.seq);
}

void Stock::settle(Lane& lane) {
  if (!lanes_.is_pending(lane)) return;
  ++memory_.looked_at;
  lanes_.save_place(lane, *memory_.batch, name_, memory_.checkpoint_at);
}

void Stock::settle(Message& message) {
  settle(*message.lane);
  if (unsaved_strangers_.is_pending(message)) save(message);
}

ChunkSummary Stock::save_members(Chunk& chunk, LaneName lane) {
  CHECK(!chunk.is_cold() || !chunk.is_packed(), "C4: a pack that changes is in memory");
  if (chunk.is_cold()) return chunk.cold->summary;
  // A series may be used only if no other entry is written or erased between its first and last
  // key.
  const bool alone = chunk.strangers == 0 && chunk.removed.empty();
  const bool as_series = alone && chunk.members >= kSeriesMin;
  const bool unpacking = chunk.is_packed();
  Series series;
  if (as_series)
    series = series_between(name_, lane, chunk.first->seq, chunk.last->seq, chunk.members);
  fetch_members(chunk);
  ChunkSummary summary;
  const Message* ahead = chunk.first;
  for (int i = 0; i < kFetchAhead && ahead != nullptr; ++i) ahead = ahead->next;
  for (Message* message = chunk.first; message != nullptr; message = message->next) {
    if (ahead != nullptr) {
      fetch_soon(ahead->content.get());
      ahead = ahead->next;
    }
    summary.add(*message);
    const bool changed = std::exchange(message->entry_changed, false);
    if (std::exchange(message->saved, true) && !changed && !unpacking) continue;
    if (as_series) {
      add_message(series, *message);
    } else {
      memory_.batch->puts.push_back(put_message(name_, lane, *message));
    }
    chunk.saved_in = memory_.checkpoint;
  }
  if (unpacking) erase_pack(chunk, lane);
  if (series.entries.empty()) return summary;
  // A full chunk gets no more messages, and most often all of it is received before the next
  // checkpoint: so it is written as a pack.
  if (!chunk.saved && is_full(chunk)) {
    series.packed = true;
    chunk.pack = chunk.first->seq;
  }
  memory_.batch->series.push_back(std::move(series));
  return summary;
}

// Erases the pack's key, unless a message was or will be written under it: a member, or a stranger
// when the checkpoint began.
void Stock::erase_pack(Chunk& chunk, LaneName lane) {
  const Seq at = std::exchange(chunk.pack, Seq());
  const Message* message = messages_.find(at);
  if (message == nullptr || (!message->saved && !unsaved_strangers_.is_pending(*message)))
    memory_.batch->erased.push_back(message_key(name_, lane, at));
}

void Stock::save(Message& stranger) {
  ++memory_.looked_at;
  unsaved_strangers_.remove(stranger);
  Batch& batch = *memory_.batch;
  const LaneName lane = lane_name(stranger.lane->group);
  if (!std::exchange(stranger.saved, true)) {
    batch.puts.push_back(put_message(name_, lane, stranger));
    stranger.home->saved_in = memory_.checkpoint;
  }
  CHECK(can_be_stranger(stranger, *stranger.home), "what is written of a message can be read");
  Put put{stranger_key(name_, stranger.seq), {}, nullptr};
  ByteWriter writer(put.head);
  writer.u64(lane.high);
  writer.u64(lane.low);
  writer.u64(stranger.home->from.value());
  for (const Instant t : {stranger.entered, stranger.retained_from, stranger.due, stranger.received,
                          stranger.first_received})
    writer.i64(to_millis(t));
  writer.u32(stranger.receive_count);
  writer.u8(static_cast<std::uint8_t>(stranger.state));
  writer.u8(stranger.stays);
  batch.puts.push_back(std::move(put));
  stranger.record_saved = true;
  if (erasing_) erasing_->strangers.erase(stranger.seq);  // It was not a stranger for a while.
}

void Stock::save(Chunk& chunk) {
  memory_.looked_at += 1 + (chunk.is_cold() ? 0 : chunk.members) + chunk.removed.size();
  unsaved_chunks_.remove(chunk);
  Batch& batch = *memory_.batch;
  const LaneName lane = lane_name(chunk.lane.group);
  const ChunkSummary summary = save_members(chunk, lane);
  for (const Seq seq : chunk.removed) batch.erased.push_back(message_key(name_, lane, seq));
  // A read under way may still see the store before this checkpoint.
  if (!chunk.reading && !chunk.peek) chunk.removed_before.clear();
  chunk.removed_before.insert(chunk.removed_before.end(), chunk.removed.begin(),
                              chunk.removed.end());
  chunk.removed.clear();
  const ChunkRecord record{chunk.lane.group, chunk.until, summary,
                           chunk.homed,      chunk.bytes, chunk.is_packed()};
  CHECK(summary.members == chunk.members && chunk.members + chunk.strangers > 0 &&
            chunk.members + chunk.strangers <= chunk.homed && is_possible(record, chunk.from),
        "what is written of a chunk can be read");
  batch.puts.push_back({chunk_key(name_, lane, chunk.from), encode(record), nullptr});
  chunk.saved = true;
}

void Stock::begin_save() {
  CHECK(!erasing_, "one checkpoint at a time");
  unsaved_strangers_.begin();
  unsaved_chunks_.begin();
  lanes_.begin_save();
  if (!to_erase_.empty()) erasing_ = std::make_unique<ToErase>(std::exchange(to_erase_, {}));
}

bool Stock::has_pending() const {
  return unsaved_strangers_.has_pending() || unsaved_chunks_.has_pending() ||
         lanes_.has_pending() || erasing_;
}

// Records of strangers are erased last, when it is known which of them are written.
void Stock::save_next() {
  if (unsaved_strangers_.has_pending()) return save(unsaved_strangers_.first_pending());
  // In the order in which they changed, which sorts quickly.
  if (unsaved_chunks_.has_pending()) return save(unsaved_chunks_.first_pending());
  ++memory_.looked_at;
  if (lanes_.has_pending()) return lanes_.save_next(*memory_.batch, name_, memory_.checkpoint_at);
  if (!erase_next()) erasing_.reset();
}

// False if nothing is left to be erased.
bool Stock::erase_next() {
  Batch& batch = *memory_.batch;
  ToErase& all = *erasing_;
  if (all.next_key < all.keys.size()) {
    batch.erased.push_back(all.keys[all.next_key++]);
    return true;
  }
  if (all.next_dead < all.dead.size()) {
    const DeadTerritory& dead = all.dead[all.next_dead++];
    batch.erased_ranges.push_back(messages_between(name_, dead.lane, dead.from, dead.until));
    return true;
  }
  if (!all.next_stranger) all.next_stranger = all.strangers.begin();
  if (*all.next_stranger == all.strangers.end()) return false;
  batch.erased.push_back(stranger_key(name_, *(*all.next_stranger)++));
  return true;
}

std::size_t Stock::save_some(std::size_t count) {
  const std::uint64_t before = memory_.looked_at;
  while (has_pending() && memory_.looked_at - before < count) save_next();
  return memory_.looked_at - before;
}

// Recovery.

Status Stock::load_chunk(LaneName lane_key, Seq from, std::string_view value, Instant at) {
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
  Chunk& chunk = append_chunk(lane, from);
  chunk.until = record->until;
  chunk.members = summary.members;
  chunk.homed = record->homed;
  chunk.bytes = record->bytes;
  chunk.saved = true;
  if (record->packed) chunk.pack = summary.first;
  loaded_.push_back({lane_key, from, &chunk});
  if (summary.members == 0) {
    list_resident(chunk);
    return {};
  }
  chunk.cold = std::make_unique<ColdMembers>(ColdMembers{summary, {}});
  lane.filled.insert(lane.filled.end(), chunk);
  lane.waiting += summary.members;
  counts_.visible += summary.members;
  return {};
}

// In the order of the store's keys.
std::vector<Stock::Loaded>::const_iterator Stock::first_loaded(LaneName lane, Seq from) const {
  const auto key = [](const Loaded& one) {
    return std::tuple(one.lane.high, one.lane.low, one.from);
  };
  return std::ranges::lower_bound(loaded_, key({lane, from, nullptr}), {}, key);
}

Chunk* Stock::find_loaded(LaneName lane, Seq from) const {
  const auto found = first_loaded(lane, from);
  return found == loaded_.end() || found->lane != lane || found->from != from ? nullptr
                                                                              : found->chunk;
}

Lane* Stock::find_loaded(LaneName lane) const {
  const auto found = first_loaded(lane, Seq());
  return found == loaded_.end() || found->lane != lane ? nullptr : &found->chunk->lane;
}

// What is written, or was read, of a message that is not in line can be of that chunk.
bool Stock::can_be_stranger(const Message& message, const Chunk& home) const {
  for (const Instant t : {message.entered, message.retained_from, message.due, message.received,
                          message.first_received})
    if (!is_date(t)) return false;
  // On FIFO queues delayed messages wait in line, so they are not strangers.
  return message.state <= State::kInFlight && (message.state != State::kDelayed || !fifo_) &&
         (message.state != State::kInFlight || message.receive_count > 0) &&
         home.from <= message.seq && message.seq <= home.until;
}

Status Stock::load_stranger(Seq seq, std::string_view value) {
  ByteReader reader(value);
  const std::uint64_t high = reader.u64();
  const LaneName lane{.low = reader.u64(), .high = high};
  const Seq from(reader.u64());
  auto owned = std::make_unique<Message>();
  owned->seq = seq;
  for (Instant* t : {&owned->entered, &owned->retained_from, &owned->due, &owned->received,
                     &owned->first_received})
    *t = from_millis(reader.i64());
  owned->receive_count = reader.u32();
  owned->state = static_cast<State>(reader.u8());
  owned->stays = reader.u8() != 0;
  Chunk* home = find_loaded(lane, from);
  if (!reader.ok() || !reader.at_end() || home == nullptr || !can_be_stranger(*owned, *home) ||
      messages_.find(seq) != nullptr)
    return makes_no_sense("the record of a message");
  owned->saved = owned->record_saved = true;
  Message& message = keep(std::move(owned));
  set_home(message, *home);
  ++count_of(message.state);
  note_early(message);
  if (message.state == State::kReady) {
    rejoin(message);
    return {};
  }
  if (message.state == State::kDelayed) {
    ++message.lane->delayed;
  } else {
    lock(message);
  }
  timers_.push(message, {message.due, message.seq});
  return {};
}

Status Stock::load_detached(Message& message, Seq from) {
  Chunk* home = find_loaded(lane_name(message.content->group()), from);
  if (home == nullptr || message.seq < home->from || home->until < message.seq ||
      messages_.find(message.seq) != nullptr)
    return makes_no_sense("a message on its way");
  set_home(message, *home);
  if (fifo_) lock(message);
  return {};
}

Status Stock::load_place(LaneName lane, std::string_view value) {
  Lane* found = find_loaded(lane);
  if (found != nullptr) return lanes_.load_place(*found, value);
  // Left behind by a release that did not know places.
  lanes_.forget_place(lane);
  return {};
}

// Checks that chunks, strangers and places are consistent with each other and with the queue, which
// has assigned the Seqs from `begin` up to `end`.
bool Stock::loaded_makes_sense(Seq begin, Seq end) const {
  const bool chunks_do = std::ranges::all_of(loaded_, [&](const Loaded& one) {
    const Chunk& chunk = *one.chunk;
    const std::uint64_t here = std::uint64_t{chunk.members} + chunk.strangers;
    const bool delayed = chunk.is_cold() && chunk.cold->summary.due_max != Instant();
    return here > 0 && here <= chunk.homed && begin <= chunk.from && chunk.until < end &&
           (chunk.pack == Seq() || chunk.strangers == 0) && (fifo_ || !delayed);
  });
  bool places_do = true;
  lanes_.for_each([&](const Lane& lane) { places_do &= lane.place.after < end; });
  return chunks_do && places_do;
}

// In order of Seq the index is built without a search for each of what may be millions.
Status Stock::loaded(Seq begin, Seq end, Instant at) {
  if (!loaded_makes_sense(begin, end)) return makes_no_sense("a part of a queue");
  // Chunks are found by the first Seq that they have a place for (K3).
  const auto from_of = [](const Loaded& one) { return one.chunk->from; };
  std::ranges::sort(loaded_, {}, from_of);
  if (std::ranges::adjacent_find(loaded_, {}, from_of) != loaded_.end())
    return fail("the store is damaged: two parts of a queue begin with one message");
  std::erase_if(loaded_, [](const Loaded& one) { return !one.chunk->is_cold(); });
  std::ranges::sort(loaded_, {}, [](const Loaded& one) { return one.chunk->cold->summary.first; });
  for (const Loaded& one : loaded_) index_cold(*one.chunk);
  if (cold_by_first_.size() != loaded_.size())
    return fail("the store is damaged: two parts of a queue begin with one message");
  loaded_ = {};
  lanes_.loaded(Seq(end.value() - 1), at);
  for (const auto& [first, chunk] : cold_by_first_)
    if (chunk->cold->summary.due_max > at) want_chunk(*chunk);
  return {};
}

}  // namespace stanchion::engine
