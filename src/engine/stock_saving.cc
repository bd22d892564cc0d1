// A stock in the store: what a checkpoint writes of it, and how it is read back.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fetch_soon.h"
#include "engine/stock.h"

namespace stanchion::engine {
namespace {

constexpr std::uint32_t kSeriesMin = 2;  // One message by itself takes less as a Put.
constexpr int kFetchAhead = 8;

}  // namespace

void Stock::mark_unsaved(Chunk& chunk) {
  if (chunk.unsaved_index != kNotInHeap) return;
  chunk.unsaved_index = static_cast<std::uint32_t>(unsaved_chunks_.size());
  unsaved_chunks_.push_back(&chunk);
}

void Stock::changed(Message& message) {
  if (message.unsaved_index != kNotInHeap) return;
  message.unsaved_index = static_cast<std::uint32_t>(unsaved_strangers_.size());
  unsaved_strangers_.push_back(&message);
  mark_unsaved(*message.home);
}

void Stock::entry_changed(Message& message) {
  CHECK(message.home->pending_index == kNotInHeap, "settled before the change");
  message.entry_changed = true;
  mark_unsaved(*message.home);
}

void Stock::forget_unsaved(Message& message) {
  if (message.unsaved_index == kNotInHeap) return;
  unsaved_strangers_.back()->unsaved_index = message.unsaved_index;
  unsaved_strangers_[message.unsaved_index] = unsaved_strangers_.back();
  unsaved_strangers_.pop_back();
  message.unsaved_index = kNotInHeap;
}

ChunkSummary Stock::save_members(Chunk& chunk, LaneName lane) {
  CHECK(!chunk.is_cold() || chunk.pack == Seq(), "C4: a pack that changes is in memory");
  if (chunk.is_cold()) return chunk.cold->summary;
  // Nobody else writes or erases between members that are among themselves.
  const bool alone = chunk.strangers == 0 && chunk.removed.empty();
  const bool as_series = alone && chunk.members >= kSeriesMin;
  const bool unpacking = chunk.pack != Seq();
  Series series;
  if (as_series)
    series = series_between(name, lane, chunk.first->seq, chunk.last->seq, chunk.members);
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
      memory_.batch->puts.push_back(put_message(name, lane, *message));
    }
    chunk.saved_in = memory_.checkpoint;
  }
  if (unpacking) erase_pack(chunk, lane);
  if (series.entries.empty()) return summary;
  // Nothing will join it any more, and most often all of it is received before the next checkpoint.
  if (!chunk.saved && is_full(chunk)) {
    series.packed = true;
    chunk.pack = chunk.first->seq;
  }
  memory_.batch->series.push_back(std::move(series));
  return summary;
}

// Unless something was written in its place: a member, or a stranger when the checkpoint began.
void Stock::erase_pack(Chunk& chunk, LaneName lane) {
  const Seq at = std::exchange(chunk.pack, Seq());
  const Message* message = messages.find(at);
  if (message == nullptr || !message->saved)
    memory_.batch->erased.push_back(message_key(name, lane, at));
}

void Stock::save(Message& stranger) {
  Batch& batch = *memory_.batch;
  const LaneName lane = lane_name(stranger.lane->group);
  if (!std::exchange(stranger.saved, true)) {
    batch.puts.push_back(put_message(name, lane, stranger));
    stranger.home->saved_in = memory_.checkpoint;
  }
  Put put{stranger_key(name, stranger.seq), {}, nullptr};
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
  erased_strangers_.erase(stranger.seq);  // It was none for a while.
}

void Stock::save(Chunk& chunk) {
  pending_chunks_.back()->pending_index = chunk.pending_index;
  pending_chunks_[chunk.pending_index] = pending_chunks_.back();
  pending_chunks_.pop_back();
  chunk.pending_index = kNotInHeap;

  Batch& batch = *memory_.batch;
  const LaneName lane = lane_name(chunk.lane.group);
  const ChunkSummary summary = save_members(chunk, lane);
  for (const Seq seq : chunk.removed) batch.erased.push_back(message_key(name, lane, seq));
  // What is being read may be what the store had before.
  if (!chunk.reading) chunk.removed_before.clear();
  chunk.removed_before.insert(chunk.removed_before.end(), chunk.removed.begin(),
                              chunk.removed.end());
  chunk.removed.clear();
  Put put{chunk_key(name, lane, chunk.from), {}, nullptr};
  ByteWriter writer(put.head);
  writer.text(chunk.lane.group);
  writer.u64(chunk.until.value());
  writer.u32(summary.members);
  writer.u64(summary.first.value());
  writer.u64(summary.last.value());
  writer.u32(chunk.homed);
  writer.u32(chunk.bytes);
  for (const Instant t : {summary.first_entered, summary.last_entered, summary.retained_min,
                          summary.retained_max, summary.due_max})
    writer.i64(to_millis(t));
  writer.u8(chunk.pack != Seq());
  batch.puts.push_back(std::move(put));
  chunk.saved = true;
}

void Stock::begin_save() {
  CHECK(pending_chunks_.empty(), "one checkpoint at a time");
  for (Message* message : std::exchange(unsaved_strangers_, {})) {
    message->unsaved_index = kNotInHeap;
    save(*message);
  }
  // From the back on they are written in the order in which they changed, which sorts quickly.
  pending_chunks_.assign(unsaved_chunks_.rbegin(), unsaved_chunks_.rend());
  unsaved_chunks_.clear();
  for (std::uint32_t i = 0; i < pending_chunks_.size(); ++i) {
    pending_chunks_[i]->unsaved_index = kNotInHeap;
    pending_chunks_[i]->pending_index = i;
  }
  Batch& batch = *memory_.batch;
  lanes.save_places(batch, name);
  for (const Seq seq : std::exchange(erased_strangers_, {}))
    batch.erased.push_back(stranger_key(name, seq));
  for (const Key& key : std::exchange(erased_, {})) batch.erased.push_back(key);
  for (const DeadTerritory& dead : std::exchange(dead_, {}))
    batch.erased_ranges.push_back(messages_between(name, dead.lane, dead.from, dead.until));
}

std::size_t Stock::save_some(std::size_t count) {
  std::size_t looked_at = 0;
  while (!pending_chunks_.empty() && looked_at < count) {
    Chunk& chunk = *pending_chunks_.back();
    looked_at += 1 + (chunk.is_cold() ? 0 : chunk.members);
    save(chunk);
  }
  return looked_at;
}

// Recovery.

Result<Chunk*> Stock::load_chunk(LaneName lane_key, Seq from, std::string_view value) {
  ByteReader reader(value);
  const std::string_view group = reader.text();
  const Seq until(reader.u64());
  ChunkSummary summary;
  summary.members = reader.u32();
  summary.first = Seq(reader.u64());
  summary.last = Seq(reader.u64());
  const std::uint32_t homed = reader.u32();
  const std::uint32_t bytes = reader.u32();
  for (Instant* t : {&summary.first_entered, &summary.last_entered, &summary.retained_min,
                     &summary.retained_max, &summary.due_max})
    *t = from_millis(reader.i64());
  const bool packed = reader.u8() != 0;
  if (!reader.ok() || (packed && summary.members == 0) || lane_name(group) != lane_key)
    return fail("the store is damaged: a chunk makes no sense");
  Lane& lane = lanes.of(group);
  if (lane.last_chunk != nullptr && lane.last_chunk->until >= from)
    return fail("the store is damaged: chunks overlap");
  Chunk& chunk = append_chunk(lane, from);
  chunk.until = until;
  chunk.members = summary.members;
  chunk.homed = homed;
  chunk.bytes = bytes;
  chunk.saved = true;
  if (packed) chunk.pack = summary.first;
  loaded_.push_back({lane_key, from, &chunk});
  if (summary.members == 0) {
    list_resident(chunk);
    return &chunk;
  }
  chunk.cold = std::make_unique<ColdMembers>(ColdMembers{summary, {}});
  if (lane.front == nullptr) lane.front = &chunk;
  lane.waiting += summary.members;
  counts.visible += summary.members;
  return &chunk;
}

// As keys of the store are ordered.
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

// In order of Seq the index is built without a search for each: there may be millions.
void Stock::loaded() {
  std::erase_if(loaded_, [](const Loaded& one) { return !one.chunk->is_cold(); });
  std::ranges::sort(loaded_, {}, [](const Loaded& one) { return one.chunk->cold->summary.first; });
  for (const Loaded& one : loaded_) index_cold(*one.chunk);
  loaded_ = {};
}

void Stock::adopt(Message& message, Chunk& home) {
  message.home = &home;
  message.lane = &home.lane;
  ++home.strangers;
}

}  // namespace stanchion::engine
