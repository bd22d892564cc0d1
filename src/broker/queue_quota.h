// How many queues each account has, over all shards, and how many it may have. Any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace stanchion::broker {

class QueueQuota {
 public:
  explicit QueueQuota(std::uint64_t queues_max) : max_(queues_max) {}

  std::uint64_t max() const { return max_; }

  // Counts a queue that existed before, even if it is one too many.
  void add(const std::string& account) {
    const std::lock_guard lock(mutex_);
    ++counts_[account];
  }

  // Adds one; false if the account already has the maximum.
  bool take(const std::string& account) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    if (found != counts_.end() && found->second >= max_) return false;
    ++counts_[account];
    return true;
  }

  void give_back(const std::string& account) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(account);
    if (--found->second == 0) counts_.erase(found);
  }

 private:
  const std::uint64_t max_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> counts_;
};

}  // namespace stanchion::broker
