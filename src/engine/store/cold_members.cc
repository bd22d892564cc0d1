#include "engine/store/cold_members.h"

#include <algorithm>
#include <string>

#include "engine/lane.h"

namespace stanchion::engine {

bool is_member(const MessageTable& messages, const Chunk& chunk, const StoredMessage& stored) {
  const auto has = [&](const std::vector<Seq>& seqs) {
    return std::ranges::find(seqs, stored.seq) != seqs.end();
  };
  return (chunk.detached == 0 || messages.find(stored.seq) == nullptr) && !has(chunk.removed) &&
         !has(chunk.removed_before);
}

bool are_members(const MessageTable& messages, const Chunk& chunk,
                 const std::vector<StoredMessage>& found) {
  const ChunkSummary& summary = chunk.cold->summary;
  Seq above;
  Instant since = summary.first_entered;
  for (const StoredMessage& stored : found) {
    if (stored.seq <= above || stored.seq < summary.first || summary.last < stored.seq ||
        stored.entered < since || summary.last_entered < stored.entered ||
        stored.retained_from < summary.retained_min ||
        summary.retained_max < stored.retained_from ||
        (stored.content && stored.content->group() != chunk.lane.group) ||
        messages.find(stored.seq) != nullptr)
      return false;
    above = stored.seq;
    since = stored.entered;
  }
  return true;
}

Status take_members(const MessageTable& messages, const Chunk& chunk,
                    std::vector<StoredMessage>& found) {
  std::erase_if(found,
                [&](const StoredMessage& stored) { return !is_member(messages, chunk, stored); });
  if (found.size() != chunk.members)
    return fail("the store is damaged: of " + std::to_string(chunk.members) +
                " messages from number " + std::to_string(chunk.from.value()) + " on it holds " +
                std::to_string(found.size()));
  if (!are_members(messages, chunk, found))
    return fail("the store is damaged: messages make no sense");
  return {};
}

}  // namespace stanchion::engine
