// What a shard tells of itself and its queues to those who watch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "broker/figures_line.h"
#include "engine/last_words.h"
#include "engine/queue.h"
#include "journal/journal.h"
#include "model/activity.h"
#include "model/ids.h"
#include "model/request.h"
#include "model/size_distribution.h"

namespace stanchion::broker {

struct QueueFigures {
  QueueRef queue;
  engine::Counts counts;
  Activity activity;
  std::optional<Duration> oldest_age;  // None: there is no message.
  std::size_t noisy_groups = 0;
  std::size_t groups = 0;
  engine::WatchFigures watched{};
  Instant created{};
  Instant used{};            // When a client last called it, as far as is known.
  RecentSizes sent_sizes{};  // For the history only.
  engine::HabitsAt habits;
  std::int64_t retention_seconds = 0;
  std::int64_t visibility_seconds = 0;
  std::string dead_letter_target;  // The ARN of its dead-letter queue; empty: it has none.
  bool fifo = false;
};

struct ShardFigures {
  ShardIndex shard;
  bool served = true;                // False: another node of the fleet does, and this one follows.
  std::size_t queue_count = 0;       // Of all …
  std::vector<QueueFigures> queues;  // … those that were asked for.
  // By account, how many more were asked for than one account may have here.
  std::map<std::string, std::size_t> left_out;
  // Queues that were deleted in the last minutes, the first one first. For the history only.
  std::vector<engine::LastWord> deleted_queues;
  Instant now{};  // By which ages were computed.
  journal::JournalFigures journal;
  bool disk_is_full = false;
  std::uint64_t checkpoints = 0;
  std::uint64_t cold_reads = 0;
  std::size_t message_bytes = 0;
  std::size_t structure_bytes = 0;
  std::size_t parked_polls = 0;
  std::size_t requests_waiting = 0;
};

// Which queues somebody wants to know of. Called on the loops of all shards.
using WantsQueue = std::function<bool(const engine::Queue&, Instant now)>;

// Whoever collects figures says of how many queues of one account a shard tells at most, the first ones
// by region and name. This is for all of them.
inline constexpr std::size_t kAllQueues = SIZE_MAX;

struct WantedFigures {
  WantsQueue queues = {};  // Empty: none.
  Purpose purpose = Purpose::kMetrics;
  std::size_t per_account_max = kAllQueues;  // Of a shard.

  // The history is also told the sizes of messages, two kilobytes a queue at most, and which queues
  // were deleted.
  bool for_history() const { return purpose == Purpose::kHistory; }
};

// The figures of all shards, and the turn by which they were collected: others who want them for the
// same purpose wait for them to be destroyed. Whoever keeps figures for longer takes them out, and
// says how much that may be.
struct Figures {
  FiguresLine::Turn turn;  // Ends after everything else.
  std::vector<ShardFigures> shards;
};

}  // namespace stanchion::broker
