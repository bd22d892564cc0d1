// One look at the messages of a stock (see peek.h): nothing here changes the queue, and what is read
// from the store for it is forgotten again.
#pragma once

#include <vector>

#include "engine/chunk.h"
#include "engine/lane_set.h"
#include "engine/message_table.h"
#include "engine/peek.h"
#include "engine/store/read_requests.h"

namespace stanchion::engine {

class PeekWalk {
 public:
  PeekWalk(const LaneSet& lanes, const MessageTable& messages, ReadRequests& reads, Peek& peek)
      : lanes_(lanes), messages_(messages), reads_(reads), peek_(peek) {}

  // Looks at messages from the position of the peek on. If something must be read first, it is
  // requested.
  void run();

 private:
  std::vector<const Message*> in_memory_behind(const Chunk& chunk, Seq& until);
  bool needs_read(const Chunk& chunk, const Peek& peek) const;
  bool look_at(const Chunk& chunk);
  void want_for(const Lane* lane, Chunk* chunk);

  const LaneSet& lanes_;
  const MessageTable& messages_;
  ReadRequests& reads_;
  Peek& peek_;
};

}  // namespace stanchion::engine
