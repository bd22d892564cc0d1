// What a shard tells of itself and its queues.
#include <algorithm>
#include <utility>

#include "broker/shard.h"

namespace stanchion::broker {
namespace {

// How many queues are looked at before others have their turn on the loop: some 0.3 ms.
constexpr std::size_t kQueuesAtOnce = 1'000;

}  // namespace

ShardFigures Shard::figures(const WantedFigures& wanted) const {
  ShardFigures figures;
  figures.shard = index_;
  figures.queue_count = engine_.queue_count();
  figures.journal = journal_->figures();
  figures.disk_is_full = is_disk_full(journal_->room()) || keeper_.disk_is_full();
  figures.checkpoints = keeper_.checkpoints();
  figures.cold_reads = keeper_.reads();
  figures.message_bytes = engine_.message_bytes();
  figures.structure_bytes = engine_.structure_bytes();
  figures.parked_polls = polls_.size();
  figures.requests_waiting = waiting_.size();
  figures.now = now_;
  if (!wanted.for_history()) return figures;
  const auto& words = engine_.last_words().all();
  figures.deleted_queues.assign(words.begin(), words.end());
  return figures;
}

bool Shard::add_queues(const WantedFigures& wanted, std::optional<QueueRef>& after,
                       ShardFigures& figures) const {
  if (!wanted.queues) return false;
  // Queues come in the order of their accounts.
  const auto has_enough = [&](const std::string& account) {
    const std::size_t count = figures.queues.size();
    return count >= wanted.per_account_max &&
           figures.queues[count - wanted.per_account_max].queue.account == account;
  };
  const auto add = [&](const engine::Queue& queue) {
    if (!wanted.queues(queue, now_)) return;
    if (has_enough(queue.ref.account)) {
      ++figures.left_out[queue.ref.account];
      return;
    }
    // Moving thousands of them to a larger place would keep the loop for milliseconds.
    if (figures.queues.empty()) figures.queues.reserve(engine_.queue_count());
    const QueueAttributes& attributes = queue.attributes();
    QueueFigures one{.queue = queue.ref,
                     .counts = queue.counts(),
                     .activity = queue.activity,
                     .oldest_age = {},
                     .noisy_groups = queue.noisy_lane_count(),
                     .groups = queue.lane_count(),
                     .watched = queue.watch_figures(),
                     .created = queue.created,
                     .used = queue.used,
                     .sent_sizes = wanted.for_history() ? queue.sent_sizes : RecentSizes(),
                     .habits = {queue.habits, now_},
                     .retention_seconds = attributes.retention_seconds,
                     .visibility_seconds = attributes.visibility_timeout_seconds,
                     .dead_letter_target = attributes.redrive ? attributes.redrive->target_arn : "",
                     .fifo = queue.fifo()};
    if (const auto entered = queue.oldest_entered())
      one.oldest_age = std::max(Duration(0), now_ - *entered);
    figures.queues.push_back(std::move(one));
  };
  const engine::Queue* last =
      engine_.for_some_queues(after ? &*after : nullptr, kQueuesAtOnce, add);
  if (last == nullptr) return false;
  after = last->ref;
  return true;
}

}  // namespace stanchion::broker
