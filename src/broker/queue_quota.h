// How many queues each account has, over all shards, and how much memory their settings take; and how
// many, and how much, they may. Any thread.
//
// A queue is counted before it is created, so the number is exact. Bytes are counted when something
// was changed: calls that are executed at the same time in several shards may together exceed the
// maximum by what each of them adds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace stanchion::broker {

class QueueQuota {
 public:
  // 0: any number.
  explicit QueueQuota(std::uint64_t queues_max, std::uint64_t bytes_max = 0)
      : queues_max_(queues_max), bytes_max_(bytes_max) {}

  std::uint64_t max() const { return queues_max_; }
  std::uint64_t bytes_max() const { return bytes_max_; }

  // Counts a queue that existed before, even if it is one too many.
  void add(const std::string& account) {
    const std::lock_guard lock(mutex_);
    ++counts_[account].queues;
  }

  // Adds one; false if the account already has the maximum.
  bool take(const std::string& account) {
    const std::lock_guard lock(mutex_);
    Count& count = counts_[account];
    if (queues_max_ != 0 && count.queues >= queues_max_) return false;
    ++count.queues;
    return true;
  }

  void give_back(const std::string& account) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    --found->second.queues;
    forget_if_nothing(found);
  }

  // The settings of a queue of the account took `before` bytes, and take `after` now; 0 if there is
  // no queue.
  void change_bytes(const std::string& account, std::uint64_t before, std::uint64_t after) {
    if (before == after) return;
    const std::lock_guard lock(mutex_);
    const auto found = counts_.try_emplace(account).first;
    found->second.bytes += after - before;
    forget_if_nothing(found);
  }

  std::uint64_t bytes_left(const std::string& account) const {
    if (bytes_max_ == 0) return UINT64_MAX;
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    const std::uint64_t bytes = found == counts_.end() ? 0 : found->second.bytes;
    return bytes_max_ - std::min(bytes_max_, bytes);
  }

 private:
  struct Count {
    std::uint64_t queues = 0;
    std::uint64_t bytes = 0;
  };
  using Counts = std::unordered_map<std::string, Count>;

  void forget_if_nothing(Counts::iterator at) {
    if (at->second.queues == 0 && at->second.bytes == 0) counts_.erase(at);
  }

  const std::uint64_t queues_max_;
  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace stanchion::broker
