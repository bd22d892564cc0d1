#include "engine/store/peek_walk.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/store/cold_members.h"

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

// What is in memory of the chunk behind the position, in order. Where the look must end early,
// `until` is set to the last message that was considered.
std::vector<const Message*> PeekWalk::in_memory_behind(const Chunk& chunk, Seq& until) {
  std::vector<const Message*> here;
  if (chunk.detached == 0) {
    for (const Message* m = chunk.first; m != nullptr; m = m->next)
      if (peek_.at.after < m->seq) here.push_back(m);
    peek_.looks -= std::min(peek_.looks, here.size());
    return here;
  }
  // Detached messages are only found by their numbers, among those of other lanes.
  const Seq first = std::max(chunk.from, Seq(peek_.at.after.value() + 1));
  messages_.for_each_between(first, chunk.until, [&](const Message& m) {
    if (m.home == &chunk) here.push_back(&m);
    until = m.seq;
    return --peek_.looks > 0;
  });
  if (peek_.looks > 0) until = chunk.until;
  return here;
}

// Whether something of the chunk that is wanted is neither in memory nor was read for this.
bool PeekWalk::needs_read(const Chunk& chunk, const Peek& peek) const {
  const bool was_read = chunk.peek && chunk.peek->ended;
  if (chunk.is_cold() && peek.ready && !was_read && peek.at.after < chunk.cold->summary.last)
    return true;
  const auto lacks = [&](const Message& m) {
    return !m.content && peek.wants(m.state) &&
           !(was_read && content_among(chunk.peek->found, m.seq));
  };
  bool needs = false;
  if (chunk.detached == 0) {
    // A delayed message may have joined the line without its content.
    for (const Message* m = chunk.first; m != nullptr && !needs; m = m->next)
      needs = peek.at.after < m->seq && lacks(*m);
    return needs;
  }
  const Seq first = std::max(chunk.from, Seq(peek.at.after.value() + 1));
  std::size_t looks = peek.looks;
  messages_.for_each_between(first, chunk.until, [&](const Message& m) {
    needs = m.home == &chunk && lacks(m);
    return !needs && --looks > 0;
  });
  return needs;
}

// Requests what is needed to look at the chunk, and at those behind it that will be needed next.
void PeekWalk::want_for(const Lane* lane, Chunk* chunk) {
  std::size_t chunks = limits::kPeekChunksMax;
  std::size_t bytes = limits::kPeekReadBytesMax;
  std::size_t messages = peek_.search.empty() ? peek_.messages_max : SIZE_MAX;
  Peek ahead = peek_;
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
    lane = peek_.group ? nullptr : lanes_.next_born(*lane);
    if (lane == nullptr) return;
    ahead.at = {lane->born, Seq()};
    chunk = lane->first_chunk;
  }
}

// Looks at the messages of the chunk; false if the page ends within it.
bool PeekWalk::look_at(const Chunk& chunk) {
  Seq until = chunk.until;
  const std::vector<const Message*> here = in_memory_behind(chunk, until);
  const std::vector<StoredMessage> none;
  const auto& read = chunk.peek ? chunk.peek->found : none;
  std::vector<Sighting> all;
  for (const Message* m : here)
    if (peek_.wants(m->state))
      all.push_back(sighting_of(*m, m->content ? m->content : content_among(read, m->seq)));
  if (chunk.is_cold() && peek_.ready)
    for (const StoredMessage& stored : read)
      if (peek_.at.after < stored.seq && stored.seq <= until && is_member(messages_, chunk, stored))
        all.push_back(sighting_of(stored));
  std::ranges::sort(all, {}, &Sighting::seq);
  for (Sighting& one : all) {
    CHECK(one.content != nullptr, "needs_read() has seen to the contents");
    if (!peek_.take(std::move(one))) return false;
  }
  peek_.moved = true;
  peek_.at.after = until;
  return until == chunk.until && peek_.looks > 0;
}

void PeekWalk::run() {
  const Lane* lane =
      peek_.group ? lanes_.find(*peek_.group) : lanes_.first_born_from(peek_.at.lane);
  for (; lane != nullptr; lane = peek_.group ? nullptr : lanes_.next_born(*lane)) {
    if (lane->born != peek_.at.lane) peek_.at = {lane->born, Seq()};
    if (peek_.looks == 0) return;
    for (Chunk* chunk = lane->first_chunk_behind(peek_.at.after); chunk != nullptr;
         chunk = chunk->next) {
      if (peek_.found.size() >= peek_.messages_max || peek_.looks == 0) return;
      if (needs_read(*chunk, peek_)) {
        // Chunks that were requested together are kept until the last of them has been read: so
        // that one is worth waiting for.
        const bool under_way = chunk->peek && !chunk->peek->ended;
        peek_.blocked = under_way || !peek_.moved;
        if (peek_.blocked && !under_way) want_for(lane, chunk);
        return;
      }
      if (!look_at(*chunk)) return;
      --peek_.looks;
    }
    peek_.looks -= peek_.looks > 0;
  }
  peek_.finished = true;
}

}  // namespace stanchion::engine
