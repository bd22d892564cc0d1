#include "engine/stock.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace stanchion::engine {
namespace {

// An allocation's header and its rounding up, for a record and a content.
constexpr std::size_t kAllocationOverhead = 32;

// How much evict() does at a time. The newest chunks are often those that are not saved yet.
constexpr std::size_t kEvictLooksMax = 4096;
constexpr std::size_t kEvictChunksMax = 16;

std::unexpected<Failure> damaged(const Chunk& chunk, std::size_t found) {
  return fail("the store is damaged: of " + std::to_string(chunk.members) +
              " messages from number " + std::to_string(chunk.from.value()) + " on it holds " +
              std::to_string(found));
}

}  // namespace

std::size_t memory_of(const Message& message) {
  return sizeof(Message) + kAllocationOverhead +
         (message.content ? message.content->footprint() : 0);
}

Stock::Stock(StockName stock_name, bool fifo, Memory& memory)
    : name(stock_name), lanes(fifo), memory_(memory) {}

Stock::~Stock() {
  forsake();
}

void Stock::forsake() {
  // Once is enough, and it may be another thread that destroys it.
  if (bytes_ > 0) memory_.messages -= std::exchange(bytes_, 0);
}

Message& Stock::insert(std::unique_ptr<Message> message) {
  const std::size_t size = memory_of(*message);
  bytes_ += size;
  memory_.messages += size;
  return messages.insert(std::move(message));
}

std::unique_ptr<Message> Stock::extract(Message& message) {
  const std::size_t size = memory_of(message);
  bytes_ -= size;
  memory_.messages -= size;
  return messages.extract(message.seq);
}

// Homes.

Chunk& Stock::append_chunk(Lane& lane, Seq from) {
  auto* chunk = new Chunk(lane, from);
  chunk->previous = lane.last_chunk;
  (lane.last_chunk == nullptr ? lane.first_chunk : lane.last_chunk->next) = chunk;
  lane.last_chunk = chunk;
  return *chunk;
}

Chunk& Stock::open_chunk(Message& message) {
  Lane& lane = *message.lane;
  Chunk* chunk = lane.last_chunk;
  const MemoryOptions& options = memory_.options;
  if (chunk == nullptr || chunk->is_cold() || chunk->homed >= options.chunk_messages ||
      chunk->bytes >= options.chunk_bytes) {
    chunk = &append_chunk(lane, message.seq);
    chunk->deep = lane.front != nullptr || counts.visible > options.near_messages;
    list_resident(*chunk);
  }
  settle(*chunk);
  chunk->until = message.seq;
  ++chunk->homed;
  chunk->bytes += static_cast<std::uint32_t>(message.content->footprint());
  message.home = chunk;
  mark_unsaved(*chunk);
  return *chunk;
}

void Stock::join(Message& message) {
  Chunk& chunk = open_chunk(message);
  link_last(chunk, message);
  ++chunk.lane.waiting;
  if (chunk.lane.front == nullptr) chunk.lane.front = &chunk;
}

void Stock::lodge(Message& message) {
  ++open_chunk(message).strangers;
  changed(message);
}

void Stock::link_last(Chunk& chunk, Message& message) {
  CHECK(chunk.last == nullptr || chunk.last->seq < message.seq, "the line is in order of Seq");
  message.previous = chunk.last;
  message.next = nullptr;
  (chunk.last == nullptr ? chunk.first : chunk.last->next) = &message;
  chunk.last = &message;
  message.in_line = true;
  ++chunk.members;
}

void Stock::link_in_order(Chunk& chunk, Message& message) {
  Message* before = chunk.last;
  while (before != nullptr && message.seq < before->seq) before = before->previous;
  message.previous = before;
  message.next = before == nullptr ? chunk.first : before->next;
  (before == nullptr ? chunk.first : before->next) = &message;
  (message.next == nullptr ? chunk.last : message.next->previous) = &message;
  message.in_line = true;
  ++chunk.members;
}

void Stock::unlink(Chunk& chunk, Message& message) {
  (message.previous == nullptr ? chunk.first : message.previous->next) = message.next;
  (message.next == nullptr ? chunk.last : message.next->previous) = message.previous;
  message.previous = message.next = nullptr;
  message.in_line = false;
  --chunk.members;
}

void Stock::come_home(Message& message) {
  Chunk& chunk = *message.home;
  Lane& lane = chunk.lane;
  if (chunk.is_cold()) {
    changed(message);
    return lane.rejoin(message);
  }
  settle(chunk);
  forget_unsaved(message);
  if (std::exchange(message.record_saved, false)) erased_strangers_.insert(message.seq);
  --chunk.strangers;
  link_in_order(chunk, message);
  ++lane.waiting;
  mark_unsaved(chunk);
  if (lane.front == nullptr || chunk.from < lane.front->from) lane.front = &chunk;
}

void Stock::leave(Message& message) {
  Lane& lane = *message.lane;
  CHECK(lane.waiting > 0, "only what waits can leave");
  --lane.waiting;
  if (!message.in_line) {
    lane.returned->remove(message);
    if (lane.returned->empty()) lane.returned.reset();
    return;
  }
  Chunk& chunk = *message.home;
  settle(chunk);
  unlink(chunk, message);
  ++chunk.strangers;
  mark_unsaved(chunk);
  if (chunk.members == 0) find_front(lane);
}

// Members only ever come to the end of a line, so the search never looks at a chunk twice; a
// delayed message that is due moves the front back by itself.
void Stock::find_front(Lane& lane) {
  Chunk* front = lane.front;
  while (front != nullptr && front->members == 0) front = front->next;
  lane.front = front;
  if (front == nullptr || !front->deep || front->is_cold()) return;
  unlist_resident(*front);
  front->deep = false;
  list_resident(*front);
}

void Stock::depart(Message& message) {
  settle(*message.home);
  forget_unsaved(message);
  if (std::exchange(message.record_saved, false)) erased_strangers_.insert(message.seq);
  if (!std::exchange(message.saved, false)) return;
  message.home->removed.push_back(message.seq);
  mark_unsaved(*message.home);
}

void Stock::come_back(Message& message) {
  settle(*message.home);
  // Unless a checkpoint has seen it leave, its content is still there.
  message.saved = std::erase(message.home->removed, message.seq) > 0;
  changed(message);
}

void Stock::part(Message& message) {
  Chunk& chunk = *message.home;
  settle(chunk);
  forget_unsaved(message);
  if (message.record_saved) erased_strangers_.insert(message.seq);
  if (message.saved) {
    chunk.removed.push_back(message.seq);
    mark_unsaved(chunk);
  }
  message.home = nullptr;
  --chunk.strangers;
  bury_if_empty(chunk);
}

void Stock::bury_if_empty(Chunk& chunk) {
  if (chunk.members + chunk.strangers == 0) bury(chunk);
}

// Nothing lives in the chunk's territory any more.
void Stock::bury(Chunk& chunk) {
  if (chunk.saved) {
    const LaneName lane = lane_name(chunk.lane.group);
    erased_.push_back(chunk_key(name, lane, chunk.from));
    // Lines are consumed from their front: most often this territory goes on where the last ended.
    if (chunk.previous == nullptr && !dead_.empty() && dead_.back().lane == lane &&
        dead_.back().until < chunk.from) {
      dead_.back().until = chunk.until;
    } else {
      dead_.push_back({lane, chunk.from, chunk.until});
    }
  }
  remove_chunk(chunk);
}

void Stock::remove_chunk(Chunk& chunk) {
  CHECK(chunk.pending_index == kNotInHeap, "a checkpoint has still to write it");
  Lane& lane = chunk.lane;
  if (chunk.unsaved_index != kNotInHeap) {
    unsaved_chunks_.back()->unsaved_index = chunk.unsaved_index;
    unsaved_chunks_[chunk.unsaved_index] = unsaved_chunks_.back();
    unsaved_chunks_.pop_back();
  }
  if (chunk.is_cold()) {
    unindex_cold(chunk);
  } else {
    unlist_resident(chunk);
  }
  (chunk.previous == nullptr ? lane.first_chunk : chunk.previous->next) = chunk.next;
  (chunk.next == nullptr ? lane.last_chunk : chunk.next->previous) = chunk.previous;
  if (lane.front == &chunk) {
    lane.front = chunk.next;
    find_front(lane);
  }
  delete &chunk;
}

// What the next checkpoint writes.

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
  if (chunk.is_cold()) return chunk.cold->summary;
  ChunkSummary summary;
  for (Message* message = chunk.first; message != nullptr; message = message->next) {
    summary.add(*message);
    const bool changed = std::exchange(message->entry_changed, false);
    if (std::exchange(message->saved, true) && !changed) continue;
    memory_.batch->puts.push_back(put_message(name, lane, *message));
    chunk.saved_in = memory_.checkpoint;
  }
  return summary;
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
  chunk.removed_before = std::exchange(chunk.removed, {});
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

// Leaving memory.

void Stock::list_resident(Chunk& chunk) {
  (chunk.deep ? deep_ : near_).push_back(chunk);
}

void Stock::unlist_resident(Chunk& chunk) {
  ResidentList& list = chunk.deep ? deep_ : near_;
  list.erase(list.iterator_to(chunk));
}

void Stock::index_cold(Chunk& chunk) {
  const ChunkSummary& summary = chunk.cold->summary;
  cold_by_first.emplace(summary.first, &chunk);
  cold_by_expiry.push(chunk, summary.retained_min);
}

void Stock::unindex_cold(Chunk& chunk) {
  cold_by_first.erase(chunk.cold->summary.first);
  cold_by_expiry.remove(chunk);
}

bool Stock::may_leave_memory(const Chunk& chunk) const {
  if (chunk.members == 0 || !chunk.saved || chunk.saved_in > memory_.durable_checkpoint ||
      chunk.pending_index != kNotInHeap)
    return false;
  for (const Message* m = chunk.first; m != nullptr; m = m->next)
    if (!m->saved || m->entry_changed || m->state != State::kReady) return false;
  return true;
}

std::size_t Stock::make_cold(Chunk& chunk) {
  const std::size_t before = bytes_;
  unlist_resident(chunk);
  auto cold = std::make_unique<ColdMembers>();
  for (Message* message = chunk.first; message != nullptr;) {
    Message& leaving = *std::exchange(message, message->next);
    cold->summary.add(leaving);
    if (early.holds(leaving)) early.remove(leaving);
    extract(leaving);
  }
  chunk.first = chunk.last = nullptr;
  chunk.cold = std::move(cold);
  index_cold(chunk);
  merge_into_previous(chunk);
  return before - bytes_;
}

// Small neighbours become one, so that a trickle of messages does not leave a chunk for each.
void Stock::merge_into_previous(Chunk& chunk) {
  Chunk* into = chunk.previous;
  const MemoryOptions& options = memory_.options;
  if (into == nullptr || !into->is_cold() || into->reading || chunk.reading ||
      chunk.strangers > 0 || !into->cold->expiries.empty() ||
      into->homed + chunk.homed > options.chunk_messages ||
      into->bytes + chunk.bytes > options.chunk_bytes)
    return;
  const ChunkSummary added = chunk.cold->summary;
  settle(*into);
  unindex_cold(*into);
  ChunkSummary& summary = into->cold->summary;
  summary.members += added.members;
  summary.last = added.last;
  summary.last_entered = added.last_entered;
  summary.retained_min = std::min(summary.retained_min, added.retained_min);
  summary.retained_max = std::max(summary.retained_max, added.retained_max);
  into->members += chunk.members;
  into->until = chunk.until;
  into->homed += chunk.homed;
  into->bytes += chunk.bytes;
  into->saved_in = std::max(into->saved_in, chunk.saved_in);
  into->removed.insert(into->removed.end(), chunk.removed.begin(), chunk.removed.end());
  into->removed_before.insert(into->removed_before.end(), chunk.removed_before.begin(),
                              chunk.removed_before.end());
  index_cold(*into);
  mark_unsaved(*into);
  if (chunk.saved) erased_.push_back(chunk_key(name, lane_name(chunk.lane.group), chunk.from));
  remove_chunk(chunk);
}

std::size_t Stock::evict(std::size_t target, bool near_too) {
  std::size_t gone = 0;
  std::size_t looks = kEvictLooksMax;
  std::size_t chunks = kEvictChunksMax;
  const auto enough = [&] { return gone >= target || chunks == 0 || looks-- == 0; };
  // The newest of those far away are received last; of those nearby, the oldest are idle longest.
  for (auto it = deep_.end(); it != deep_.begin() && !enough();) {
    Chunk& chunk = *std::prev(it);
    if (may_leave_memory(chunk)) {
      gone += make_cold(chunk);
      --chunks;
    } else {
      --it;
    }
  }
  if (!near_too) return gone;
  for (auto it = near_.begin(); it != near_.end() && !enough();) {
    Chunk& chunk = *it++;
    if (!may_leave_memory(chunk)) continue;
    gone += make_cold(chunk);
    --chunks;
  }
  return gone;
}

std::size_t Stock::evict_contents(std::size_t target) {
  const std::size_t before = bytes_;
  messages.for_each([&](Message& message) {
    if (message.in_line || !message.content || !message.saved || before - bytes_ >= target) return;
    if (message.home->saved_in > memory_.durable_checkpoint) return;
    const std::size_t size = message.content->footprint();
    message.content = nullptr;
    bytes_ -= size;
    memory_.messages -= size;
  });
  return before - bytes_;
}

// Coming back.

ColdRead Stock::read_of(const Chunk& chunk, ColdRead::Purpose purpose) const {
  const ChunkSummary& summary = chunk.cold->summary;
  return {.purpose = purpose,
          .stock = name,
          .group = chunk.lane.group,
          .from = chunk.from,
          .range = messages_between(name, lane_name(chunk.lane.group), summary.first, summary.last),
          .checkpoint = memory_.durable_checkpoint};
}

void Stock::want_chunk(Chunk& chunk) {
  if (std::exchange(chunk.reading, true)) return;
  memory_.wanted.push_back(read_of(chunk, ColdRead::Purpose::kChunk));
}

void Stock::want_expiries(Chunk& chunk) {
  if (std::exchange(chunk.reading, true)) return;
  memory_.wanted.push_back(read_of(chunk, ColdRead::Purpose::kExpiries));
}

void Stock::want_content(Message& message) {
  if (std::exchange(message.reading, true)) return;
  const LaneName lane = lane_name(message.lane->group);
  memory_.wanted.push_back({.purpose = ColdRead::Purpose::kContent,
                            .stock = name,
                            .group = message.lane->group,
                            .from = message.seq,
                            .range = messages_between(name, lane, message.seq, message.seq),
                            .checkpoint = memory_.durable_checkpoint});
}

void Stock::read_ahead(const Lane& lane) {
  const MemoryOptions& options = memory_.options;
  const std::size_t sharing = std::max<std::size_t>(lanes.size(), 1);
  const std::size_t enough = std::max<std::size_t>(
      options.read_ahead / sharing, std::min(options.chunk_messages, options.read_ahead));
  const std::size_t enough_bytes = options.read_ahead_bytes / sharing;
  std::size_t ahead = 0;
  std::size_t bytes = 0;
  Chunk* chunk = lane.front;
  while (chunk != nullptr && (!chunk->is_cold() || chunk->reading)) {
    ahead += chunk->members;
    bytes += chunk->bytes;
    // Half of it is read at once: little by little it takes longer.
    if (ahead > enough / 2 || bytes > enough_bytes / 2) return;
    chunk = chunk->next;
  }
  for (; chunk != nullptr && ahead < enough && bytes <= enough_bytes; chunk = chunk->next) {
    if (chunk->is_cold()) want_chunk(*chunk);
    ahead += chunk->members;
    bytes += chunk->bytes;
  }
}

Chunk* Stock::find_chunk(const std::string& group, Seq from) {
  const Lane* lane = lanes.find(group);
  if (lane == nullptr) return nullptr;
  Chunk* chunk = lane->first_chunk;
  while (chunk != nullptr && chunk->from < from) chunk = chunk->next;
  return chunk != nullptr && chunk->from == from ? chunk : nullptr;
}

bool Stock::is_member(const Chunk& chunk, const StoredMessage& stored) const {
  const auto has = [&](const std::vector<Seq>& seqs) {
    return std::ranges::find(seqs, stored.seq) != seqs.end();
  };
  return (chunk.strangers == 0 || messages.find(stored.seq) == nullptr) && !has(chunk.removed) &&
         !has(chunk.removed_before);
}

Status Stock::bring_in(Chunk& chunk, std::vector<StoredMessage> found, Instant now) {
  std::erase_if(found, [&](const StoredMessage& stored) { return !is_member(chunk, stored); });
  if (found.size() != chunk.members) return damaged(chunk, found.size());
  unindex_cold(chunk);
  chunk.cold.reset();
  chunk.members = 0;
  chunk.deep = false;  // It was asked for because it is wanted soon.
  list_resident(chunk);
  for (StoredMessage& stored : found) {
    auto owned = std::make_unique<Message>();
    owned->seq = stored.seq;
    owned->content = std::move(stored.content);
    owned->lane = &chunk.lane;
    owned->home = &chunk;
    owned->entered = stored.entered;
    owned->retained_from = stored.retained_from;
    owned->due = stored.due;
    owned->receive_count = stored.receive_count;
    owned->first_received = owned->received = stored.first_received;
    owned->saved = true;
    Message& message = insert(std::move(owned));
    link_last(chunk, message);
    if (message.retained_from < message.entered)
      early.push(message, {message.retained_from, message.seq});
    // Only a checkpoint made while messages of a FIFO queue were delayed leaves such ones here.
    if (message.due > now) {
      message.state = State::kDelayed;
      timers.push(message, {message.due, message.seq});
      --counts.visible;
      ++counts.delayed;
    }
  }
  return {};
}

Status Stock::learn_expiries(Chunk& chunk, const std::vector<StoredMessage>& found) {
  std::vector<Expiry> expiries;
  for (const StoredMessage& stored : found)
    if (is_member(chunk, stored))
      expiries.push_back({stored.retained_from, stored.seq, stored.entered});
  if (expiries.size() != chunk.members) return damaged(chunk, expiries.size());
  std::ranges::sort(expiries, std::greater());
  chunk.cold->expiries = std::move(expiries);
  return {};
}

void Stock::set_content(Message& message, ContentPtr content) {
  const std::size_t size = content->footprint();
  bytes_ += size;
  memory_.messages += size;
  message.content = std::move(content);
}

std::vector<StoredMessage> Stock::read_members(const Chunk& chunk, const ReadNow& read) const {
  std::vector<StoredMessage> found = read(read_of(chunk, ColdRead::Purpose::kChunk).range);
  std::erase_if(found, [&](const StoredMessage& stored) { return !is_member(chunk, stored); });
  return found;
}

ContentPtr Stock::read_content(const Message& message, const ReadNow& read) const {
  const LaneName lane = lane_name(message.lane->group);
  const auto found = read(messages_between(name, lane, message.seq, message.seq));
  CHECK(found.size() == 1, "the store has the content of every message that is without");
  return found.front().content;
}

void Stock::drop_members(Chunk& chunk) {
  settle(chunk);
  Lane& lane = chunk.lane;
  counts.visible -= chunk.members;
  lane.waiting -= chunk.members;
  for (const Expiry& expiry : chunk.cold->expiries) chunk.removed.push_back(expiry.seq);
  // With strangers about, the chunk goes on, resident with no members.
  unindex_cold(chunk);
  chunk.cold.reset();
  chunk.members = 0;
  list_resident(chunk);
  mark_unsaved(chunk);
  find_front(lane);
  bury_if_empty(chunk);
}

void Stock::drop_expired_members(Chunk& chunk, Instant deadline) {
  std::vector<Expiry>& expiries = chunk.cold->expiries;
  if (expiries.front().retained_from <= deadline) return drop_members(chunk);
  settle(chunk);
  unindex_cold(chunk);
  while (expiries.back().retained_from <= deadline) {
    chunk.removed.push_back(expiries.back().seq);
    expiries.pop_back();
    --chunk.members;
    --chunk.lane.waiting;
    --counts.visible;
  }
  ChunkSummary& summary = chunk.cold->summary;
  summary.members = chunk.members;
  summary.retained_min = expiries.back().retained_from;
  const Expiry& first = std::ranges::min(expiries, {}, &Expiry::seq);
  summary.first = first.seq;
  summary.first_entered = first.entered;
  index_cold(chunk);
  mark_unsaved(chunk);
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
  if (!reader.ok() || lane_name(group) != lane_key)
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
  loaded_.emplace(std::pair(lane_key, from), &chunk);
  if (summary.members == 0) {
    list_resident(chunk);
    return &chunk;
  }
  chunk.cold = std::make_unique<ColdMembers>(ColdMembers{summary, {}});
  index_cold(chunk);
  if (lane.front == nullptr) lane.front = &chunk;
  lane.waiting += summary.members;
  counts.visible += summary.members;
  return &chunk;
}

Chunk* Stock::find_loaded(LaneName lane, Seq from) const {
  const auto found = loaded_.find({lane, from});
  return found == loaded_.end() ? nullptr : found->second;
}

void Stock::adopt(Message& message, Chunk& home) {
  message.home = &home;
  message.lane = &home.lane;
  ++home.strangers;
}

void Stock::check_invariants() const {
  std::size_t bytes = 0;
  messages.for_each([&](const Message& m) { bytes += memory_of(m); });
  CHECK(bytes == bytes_, "memory is accounted for");
  std::size_t cold = 0;
  std::size_t resident = 0;
  lanes.for_each([&](const Lane& lane) {
    for (const Chunk* chunk = lane.first_chunk; chunk != nullptr; chunk = chunk->next) {
      if (chunk->is_cold()) {
        ++cold;
        const auto found = cold_by_first.find(chunk->cold->summary.first);
        CHECK(found != cold_by_first.end() && found->second == chunk, "K2: found by first");
        CHECK(cold_by_expiry.key_of(*chunk) == chunk->cold->summary.retained_min, "K2: by expiry");
      } else {
        ++resident;
      }
    }
  });
  CHECK(cold == cold_by_first.size() && cold == cold_by_expiry.size(), "K2: cold chunks");
  CHECK(resident == static_cast<std::size_t>(std::ranges::distance(deep_)) +
                        static_cast<std::size_t>(std::ranges::distance(near_)),
        "K2: resident chunks");
  CHECK(cold_by_expiry.is_sound(), "K2: the heap of expiries is sound");
  for (std::size_t i = 0; i < unsaved_chunks_.size(); ++i)
    CHECK(unsaved_chunks_[i]->unsaved_index == i, "K1: unsaved chunks");
  for (std::size_t i = 0; i < pending_chunks_.size(); ++i)
    CHECK(pending_chunks_[i]->pending_index == i, "K1: pending chunks");
  for (std::size_t i = 0; i < unsaved_strangers_.size(); ++i)
    CHECK(unsaved_strangers_[i]->unsaved_index == i && !unsaved_strangers_[i]->in_line,
          "K1: unsaved strangers");
}

}  // namespace stanchion::engine
