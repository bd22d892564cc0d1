// Looking at messages without receiving them: nothing here changes the queue, and what is read from
// the store for it is forgotten again.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/stock.h"

namespace stanchion::engine {
namespace {

Sighting sighting_of(const Message& message, ContentPtr content) {
  return {.seq = message.seq,
          .content = std::move(content),
          .state = message.state,
          .entered = message.entered,
          .retained_from = message.retained_from,
          .due = message.due,
          .received = message.received,
          .first_received = message.first_received,
          .receive_count = message.receive_count};
}

// A cold message is ready.
Sighting sighting_of(const StoredMessage& stored) {
  return {.seq = stored.seq,
          .content = stored.content,
          .state = State::kReady,
          .entered = stored.entered,
          .retained_from = stored.retained_from,
          .due = stored.due,
          .received = last_receive_of(*stored.content),
          .first_received = stored.first_received,
          .receive_count = stored.receive_count};
}

ContentPtr content_among(const std::vector<StoredMessage>& found, Seq seq) {
  const auto at = std::ranges::lower_bound(found, seq, {}, &StoredMessage::seq);
  return at == found.end() || at->seq != seq ? nullptr : at->content;
}

}  // namespace

// The first chunk of the lane that may have a message behind `after`. A line may have a hundred
// thousand chunks, so the search begins near the position if a chunk with members is found there.
Chunk* Stock::first_chunk_behind(const Lane& lane, Seq after) const {
  Chunk* near = lane.last_filled_by(after);
  Chunk* chunk = near != nullptr ? near : lane.first_chunk;
  for (; chunk != nullptr && chunk->until <= after; chunk = chunk->next) ++chunk->looks;
  return chunk;
}

// What is in memory of the chunk behind the position, in order. Where the look must end early,
// `until` is set to the last message that was considered.
std::vector<const Message*> Stock::in_memory_behind(const Chunk& chunk, Peek& peek,
                                                    Seq& until) const {
  std::vector<const Message*> here;
  if (chunk.strangers == 0) {
    for (const Message* m = chunk.first; m != nullptr; m = m->next)
      if (peek.at.after < m->seq) here.push_back(m);
    peek.looks -= std::min(peek.looks, here.size());
    return here;
  }
  // Strangers are only found by their numbers, among those of other lanes.
  const Seq first = std::max(chunk.from, Seq(peek.at.after.value() + 1));
  messages_.table().for_each_between(first, chunk.until, [&](const Message& m) {
    if (m.home == &chunk) here.push_back(&m);
    until = m.seq;
    return --peek.looks > 0;
  });
  if (peek.looks > 0) until = chunk.until;
  return here;
}

// Whether something of the chunk that is wanted is neither in memory nor was read for this.
bool Stock::needs_read(const Chunk& chunk, const Peek& peek) const {
  const bool was_read = chunk.peek && chunk.peek->ended;
  if (chunk.is_cold() && peek.ready && !was_read && peek.at.after < chunk.cold->summary.last)
    return true;
  const auto lacks = [&](const Message& m) {
    return !m.content && peek.wants(m.state) &&
           !(was_read && content_among(chunk.peek->found, m.seq));
  };
  bool needs = false;
  if (chunk.strangers == 0) {
    // A delayed message may have joined the line without its content.
    for (const Message* m = chunk.first; m != nullptr && !needs; m = m->next)
      needs = peek.at.after < m->seq && lacks(*m);
    return needs;
  }
  const Seq first = std::max(chunk.from, Seq(peek.at.after.value() + 1));
  std::size_t looks = peek.looks;
  messages_.table().for_each_between(first, chunk.until, [&](const Message& m) {
    needs = m.home == &chunk && lacks(m);
    return !needs && --looks > 0;
  });
  return needs;
}

// Requests what is needed to look at the chunk, and at those behind it that will be needed next.
void Stock::want_for(const Peek& peek, const Lane* lane, Chunk* chunk) {
  std::size_t chunks = limits::kPeekChunksMax;
  std::size_t bytes = limits::kPeekReadBytesMax;
  std::size_t messages = peek.search.empty() ? peek.messages_max : SIZE_MAX;
  Peek ahead = peek;
  while (lane != nullptr) {
    for (; chunk != nullptr; chunk = chunk->next) {
      if (needs_read(*chunk, ahead)) {
        reads_.want_peek(*chunk);
        --chunks;
      }
      bytes -= std::min<std::size_t>(bytes, chunk->bytes);
      messages -= std::min<std::size_t>(messages, chunk->members);
      if (chunks == 0 || bytes == 0 || messages == 0 || --ahead.looks == 0) return;
    }
    lane = peek.group ? nullptr : lanes_.next_born(*lane);
    if (lane == nullptr) return;
    ahead.at = {lane->born, Seq()};
    chunk = lane->first_chunk;
  }
}

Status Stock::take_peek(Chunk& chunk, const ColdRead& read, std::vector<StoredMessage> found) {
  if (!chunk.peek || chunk.peek->number != read.peek) return {};
  if (chunk.is_cold()) {
    std::vector<StoredMessage> members = found;
    std::erase_if(members, [&](const StoredMessage& stored) { return !is_member(chunk, stored); });
    if (members.size() != chunk.members || !are_members(chunk, members))
      return fail("the store is damaged: it does not hold the messages that it should");
  }
  chunk.peek->found = std::move(found);
  chunk.peek->ended = true;
  return {};
}

// Looks at the messages of the chunk; false if the page ends within it.
bool Stock::look_at(const Chunk& chunk, Peek& peek) const {
  Seq until = chunk.until;
  const std::vector<const Message*> here = in_memory_behind(chunk, peek, until);
  const std::vector<StoredMessage> none;
  const auto& read = chunk.peek ? chunk.peek->found : none;
  std::vector<Sighting> all;
  for (const Message* m : here)
    if (peek.wants(m->state))
      all.push_back(sighting_of(*m, m->content ? m->content : content_among(read, m->seq)));
  if (chunk.is_cold() && peek.ready)
    for (const StoredMessage& stored : read)
      if (peek.at.after < stored.seq && stored.seq <= until && is_member(chunk, stored))
        all.push_back(sighting_of(stored));
  std::ranges::sort(all, {}, &Sighting::seq);
  for (Sighting& one : all) {
    CHECK(one.content != nullptr, "needs_read() has seen to the contents");
    if (!peek.take(std::move(one))) return false;
  }
  peek.moved = true;
  peek.at.after = until;
  return until == chunk.until && peek.looks > 0;
}

void Stock::peek(Peek& peek) {
  const Lane* lane = peek.group ? lanes_.find(*peek.group) : lanes_.first_born_from(peek.at.lane);
  for (; lane != nullptr; lane = peek.group ? nullptr : lanes_.next_born(*lane)) {
    if (lane->born != peek.at.lane) peek.at = {lane->born, Seq()};
    if (peek.looks == 0) return;
    for (Chunk* chunk = first_chunk_behind(*lane, peek.at.after); chunk != nullptr;
         chunk = chunk->next) {
      if (peek.found.size() >= peek.messages_max || peek.looks == 0) return;
      if (needs_read(*chunk, peek)) {
        // Chunks that were requested together are kept until the last of them has been read: so
        // that one is worth waiting for.
        const bool under_way = chunk->peek && !chunk->peek->ended;
        peek.blocked = under_way || !peek.moved;
        if (peek.blocked && !under_way) want_for(peek, lane, chunk);
        return;
      }
      if (!look_at(*chunk, peek)) return;
      --peek.looks;
    }
    peek.looks -= peek.looks > 0;
  }
  peek.finished = true;
}

}  // namespace stanchion::engine
