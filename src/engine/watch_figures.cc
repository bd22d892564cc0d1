#include "engine/watch_figures.h"

#include "model/limits.h"

namespace stanchion::engine {
namespace {

// How many messages or chunks are looked at in search of the oldest one that counts: some 10 µs.
constexpr std::size_t kLooksMax = 1'000;

// Received again and again in vain. A dead letter was received before it came, and counts.
bool is_poison(const Message& message) {
  return message.receive_count > limits::kWatchedReceivesMax &&
         message.first_received >= message.entered;
}

// If the search ends before it finds one, the last message that was looked at stands for it: the
// age is then too high rather than too low.
std::optional<Instant> oldest_watched(bool fifo, const LaneSet& lanes, const MessageTable& messages,
                                      const ColdChunks& cold, bool quiet_only) {
  std::size_t looks = 0;
  const Message* first = nullptr;
  messages.for_each_while([&](const Message& message) {
    const bool counts =
        (fifo || !is_poison(message)) && (!quiet_only || !lanes.is_noisy(*message.lane));
    if (counts || ++looks == kLooksMax) first = &message;
    return first == nullptr;
  });
  looks = 0;
  for (const auto& [seq, chunk] : cold.by_first()) {
    if (first != nullptr && first->seq < seq) break;
    if (!quiet_only || !lanes.is_noisy(chunk->lane) || ++looks == kLooksMax)
      return chunk->cold->summary.first_entered;
  }
  return first == nullptr ? std::nullopt : std::optional(first->entered);
}

}  // namespace

WatchFigures watch_figures(bool fifo, const LaneSet& lanes, const MessageStates& states,
                           const MessageTable& messages, const ColdChunks& cold) {
  WatchFigures figures;
  figures.oldest = oldest_watched(fifo, lanes, messages, cold, false);
  figures.busy_groups = states.locked_lanes();
  figures.quiet = states.counts();
  const std::size_t noisy = lanes.noisy_count();
  for (std::size_t i = 0; i < noisy; ++i) {
    const Lane& lane = lanes.noisy(i);
    figures.quiet.visible -= lane.waiting;
    figures.quiet.in_flight -= lane.locks;
    figures.quiet.delayed -= lane.delayed;
  }
  figures.oldest_quiet =
      noisy == 0 ? figures.oldest : oldest_watched(fifo, lanes, messages, cold, true);
  return figures;
}

}  // namespace stanchion::engine
