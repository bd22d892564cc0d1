#include "engine/store/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/fetch_soon.h"
#include "engine/store/chunk_record.h"
#include "engine/store/detached_record.h"
#include "engine/store/stored_message.h"

namespace stanchion::engine {
namespace {

constexpr std::uint32_t kSeriesMin = 2;  // A single message takes less memory as a Put.
constexpr int kFetchAhead = 8;

}  // namespace

void CheckpointWriter::record_changed(Message& detached) {
  if (unsaved_detached_.is_unsaved(detached)) return;
  unsaved_detached_.add(detached);
  settle(*detached.home);
  chunk_changed(*detached.home);
}

void CheckpointWriter::entry_changed(Message& member) {
  member.entry_changed = true;
  chunk_changed(*member.home);
}

void CheckpointWriter::forget_record(Message& detached) {
  CHECK(!unsaved_detached_.is_pending(detached), "settled before the change");
  unsaved_detached_.remove(detached);
  if (!std::exchange(detached.record_saved, false)) return;
  to_erase_.detached.insert(detached.seq);
  erasures_.add(1);
}

void CheckpointWriter::forget(Chunk& chunk) {
  CHECK(!unsaved_chunks_.is_pending(chunk), "a checkpoint has still to write it");
  unsaved_chunks_.remove(chunk);
  forget_work(chunk);
}

// In shares of the chunk's bytes, as if its messages had one size.
std::uint32_t CheckpointWriter::left_to_unpack(const Chunk& chunk) {
  if (!chunk.is_packed()) return 0;
  const std::uint64_t left = std::uint64_t{chunk.members} + chunk.detached;
  return static_cast<std::uint32_t>(chunk.bytes * left / std::max(chunk.homed, 1U));
}

void CheckpointWriter::count_work(Chunk& chunk) {
  forget_work(chunk);
  chunk.to_unpack = left_to_unpack(chunk);
  to_unpack_.add(chunk.to_unpack);
  chunk.to_erase = static_cast<std::uint32_t>(chunk.removed.size());
  erasures_.add(chunk.to_erase);
}

void CheckpointWriter::forget_work(Chunk& chunk) {
  to_unpack_.subtract(std::exchange(chunk.to_unpack, 0));
  erasures_.subtract(std::exchange(chunk.to_erase, 0));
}

void CheckpointWriter::add_to_erase(Key key) {
  to_erase_.keys.push_back(key);
  erasures_.add(1);
}

void CheckpointWriter::erase_record(const Chunk& chunk) {
  if (chunk.saved) add_to_erase(chunk_key(name_, lane_name(chunk.lane.group), chunk.from));
}

std::uint64_t CheckpointWriter::erase(const Chunk& chunk) {
  CHECK(chunk.members + chunk.detached == 0, "no message of the chunk's territory is left");
  if (!chunk.saved) return 0;
  const LaneName lane = lane_name(chunk.lane.group);
  add_to_erase(chunk_key(name_, lane, chunk.from));
  // Lines are consumed from their front, so most often this territory continues the last one.
  std::vector<DeadTerritory>& dead = to_erase_.dead;
  if (chunk.previous == nullptr && !dead.empty() && dead.back().lane == lane &&
      dead.back().until < chunk.from) {
    dead.back().until = chunk.until;
  } else {
    dead.push_back({lane, chunk.from, chunk.until});
    erasures_.add(1);
  }
  return memory_.checkpoint + 1;
}

Batch& CheckpointWriter::batch() {
  CHECK(memory_.batch != nullptr, "what is pending belongs to a checkpoint under way");
  return *memory_.batch;
}

void CheckpointWriter::save(Lane& lane) {
  ++memory_.looked_at;
  lanes_.save_place(lane, batch(), name_, memory_.checkpoint_at);
}

ChunkSummary CheckpointWriter::save_members(Chunk& chunk, LaneName lane) {
  CHECK(!chunk.is_cold() || !chunk.is_packed(), "C4: a pack that changes is in memory");
  if (chunk.is_cold()) return chunk.cold->summary;
  // A series may be used only if no other entry is written or erased between its first and last
  // key.
  const bool alone = chunk.detached == 0 && chunk.removed.empty();
  const bool as_series = alone && chunk.members >= kSeriesMin;
  const bool unpacking = chunk.is_packed();
  Series series;
  if (as_series)
    series = series_between(name_, lane, chunk.first->seq, chunk.last->seq, chunk.members);
  fetch_members(messages_, chunk);
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
      batch().puts.push_back(put_message(name_, lane, *message));
    }
    chunk.saved_in = memory_.checkpoint;
  }
  if (unpacking) erase_pack(chunk, lane);
  if (series.entries.empty()) return summary;
  // A full chunk gets no more messages, and most often all of it is received before the next
  // checkpoint: so it is written as a pack.
  if (!chunk.saved && memory_.options.fill_a_chunk(chunk.homed, chunk.bytes)) {
    series.packed = true;
    chunk.pack = chunk.first->seq;
  }
  batch().series.push_back(std::move(series));
  return summary;
}

// Erases the pack's key, unless a message was or will be written under it: a member, or a detached
// message when the checkpoint began.
void CheckpointWriter::erase_pack(Chunk& chunk, LaneName lane) {
  const Seq at = std::exchange(chunk.pack, Seq());
  const Message* message = messages_.find(at);
  if (message == nullptr || (!message->saved && !unsaved_detached_.is_pending(*message)))
    batch().erased.push_back(message_key(name_, lane, at));
}

void CheckpointWriter::save(Message& detached) {
  ++memory_.looked_at;
  unsaved_detached_.remove(detached);
  Batch& batch = this->batch();
  const LaneName lane = lane_name(detached.lane->group);
  if (!std::exchange(detached.saved, true)) {
    batch.puts.push_back(put_message(name_, lane, detached));
    detached.home->saved_in = memory_.checkpoint;
  }
  CHECK(can_be_detached(detached, *detached.home, fifo_),
        "what is written of a message can be read");
  batch.puts.push_back(
      {detached_key(name_, detached.seq), encode_detached(detached, lane), nullptr});
  detached.record_saved = true;
  if (erasing_)
    erasing_->detached.erase(detached.seq);  // It was not a detached message for a while.
}

void CheckpointWriter::save(Chunk& chunk) {
  memory_.looked_at += 1 + (chunk.is_cold() ? 0 : chunk.members) + chunk.removed.size();
  unsaved_chunks_.remove(chunk);
  forget_work(chunk);
  Batch& batch = this->batch();
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
  CHECK(summary.members == chunk.members && chunk.members + chunk.detached > 0 &&
            chunk.members + chunk.detached <= chunk.homed && is_possible(record, chunk.from),
        "what is written of a chunk can be read");
  batch.puts.push_back({chunk_key(name_, lane, chunk.from), encode(record), nullptr});
  chunk.saved = true;
}

void CheckpointWriter::begin() {
  CHECK(!erasing_, "one checkpoint at a time");
  unsaved_detached_.begin();
  unsaved_chunks_.begin();
  lanes_.begin_save();
  if (to_erase_.empty()) return;
  erasures_.subtract(to_erase_.size());
  erasing_ = std::make_unique<ToErase>(std::exchange(to_erase_, {}));
}

bool CheckpointWriter::has_pending() const {
  return unsaved_detached_.has_pending() || unsaved_chunks_.has_pending() || lanes_.has_pending() ||
         erasing_;
}

// Records of detached messages are erased last, when it is known which of them are written.
void CheckpointWriter::save_next() {
  if (unsaved_detached_.has_pending()) return save(unsaved_detached_.first_pending());
  // In the order in which they changed, which sorts quickly.
  if (unsaved_chunks_.has_pending()) return save(unsaved_chunks_.first_pending());
  ++memory_.looked_at;
  if (lanes_.has_pending()) return lanes_.save_next(batch(), name_, memory_.checkpoint_at);
  if (!erase_next()) erasing_.reset();
}

// False if nothing is left to be erased.
bool CheckpointWriter::erase_next() {
  Batch& batch = this->batch();
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
  if (!all.next_detached) all.next_detached = all.detached.begin();
  if (*all.next_detached == all.detached.end()) return false;
  batch.erased.push_back(detached_key(name_, *(*all.next_detached)++));
  return true;
}

std::size_t CheckpointWriter::save_some(std::size_t count) {
  const std::uint64_t before = memory_.looked_at;
  while (has_pending() && memory_.looked_at - before < count) save_next();
  return memory_.looked_at - before;
}

void CheckpointWriter::check_invariants() const {
  CHECK(unsaved_chunks_.is_sound(), "K1: chunks to be written");
  CHECK(unsaved_detached_.is_sound(), "K1: detached messages to be written");
  unsaved_detached_.for_each([&](const Message& detached) {
    CHECK(!detached.in_line, "K2: only detached messages have records");
    CHECK(!unsaved_detached_.is_unsaved(detached) || unsaved_chunks_.is_unsaved(*detached.home),
          "K2: the chunk of an unsaved detached message is unsaved");
    CHECK(!to_erase_.detached.contains(detached.seq) || !detached.record_saved,
          "K3: what will be erased counts as erased");
  });
  std::size_t to_unpack = 0;
  std::size_t to_erase = to_erase_.size();
  unsaved_chunks_.for_each([&](const Chunk& chunk) {
    CHECK(chunk.to_unpack == left_to_unpack(chunk), "K4: each counts what is left of it");
    to_unpack += chunk.to_unpack;
    CHECK(chunk.to_erase == chunk.removed.size(), "K5: each counts what it has lost");
    to_erase += chunk.to_erase;
  });
  CHECK(to_unpack == to_unpack_.bytes(), "K4");
  CHECK(to_erase == erasures_.bytes(), "K5");
  CHECK(!erasing_ || memory_.batch != nullptr, "K3: a checkpoint under way erases it");
}

}  // namespace stanchion::engine
