#include "engine/stock.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stanchion::engine {
namespace {

// An allocation's header and its rounding up, for a record and a content.
constexpr std::size_t kAllocationOverhead = 32;

}  // namespace

std::size_t memory_of(const Message& message) {
  return sizeof(Message) + kAllocationOverhead +
         (message.content ? message.content->footprint() : 0);
}

Stock::Stock(StockName stock_name, bool fifo, Memory& memory)
    : name(stock_name), structure(memory.structure), lanes(fifo, structure), memory_(memory) {}

Stock::~Stock() {
  forsake();
}

void Stock::forsake() {
  // Once is enough, and it may be another thread that destroys it.
  if (bytes_ > 0) memory_.messages -= std::exchange(bytes_, 0);
  structure.leave();
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
  structure.add(sizeof(Chunk));
  chunk->previous = lane.last_chunk;
  (lane.last_chunk == nullptr ? lane.first_chunk : lane.last_chunk->next) = chunk;
  lane.last_chunk = chunk;
  return *chunk;
}

bool Stock::is_full(const Chunk& chunk) const {
  return chunk.homed >= memory_.options.chunk_messages ||
         chunk.bytes >= memory_.options.chunk_bytes;
}

Chunk& Stock::open_chunk(Message& message) {
  Lane& lane = *message.lane;
  Chunk* chunk = lane.last_chunk;
  const MemoryOptions& options = memory_.options;
  if (chunk == nullptr || chunk->is_cold() || is_full(*chunk)) {
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
  // By itself the store does not have it.
  if (chunk.pack != Seq()) message.saved = false;
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

// Worth it for members that are all that lies between the first and the last of them.
void Stock::fetch_members(const Chunk& chunk) const {
  if (chunk.members == 0) return;
  const std::uint64_t span = chunk.last->seq.value() - chunk.first->seq.value();
  if (span < 2 * std::uint64_t{chunk.members}) messages.fetch(chunk.first->seq, chunk.last->seq);
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
  structure.subtract(sizeof(Chunk));
  delete &chunk;
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
      if (chunk->pack == Seq() || chunk->unsaved_index != kNotInHeap ||
          chunk->pending_index != kNotInHeap)
        continue;
      CHECK(chunk->strangers == 0 && chunk->removed.empty(), "C4: a pack without strangers");
      CHECK(chunk->pack == (chunk->is_cold() ? chunk->cold->summary.first : chunk->first->seq),
            "C4: a pack from its first member on");
    }
  });
  CHECK(cold * kColdBytes + (cold + resident) * sizeof(Chunk) + lanes.bytes() == structure.bytes(),
        "lanes and chunks are accounted for");
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
