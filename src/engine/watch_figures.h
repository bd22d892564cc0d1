// What a stock tells those who watch it.
#pragma once

#include <cstddef>
#include <optional>

#include "base/time.h"
#include "engine/cold_chunks.h"
#include "engine/lane_set.h"
#include "engine/message_states.h"
#include "engine/message_table.h"

namespace stanchion::engine {

// Figures that CloudWatch shows, in its words, besides the counts. Approximations where the exact
// figure would need a look at every message.
struct WatchFigures {
  // When the oldest message came that was not received more than three times in vain, on standard
  // queues; nullopt if there is none.
  std::optional<Instant> oldest;
  // Groups with messages in flight, on FIFO queues also with messages that are leaving.
  std::size_t busy_groups = 0;
  // Fair queues: without the messages of noisy groups.
  Counts quiet;
  std::optional<Instant> oldest_quiet;
};

WatchFigures watch_figures(bool fifo, const LaneSet& lanes, const MessageStates& states,
                           const MessageTable& messages, const ColdChunks& cold);

}  // namespace stanchion::engine
