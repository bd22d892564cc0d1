#include "kafka/troubles.h"

#include <fmt/format.h>

namespace stanchion::kafka {
namespace {

// A broker that cannot be reached is complained about several times a second.
constexpr auto kSayAgainAfter = std::chrono::seconds(60);
constexpr std::size_t kSaidMax = 100;
// The brokers are asked several times a second while an entry is late.
constexpr auto kAnswerLasts = std::chrono::seconds(3);

}  // namespace

bool Troubles::complained(const std::string& complaint, TimePoint now) {
  const std::lock_guard lock(mutex_);
  last_error_ = complaint;
  has_error_ = true;
  const std::string what = complaint.substr(0, complaint.find(" (after "));
  if (const auto said = said_.find(what);
      said != said_.end() && now - said->second < kSayAgainAfter)
    return false;
  if (said_.size() >= kSaidMax) said_.clear();
  said_[what] = now;
  return true;
}

void Troubles::acknowledged() {
  if (!has_error_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  last_error_.clear();
  has_error_ = false;
}

std::string Troubles::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void Troubles::learn(const rd_kafka_metadata_t& answer, TimePoint now) {
  const std::lock_guard lock(mutex_);
  for (int t = 0; t < answer.topic_cnt; ++t) {
    const rd_kafka_metadata_topic& topic = answer.topics[t];
    for (int p = 0; p < topic.partition_cnt; ++p) {
      const rd_kafka_metadata_partition& partition = topic.partitions[p];
      partitions_[{topic.topic, partition.id}] = {.leader = partition.leader,
                                                  .in_sync = partition.isr_cnt,
                                                  .replicas = partition.replica_cnt,
                                                  .seen = now};
    }
  }
}

std::string Troubles::why_not_taken(const Partition& partition, TimePoint now) const {
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(partition);
  if (found == partitions_.end() || now - found->second.seen > kAnswerLasts)
    return last_error_.empty() ? "no broker says who leads " + partition.text() : last_error_;
  const State& state = found->second;
  if (state.leader < 0)
    return partition.text() + " has no leader: the brokers that have it are down";
  if (state.in_sync < state.replicas)
    return fmt::format(
        "{} has {} of {} replicas in sync, led by broker {}; see min.insync.replicas",
        partition.text(), state.in_sync, state.replicas, state.leader);
  return fmt::format(
      "broker {} leads {} and takes no entries: {}", state.leader, partition.text(),
      last_error_.empty() ? "see its log, its disk and min.insync.replicas" : last_error_);
}

}  // namespace stanchion::kafka
